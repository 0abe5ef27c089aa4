package namespaceoffloading

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/controller/storage/hold"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/reflection"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch

// held says why a cluster keeps its twin although the namespace is not offloaded to it any more: volumes there hold its data,
// and nobody has decided that it may be lost. A dead cluster holds nothing.
func (r *reconciler) held(ctx context.Context, s *scope, cluster corev1beta1.ClusterID) (why, err error) {
	volumes, err := hold.Volumes(ctx, r.Client, r.Live, s.nso, string(cluster), s.nso.Namespace)
	if err != nil || len(volumes) == 0 {
		return nil, err
	}
	if dead, err := r.dead(ctx, cluster); err != nil || dead {
		return nil, err
	}
	return hold.Wait(string(cluster), volumes, "liqoctl unoffload namespace "+s.nso.Namespace), nil
}

// dead tells whether a cluster was given up, by the API server itself: what is there is lost.
func (r *reconciler) dead(ctx context.Context, cluster corev1beta1.ClusterID) (bool, error) {
	var fc corev1beta1.ForeignCluster
	err := r.Live.Get(ctx, client.ObjectKey{Name: string(cluster)}, &fc)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("reading ForeignCluster %s: %w", cluster, err)
	}
	return err == nil && fc.IsDead(), nil
}

// ofVolume finds the NamespaceOffloading that a volume at a provider holds.
func ofVolume(volume *corev1.PersistentVolume) client.ObjectKey {
	if volume.Spec.ClaimRef == nil {
		return client.ObjectKey{}
	}
	return keyIn(volume.Spec.ClaimRef.Namespace)
}

// atProvider selects the volumes at providers.
func atProvider() predicate.Predicate {
	return watch.Where(func(volume *corev1.PersistentVolume) bool {
		_, remote := reflection.HandleOf(volume)
		return remote
	})
}
