package shadowendpointslice

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// serviceLate is how soon it is looked again for the Service of endpoints, if no event of it comes.
const serviceLate = time.Minute

// aService is the metadata of a Service.
func aService() *metav1.PartialObjectMetadata {
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	return service
}

// attach makes sure that the Service which the endpoints belong to by name came from the same consumer. Traffic to one that is somebody
// else's would go to the consumer's pods: then there are no endpoints, and those that there were go.
func (r *reconciler) attach(ctx context.Context, shadow *offloadingv1beta1.ShadowEndpointSlice) error {
	name := shadow.Labels[discoveryv1.LabelServiceName]
	if name == "" {
		return nil
	}
	key := client.ObjectKey{Namespace: shadow.Namespace, Name: name}
	if ours, err := r.ours(ctx, r.Client, key, shadow); ours || err != nil {
		return err
	}
	// Of a cache of the past nothing is taken away.
	there := aService()
	err := r.Live.Get(ctx, key, there)
	switch {
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Service %s: %w", key, err)
	case err == nil && sameOrigin(there, shadow):
		return reconcile.Wait(offloadingv1beta1.ReasonServiceNotReflected, "waiting for the cache to show Service "+key.String(), lag)
	}
	if gone := r.detach(ctx, shadow); gone != nil {
		return gone
	}
	if err == nil {
		return reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, "Service", key)
	}
	return reconcile.Wait(offloadingv1beta1.ReasonServiceNotReflected, "waiting for Service "+key.String(), serviceLate)
}

func (r *reconciler) ours(ctx context.Context, reader client.Reader, key client.ObjectKey, shadow *offloadingv1beta1.ShadowEndpointSlice) (bool, error) {
	service := aService()
	if err := reader.Get(ctx, key, service); err != nil {
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return false, fmt.Errorf("reading Service %s: %w", key, err)
	}
	return sameOrigin(service, shadow), nil
}

func sameOrigin(service client.Object, shadow *offloadingv1beta1.ShadowEndpointSlice) bool {
	origin := shadow.Labels[offloadingv1beta1.OriginLabel]
	return origin != "" && service.GetLabels()[offloadingv1beta1.OriginLabel] == origin
}

// detach removes the EndpointSlice of a ShadowEndpointSlice, if there is one.
func (r *reconciler) detach(ctx context.Context, shadow *offloadingv1beta1.ShadowEndpointSlice) error {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: shadow.Namespace, Name: shadow.Name}}
	return keep.Keeper{Client: r.Client, Reader: r.Live}.RemoveIf(ctx, keep.ControlledBy(shadow), slice)
}

// ofService selects the ShadowEndpointSlices of a Service, whosever it is.
func ofService(o client.Object) []client.ListOption {
	return []client.ListOption{client.InNamespace(o.GetNamespace()), client.MatchingLabels{discoveryv1.LabelServiceName: o.GetName()}}
}

// services passes Services that come and go, and changes of whose they are.
func services() predicate.Predicate {
	return watch.Changed(func(o client.Object) any { return o.GetLabels()[offloadingv1beta1.OriginLabel] })
}
