package namespaceoffloading

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// lag is how long to wait for the cache to show what the API server says.
const lag = 5 * time.Second

// present reads the object past the cache, and waits if it is another one by now.
func (r *reconciler) present(ctx context.Context, s *scope) (*offloadingv1beta1.NamespaceOffloading, error) {
	var nso offloadingv1beta1.NamespaceOffloading
	key := client.ObjectKeyFromObject(s.nso)
	err := r.Live.Get(ctx, key, &nso)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading NamespaceOffloading %s: %w", key, err)
	}
	if err != nil || nso.UID != s.nso.UID {
		return nil, behind(s)
	}
	return &nso, nil
}

func behind(s *scope) error {
	s.past = true
	return reconcile.Wait(offloadingv1beta1.ReasonTwinPending,
		fmt.Sprintf("waiting for the cache to show the NamespaceOffloading of %s and its clusters", s.nso.Namespace), lag)
}

// confirm asks the API server itself whether a cluster really is not selected. A cache that is filled from a server that lags shows the
// past: the namespace as it was before it was offloaded there, or the cluster before it had that label or that node. The twin would go, with
// all pods in it.
func (r *reconciler) confirm(ctx context.Context, s *scope, cluster corev1beta1.ClusterID) error {
	if s.now == nil {
		nso, err := r.present(ctx, s)
		if err != nil {
			return err
		}
		now, err := gather(ctx, r.Live, nso)
		if err != nil {
			return err
		}
		if nso.DeletionTimestamp.IsZero() {
			if err := r.decide(ctx, now); err != nil {
				return err
			}
		}
		s.now = now
	}
	if s.now.selected[cluster] || s.now.staying[cluster] {
		return behind(s)
	}
	return nil
}

// confirmGone makes sure that no provider is still asked for a twin, or has one, that the cache does not show yet. Nobody would remove it
// once the object is gone.
func (r *reconciler) confirmGone(ctx context.Context, s *scope) error {
	now, err := gather(ctx, r.Live, s.nso)
	if err != nil {
		return err
	}
	for cluster := range now.maps {
		if now.wanted(cluster) {
			return behind(s)
		}
	}
	waiting, err := r.remaining(ctx, now)
	if err != nil || waiting == nil {
		return err
	}
	return behind(s)
}
