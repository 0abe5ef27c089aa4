package virtualnode

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

// A provider without a range of its own is told of once, where the way out is; it changes nothing about readiness.
func TestTheConditionAddressesShown(t *testing.T) {
	for name, tc := range map[string]struct {
		pinned string
		hidden bool
		mapped bool
		told   bool
	}{
		"the provider announced nothing":             {pinned: "none", told: true},
		"its Configuration tells its ranges":         {pinned: "none", mapped: true},
		"the provider announced a range":             {pinned: "10.120.0.0/16"},
		"nothing is pinned yet":                      {},
		"no address is wanted, so none is missed":    {pinned: "none", hidden: true},
		"one is pinned, and no address is wanted":    {pinned: "10.120.0.0/16", hidden: true},
		"several ranges, of which none is that word": {pinned: "10.120.0.0/16,fd00::/64"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.mapped {
				objects = append(objects, &networkingv1beta1.Configuration{ObjectMeta: metav1.ObjectMeta{
					Namespace: key.Namespace, Name: "milan", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}}})
			}
			w := ready(t, objects...)
			w.r.HideAddresses, w.r.Networking = tc.hidden, true
			// It comes and goes: what was pinned before said the opposite.
			for _, pinned := range []string{map[bool]string{true: "10.1.0.0/16", false: "none"}[tc.told], tc.pinned} {
				vn := virtualNode()
				if err := w.Get(context.Background(), key, vn); err != nil {
					t.Fatal(err)
				}
				if metav1.SetMetaDataAnnotation(&vn.ObjectMeta, offloadingv1beta1.RemotePodCIDRsAnnotation, pinned); pinned == "" {
					delete(vn.Annotations, offloadingv1beta1.RemotePodCIDRsAnnotation)
				}
				if err := w.Client.Update(context.Background(), vn); err != nil {
					t.Fatal(err)
				}
				w.pass()
			}
			vn := virtualNode()
			if err := w.Get(context.Background(), key, vn); err != nil {
				t.Fatal(err)
			}
			c := conditions.Find(vn.Status.Summary, offloadingv1beta1.AddressesShownCondition)
			if (c != nil) != tc.told {
				t.Fatalf("the condition is %v", c)
			}
			if tc.told && (c.Status != "False" || c.Reason != "NoPodAddressRange" ||
				!strings.Contains(c.Message, "set ipam.podCIDRs there, then run here: kubectl annotate virtualnode -n liqo-tenant-milan milan liqo.io/remote-pod-cidrs-")) {
				t.Errorf("the condition says %v", c)
			}
			if !strings.HasPrefix(w.condition("Ready"), "True") {
				t.Errorf("the VirtualNode is not ready: %s", w.condition("Ready"))
			}
		})
	}
}
