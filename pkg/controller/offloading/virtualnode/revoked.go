package virtualnode

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ctrl "sigs.k8s.io/controller-runtime"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// denied says that the provider denies the slice that the VirtualNode was made of; empty if it does not. A cache may show the past, so
// that a denial is believed only when the API server shows it as well.
func (r *reconciler) denied(ctx context.Context, vn *offloadingv1beta1.VirtualNode) (string, error) {
	name := vn.Labels[authv1beta1.ResourceSliceNameLabel]
	if name == "" {
		return "", nil
	}
	why := ""
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var slice authv1beta1.ResourceSlice
		found, err := find(ctx, reader, client.ObjectKey{Namespace: vn.Namespace, Name: name}, &slice)
		if err != nil || !found {
			return "", err
		}
		if why = slice.WhyDenied(); why == "" {
			return "", nil
		}
	}
	return why, nil
}

// ofSlice finds the VirtualNode that was made of a ResourceSlice, which has its name.
func ofSlice(_ context.Context, o client.Object) []ctrl.Request {
	return []ctrl.Request{{NamespacedName: client.ObjectKeyFromObject(o)}}
}
