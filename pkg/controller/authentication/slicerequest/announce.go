package slicerequest

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"liqo.io/liqo/pkg/addressing"
	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
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
	return predicate.And(watch.Later, watch.Where(IsLocal), watch.Changed(func(s *authv1beta1.ResourceSlice) any { return s.Status.PodCIDRs }))
}

// ofIdentity selects the slices whose CSR has to name the peering that a control plane Identity belongs to.
func ofIdentity(present *authv1beta1.Identity) []client.ListOption {
	if present.Spec.Type != authv1beta1.ControlPlaneIdentityType {
		return nil
	}
	return []client.ListOption{client.InNamespace(present.Namespace), watch.If(IsLocal)}
}

// others selects the slices that ask other providers than a slice does.
func others(than client.Object) []client.ListOption {
	return []client.ListOption{watch.If(func(o client.Object) bool { return IsLocal(o) && o.GetNamespace() != than.GetNamespace() })}
}
