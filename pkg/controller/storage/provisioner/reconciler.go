package provisioner

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/reflection"
)

// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=persistentvolumeclaims/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=persistentvolumes,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=storage.k8s.io,resources=storageclasses,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// poll is how long to wait for something whose event may not come.
	poll = 15 * time.Second
	// callTimeout bounds what one pass does.
	callTimeout = 30 * time.Second
)

// Options configure the provisioner.
type Options struct {
	// Namespace holds the claims that are behind volumes.
	Namespace string
	// RealStorageClass is their class; empty means the cluster's default.
	RealStorageClass string
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
	// Events are written with it; the manager's recorder if nil.
	Events events.EventRecorder
	// Workers is how many claims, and how many volumes, are reconciled at a time; 2 if 0.
	Workers int
	// Clock tells how long a claim waits; nil means the real one.
	Clock clock.PassiveClock
}

// claims reconciles claims; volumes reconciles volumes.
type (
	claims struct {
		client.Client
		Options
	}
	volumes struct {
		client.Client
		Options
	}
)

// Register adds the provisioner to a manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Namespace == "" {
		o.Namespace = offloadingv1beta1.DefaultStorageNamespace
	}
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	if o.Events == nil {
		o.Events = mgr.GetEventRecorder("liqo-storage")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = 2
	}
	options := controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: reconcile.RateLimiter()}
	own := watch.Where(reflection.OwnVolume)
	c := &claims{Client: mgr.GetClient(), Options: o}
	err := ctrl.NewControllerManagedBy(mgr).Named("storage-claim").
		Watches(&corev1.PersistentVolumeClaim{}, handler.EnqueueRequestsFromMapFunc(c.claimOf)).
		Watches(&corev1.PersistentVolume{}, watch.One(claimOfVolume), builder.WithPredicates(own)).
		WithOptions(options).
		Complete(c)
	if err != nil {
		return fmt.Errorf("registering the controller of claims: %w", err)
	}
	v := &volumes{Client: mgr.GetClient(), Options: o}
	err = ctrl.NewControllerManagedBy(mgr).Named("storage-volume").
		For(&corev1.PersistentVolume{}, builder.WithPredicates(own)).
		Watches(&corev1.PersistentVolumeClaim{}, watch.One(o.volumeOf)).
		WithOptions(options).
		Complete(v)
	if err != nil {
		return fmt.Errorf("registering the controller of volumes: %w", err)
	}
	return nil
}

// behind tells whether a claim is one that we made for another one.
func (o Options) behind(claim client.Object) bool {
	return claim.GetNamespace() == o.Namespace && claim.GetLabels()[offloadingv1beta1.StorageProvisionerLabel] == "true"
}

// claimOf finds the claim that a change of a claim concerns: itself, or the one that it is behind.
func (r *claims) claimOf(ctx context.Context, object client.Object) []ctrl.Request {
	claim, ok := object.(*corev1.PersistentVolumeClaim)
	if !ok {
		return nil
	}
	if !r.behind(claim) {
		if !reflection.OwnClaim(claim) {
			return nil
		}
		return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(claim)}}
	}
	var requests []ctrl.Request
	if namespace, name, ok := reflection.VirtualClaim(claim); ok {
		requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}})
	}
	// A volume that moved is bound to another claim than it was made for.
	var volume corev1.PersistentVolume
	if err := r.Get(ctx, client.ObjectKey{Name: claim.Annotations[offloadingv1beta1.VolumeAnnotation]}, &volume); err == nil {
		if bound := claimOfVolume(&volume); bound.Name != "" {
			requests = append(requests, ctrl.Request{NamespacedName: bound})
		}
	}
	return requests
}

// claimOfVolume finds the claim that a volume is bound to.
func claimOfVolume(volume *corev1.PersistentVolume) client.ObjectKey {
	if volume.Spec.ClaimRef == nil {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Namespace: volume.Spec.ClaimRef.Namespace, Name: volume.Spec.ClaimRef.Name}
}

// volumeOf finds the volume that a claim behind it keeps from going.
func (o Options) volumeOf(claim client.Object) client.ObjectKey {
	if !o.behind(claim) {
		return client.ObjectKey{}
	}
	return client.ObjectKey{Name: claim.GetAnnotations()[offloadingv1beta1.VolumeAnnotation]}
}

func (o Options) warn(about client.Object, reason, message string) {
	o.Events.Eventf(about, nil, corev1.EventTypeWarning, reason, "Provision", "%s", message)
}
