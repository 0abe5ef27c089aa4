package namespacemap

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"liqo.io/liqo/pkg/placement"
)

// ofClass ends the names of what a ResourceQuota says of one StorageClass.
const ofClass = ".storageclass.storage.k8s.io/"

// taken is what volumes take whose claims are gone, by StorageClass.
type taken map[string]resource.Quantity

// retain finds what volumes take whose claims are gone. Kubernetes counts claims alone, and so a consumer would have ever more of a class that
// retains volumes. A volume without a claimRef is its administrator's again.
func (s *scope) retain(ctx context.Context, reader client.Reader) error {
	var list corev1.PersistentVolumeList
	// The volumes are only looked at.
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing PersistentVolumes that no claim counts any more: %w", err)
	}
	s.retained = map[string]taken{}
	for i := range list.Items {
		volume := &list.Items[i]
		if !outlived(volume) {
			continue
		}
		namespace, class := volume.Spec.ClaimRef.Namespace, volume.Spec.StorageClassName
		if s.retained[namespace] == nil {
			s.retained[namespace] = taken{}
		}
		sum := s.retained[namespace][class]
		sum.Add(*volume.Spec.Capacity.Storage())
		s.retained[namespace][class] = sum
	}
	for namespace := range s.retained {
		err := reader.Get(ctx, client.ObjectKey{Name: namespace}, &corev1.Namespace{})
		switch {
		case apierrors.IsNotFound(err):
			s.lost = append(s.lost, namespace)
		case err != nil:
			return fmt.Errorf("reading Namespace %s: %w", namespace, err)
		}
	}
	return nil
}

// outlived tells whether a volume is there and the claim that it was for is not.
func outlived(volume *corev1.PersistentVolume) bool {
	return volume.Spec.ClaimRef != nil && (volume.Status.Phase == corev1.VolumeReleased || volume.Status.Phase == corev1.VolumeFailed)
}

// remaining is what limits leave to claims beside volumes that no claim counts.
func remaining(hard corev1.ResourceList, beside taken) corev1.ResourceList {
	rest := hard.DeepCopy()
	for class, size := range beside {
		for _, name := range []corev1.ResourceName{corev1.ResourceRequestsStorage, corev1.ResourceName(class) + ofClass + corev1.ResourceRequestsStorage} {
			limit, limited := rest[name]
			if !limited {
				continue
			}
			if limit.Sub(size); limit.Sign() < 0 {
				limit.Set(0)
			}
			rest[name] = limit
		}
	}
	return rest
}

// outlivedTwins counts the twins that are gone and whose volumes are there still. Each is one of those that a tenant may have: else it would have ever
// more storage, by namespaces of ever new names. Whose a namespace was is known by its name alone, if names tell at all: else any tenant could give its
// own the names of another's. One that is wanted again is counted as that.
func (s *scope) outlivedTwins(rules placement.TwinRules) (count int) {
	if !rules.RequireTenantSuffix {
		return 0
	}
	wanted := slices.Collect(maps.Values(s.nm.Spec.DesiredMapping))
	for _, namespace := range s.lost {
		if rules.IsNamedFor(s.tenant, namespace) && !slices.Contains(wanted, namespace) && !slices.Contains(s.all, namespace) {
			count++
		}
	}
	return count
}

// ofVolume finds the map of the twin that a volume's claim was in.
func ofVolume(reader client.Reader) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		volume, is := o.(*corev1.PersistentVolume)
		if !is || volume.Spec.ClaimRef == nil {
			return nil
		}
		var ns corev1.Namespace
		if err := reader.Get(ctx, client.ObjectKey{Name: volume.Spec.ClaimRef.Namespace}, &ns); err != nil || ofAnnotation(&ns).Name == "" {
			return nil // Where there is no twin there is no quota.
		}
		return []ctrl.Request{{NamespacedName: ofAnnotation(&ns)}}
	}
}

// outliving passes volumes whose claims are gone, and what becomes of them.
func outliving() predicate.Predicate {
	is := func(o client.Object) bool {
		volume, typed := o.(*corev1.PersistentVolume)
		return typed && outlived(volume)
	}
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return is(e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool { return is(e.ObjectOld) || is(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool { return is(e.Object) },
	}
}
