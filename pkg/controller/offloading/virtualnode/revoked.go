package virtualnode

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// answer is what the provider says of the slice that the VirtualNode was made of, in words: that it is denied, or takes no new pods, or by how
// much more runs than it is offered; each is empty if that is not so.
type answer struct{ denied, cordoned, over string }

// answer reads it. A cache may show the past, so that a denial is believed only when the API server shows it as well.
func (r *reconciler) answer(ctx context.Context, vn *offloadingv1beta1.VirtualNode) (a answer, err error) {
	name := vn.Labels[authv1beta1.ResourceSliceNameLabel]
	if name == "" {
		return answer{}, nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		var slice authv1beta1.ResourceSlice
		found, err := find(ctx, reader, client.ObjectKey{Namespace: vn.Namespace, Name: name}, &slice)
		if err != nil || !found {
			return answer{}, err
		}
		a = answer{denied: slice.WhyDenied(), cordoned: slice.WhyCordoned(), over: slice.WhyOverCommitted()}
		if a.denied == "" {
			break
		}
	}
	return a, nil
}

// ofSlice selects the VirtualNodes that were made of a ResourceSlice.
func ofSlice(o client.Object) []client.ListOption {
	return []client.ListOption{client.InNamespace(o.GetNamespace()), client.MatchingLabels{authv1beta1.ResourceSliceNameLabel: o.GetName()}}
}
