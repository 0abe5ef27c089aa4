package virtualnode

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/compat"
)

// A virtual node that works is well for programs of Liqo v1, whatever else there is to be told of it; what an earlier version had among the
// conditions is taken out.
func TestProgramsOfV1FindAVirtualNodeWell(t *testing.T) {
	annotated := func(key, value string) func(*world) {
		return func(w *world) {
			turned(w, &offloadingv1beta1.VirtualNode{}, func(vn *offloadingv1beta1.VirtualNode) { metav1.SetMetaDataAnnotation(&vn.ObjectMeta, key, value) })
		}
	}
	for sentence, test := range map[string]struct {
		change func(*world)
		says   string
	}{
		"all is well": {func(*world) {}, ""},
		"it gets no new pods": {func(w *world) {
			turned(w, &offloadingv1beta1.VirtualNode{}, func(vn *offloadingv1beta1.VirtualNode) {
				metav1.SetMetaDataLabel(&vn.ObjectMeta, authv1beta1.ResourceSliceNameLabel, "milan")
			})
			turned(w, &authv1beta1.ResourceSlice{}, func(slice *authv1beta1.ResourceSlice) {
				slice.Status.Summary = []corev1beta1.Condition{{Type: authv1beta1.CordonedCondition, Status: "True", Reason: authv1beta1.ReasonTenantCordoned}}
			})
		}, offloadingv1beta1.CordonedCondition},
		"other labels are suggested": {annotated(offloadingv1beta1.SuggestedLabelsAnnotation, "a=b"), offloadingv1beta1.LabelsChangedCondition},
		"no address is shown":        {annotated(offloadingv1beta1.RemotePodCIDRsAnnotation, offloadingv1beta1.NoPodCIDRs), offloadingv1beta1.AddressesShownCondition},
		"removals are held": {func(w *world) {
			node := &corev1.Node{}
			w.is(node, "")
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: offloadingv1beta1.RemovalsHeldCondition, Status: corev1.ConditionTrue})
			if err := w.Status().Update(t.Context(), node); err != nil {
				t.Fatal(err)
			}
		}, offloadingv1beta1.RemovalsHeldCondition},
		"an earlier version wrote its status": {func(w *world) {
			vn := w.now()
			vn.Status.Conditions, vn.Status.Summary = vn.Status.All(), nil
			if err := w.Status().Update(t.Context(), vn); err != nil {
				t.Fatal(err)
			}
		}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			w := ready(t, &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}})
			test.change(w)
			w.pass()
			vn := w.now()
			if faults := compat.Faults(vn); len(faults) > 0 || len(vn.Status.Conditions) != 2 {
				t.Errorf("found wrong: %q in %v", faults, vn.Status.Conditions)
			}
			said := map[string]bool{}
			for _, c := range vn.Status.Summary {
				said[c.Type] = true
			}
			want := map[string]bool{corev1beta1.ConditionReady: true}
			if test.says != "" {
				want[test.says] = true
			}
			if diff := cmp.Diff(want, said); diff != "" {
				t.Error(diff)
			}
		})
	}
}
