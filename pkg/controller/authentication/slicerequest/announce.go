package slicerequest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"liqo.io/liqo/pkg/addressing"
	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

// announced are the ranges that a provider is to accept endpoints from.
func (r *Reconciler) announced(ctx context.Context, provider string) ([]string, error) {
	if r.options.HideAddresses {
		return nil, nil
	}
	list := &authv1beta1.ResourceSliceList{}
	if err := r.client.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing ResourceSlices, whose providers' ranges are announced: %w", err)
	}
	return Announced(r.options.PodCIDRs, list.Items, provider), nil
}

// Announced are the ranges that a provider is told of: this cluster's own, then those of the other providers, whose pods stand
// behind the same Services. They are bounded, because other providers are not trusted to be brief.
func Announced(own []string, all []authv1beta1.ResourceSlice, provider string) []string {
	var others []string
	for i := range all {
		slice := &all[i]
		if !IsLocal(slice) || slice.Spec.ProviderClusterID == nil || string(*slice.Spec.ProviderClusterID) == provider {
			continue
		}
		others = append(others, slice.Status.PodCIDRs...)
	}
	slices.Sort(others)
	var announced []string
	for _, text := range append(slices.Sorted(slices.Values(own)), others...) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix.Bits() == 0 {
			continue
		}
		if text = prefix.Masked().String(); !slices.Contains(announced, text) && len(announced) < addressing.MaxAnnounced {
			announced = append(announced, text)
		}
	}
	return announced
}

// answers passes slices whose provider told its ranges.
func answers() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*authv1beta1.ResourceSlice)
			after, typed := e.ObjectNew.(*authv1beta1.ResourceSlice)
			return ok && typed && IsLocal(after) && !slices.Equal(before.Status.PodCIDRs, after.Status.PodCIDRs)
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return IsLocal(e.Object) },
	}
}

// ofIdentity finds the slices whose CSR has to name the peering that a control plane Identity belongs to.
func (r *Reconciler) ofIdentity(ctx context.Context, object client.Object) []ctrl.Request {
	if present, ok := object.(*authv1beta1.Identity); !ok || present.Spec.Type != authv1beta1.ControlPlaneIdentityType {
		return nil
	}
	return r.local(ctx, func(slice *authv1beta1.ResourceSlice) bool { return slice.Namespace == object.GetNamespace() })
}

// others finds the slices that ask other providers than a slice does.
func (r *Reconciler) others(ctx context.Context, object client.Object) []ctrl.Request {
	return r.local(ctx, func(slice *authv1beta1.ResourceSlice) bool { return slice.Namespace != object.GetNamespace() })
}

func (r *Reconciler) local(ctx context.Context, include func(*authv1beta1.ResourceSlice) bool) []ctrl.Request {
	list := &authv1beta1.ResourceSliceList{}
	if r.client.List(ctx, list) != nil {
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if other := &list.Items[i]; IsLocal(other) && include(other) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(other)})
		}
	}
	return requests
}
