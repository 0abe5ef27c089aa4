package virtualnode

import (
	"context"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// answer says what of the provider's answer to the slice that the VirtualNode was made of keeps pods away: that it is denied, or takes no new
// ones; empty if neither. A cache may show the past, so that a denial is believed only when the API server shows it as well.
func (r *reconciler) answer(ctx context.Context, vn *offloadingv1beta1.VirtualNode) (denied, cordoned string, err error) {
	name := vn.Labels[authv1beta1.ResourceSliceNameLabel]
	if name == "" {
		return "", "", nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var slice authv1beta1.ResourceSlice
		found, err := find(ctx, reader, client.ObjectKey{Namespace: vn.Namespace, Name: name}, &slice)
		if err != nil || !found {
			return "", "", err
		}
		if denied, cordoned = slice.WhyDenied(), slice.WhyCordoned(); denied == "" {
			return "", cordoned, nil
		}
	}
	return denied, cordoned, nil
}

// ofSlice finds the VirtualNodes that were made of a ResourceSlice, among those.
func ofSlice(those func(context.Context, ...client.ListOption) []ctrl.Request) handler.MapFunc {
	return func(ctx context.Context, o client.Object) []ctrl.Request {
		return those(ctx, client.InNamespace(o.GetNamespace()), client.MatchingLabels{authv1beta1.ResourceSliceNameLabel: o.GetName()})
	}
}
