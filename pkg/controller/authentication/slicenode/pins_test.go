package slicenode

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// W5, W1: what a provider says of itself is taken when its VirtualNode is made, and then only what was approved here, word by word.
func TestAProviderDoesNotRelabelItself(t *testing.T) {
	type says = map[string]string
	made := func(labels says, annotations ...string) *offloadingv1beta1.VirtualNode {
		vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{UID: "1", Annotations: says{}}, Spec: offloadingv1beta1.VirtualNodeSpec{Labels: labels}}
		for i := 0; i < len(annotations); i += 2 {
			vn.Annotations[annotations[i]] = annotations[i+1]
		}
		return vn
	}
	const taken, approved = offloadingv1beta1.ProviderLabelsAnnotation, offloadingv1beta1.ApprovedLabelsAnnotation
	for name, tc := range map[string]struct {
		vn        *offloadingv1beta1.VirtualNode
		suggested says
		trust     bool
		want      says
		suggests  string
	}{
		"at first":                          {vn: &offloadingv1beta1.VirtualNode{}, suggested: says{"tier": "gold"}, trust: true, want: says{"tier": "gold"}},
		"at first, hardened":                {vn: &offloadingv1beta1.VirtualNode{}, suggested: says{"tier": "gold"}, suggests: "tier=gold"},
		"nothing at first, later something": {vn: made(nil, taken, ""), suggested: says{"gdpr": "certified"}, trust: true, suggests: "gdpr=certified"},
		"one more":                          {vn: made(says{"tier": "gold"}, taken, "tier=gold"), suggested: says{"tier": "gold", "gdpr": "certified"}, trust: true, want: says{"tier": "gold"}, suggests: "gdpr=certified,tier=gold"},
		"another value":                     {vn: made(says{"tier": "gold"}, taken, "tier=gold"), suggested: says{"tier": "lead"}, trust: true, want: says{"tier": "gold"}, suggests: "tier=lead"},
		"one less":                          {vn: made(says{"tier": "gold"}, taken, "tier=gold"), trust: true, want: says{"tier": "gold"}},
		"the topology":                      {vn: made(nil, taken, ""), suggested: says{"topology.kubernetes.io/region": "eu"}, trust: true, suggests: "topology.kubernetes.io/region=eu"},
		"approved":                          {vn: made(says{"tier": "gold"}, taken, "tier=gold", approved, "gdpr=certified"), suggested: says{"gdpr": "certified"}, want: says{"gdpr": "certified"}},
		"approved, and changed again":       {vn: made(nil, taken, "", approved, "tier=gold"), suggested: says{"tier": "gold", "gdpr": "certified"}, want: nil, suggests: "gdpr=certified,tier=gold"},
		"approved and taken, then changed":  {vn: made(says{"tier": "gold"}, taken, "tier=gold", approved, "tier=gold"), suggested: says{"gdpr": "certified"}, want: says{"tier": "gold"}, suggests: "gdpr=certified"},
		"labels of this cluster's own stay": {vn: made(says{"mine": "1", "tier": "gold"}, taken, "tier=gold", approved, "tier=lead"), suggested: says{"tier": "lead"}, want: says{"mine": "1", "tier": "lead"}},
		"made by an earlier version":        {vn: made(says{"tier": "gold"}), suggested: says{"gdpr": "certified"}, trust: true, want: says{"tier": "gold"}, suggests: "gdpr=certified"},
		"an approval that is none":          {vn: made(nil, taken, "", approved, "gdpr in (certified)"), suggested: says{"gdpr": "certified"}, suggests: "gdpr=certified"},
		"reserved labels, approved":         {vn: made(nil, taken, "", approved, "liqo.io/type=x"), suggested: says{"liqo.io/type": "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			slice := &authv1beta1.ResourceSlice{Status: authv1beta1.ResourceSliceStatus{NodeLabels: tc.suggested}}
			for range 2 { // The second time changes nothing.
				Fill(tc.vn, slice, "kubeconfig", Trust{Labels: tc.trust})
				if diff := cmp.Diff(tc.want, tc.vn.Spec.Labels); diff != "" {
					t.Errorf("labels (-want +got):\n%s", diff)
				}
				text, differs := tc.vn.Annotations[offloadingv1beta1.SuggestedLabelsAnnotation]
				if text != tc.suggests || differs != (tc.suggests != "" || strings.HasPrefix(name, "one less")) {
					t.Errorf("suggests %q, %v", text, differs)
				}
				tc.vn.UID = "1"
			}
		})
	}
}

// What a provider announces is pinned once, as far as it can be its own.
func TestPinnedAddresses(t *testing.T) {
	for name, tc := range map[string]struct {
		announced []string
		private   bool
		before    string
		want      string
	}{
		"nothing":            {want: "none"},
		"its own":            {announced: []string{"10.1.2.3/16", "fd00::/64"}, want: "10.1.0.0/16,fd00::/64"},
		"nonsense":           {announced: []string{"x", "0.0.0.0/0", "::/0"}, private: true, want: "none"},
		"pinned before":      {announced: []string{"10.1.0.0/16"}, before: "10.9.0.0/16", want: "10.9.0.0/16"},
		"none pinned before": {announced: []string{"10.1.0.0/16"}, before: "none", want: "none"},
	} {
		t.Run(name, func(t *testing.T) {
			vn := &offloadingv1beta1.VirtualNode{}
			if tc.before != "" {
				vn.Annotations = map[string]string{offloadingv1beta1.RemotePodCIDRsAnnotation: tc.before}
			}
			pinAddresses(vn, tc.announced, Trust{PrivateAddresses: tc.private})
			if got := vn.Annotations[offloadingv1beta1.RemotePodCIDRsAnnotation]; got != tc.want {
				t.Errorf("pinned %q, want %q", got, tc.want)
			}
		})
	}
}
