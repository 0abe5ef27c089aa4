package slicegrant

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/controller/authentication/supply"
)

// Of the three nodes, of 4 cores, 16 GiB and 110 pods each, one is in the pool.
func TestASliceOfCertainNodes(t *testing.T) {
	type ask struct {
		name, nodes string
		resources   corev1.ResourceList
	}
	for sentence, tc := range map[string]struct {
		policy func(*Policy)
		asks   []ask
		// want is what the last one is granted, said a part of what it is told.
		want, said string
	}{
		"a share of theirs":            {asks: []ask{{nodes: "pool=arm"}}, want: "cpu 3600m, memory 14745Mi, pods 99", said: "90 % of what is free"},
		"a quantity that they have":    {asks: []ask{{nodes: "pool=arm", resources: list("cpu", "3")}}, want: "cpu 3, memory 14745Mi, pods 99"},
		"one that only all nodes have": {asks: []ask{{nodes: "pool=arm", resources: list("cpu", "8")}}, want: "cpu 4, memory 14745Mi, pods 99", said: "less cpu than asked for"},
		"a quantity that was granted before": {asks: []ask{{name: "a", nodes: "pool=arm", resources: list("cpu", "3")}, {name: "b", nodes: "pool=arm", resources: list("cpu", "3")}},
			want: "cpu 1, memory 14745Mi, pods 99", said: "less cpu than asked for"},
		"what was granted of all nodes":     {asks: []ask{{name: "a", resources: list("cpu", "8")}, {name: "b", nodes: "pool=arm", resources: list("cpu", "4")}}, want: "cpu 4, memory 14745Mi, pods 99"},
		"all that the tenant may have":      {asks: []ask{{name: "a", resources: list("cpu", "10")}, {name: "b", nodes: "pool=arm", resources: list("cpu", "4")}}, want: "cpu 2, memory 14745Mi, pods 99"},
		"what is given by default":          {policy: func(p *Policy) { p.DefaultResources = list("cpu", "8") }, asks: []ask{{nodes: "pool=arm"}}, want: "cpu 4, memory 14745Mi, pods 99"},
		"nodes that are not there":          {asks: []ask{{nodes: "pool=riscv", resources: list("cpu", "1")}}, want: "cpu 0, pods 0", said: "no node of the provider that takes pods has the labels pool=riscv"},
		"all nodes, of which it is not for": {asks: []ask{{}}, want: "cpu 10800m, memory 44236Mi, pods 297"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if tc.policy == nil {
				tc.policy = func(*Policy) {}
			}
			p := newSharer(t, tc.policy)
			node := &corev1.Node{}
			if err := p.Server.Get(t.Context(), types.NamespacedName{Name: "sim-1"}, node); err != nil {
				t.Fatal(err)
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"pool":"arm"}}}`))
			if err := p.Server.Patch(t.Context(), node, patch); err != nil {
				t.Fatal(err)
			}
			p.r.options.Supply = p.counts(supply.Options{})
			var s *scope
			for _, one := range tc.asks {
				s = &scope{tenant: tenantOf(plain), slice: slice(func(s *authv1beta1.ResourceSlice) {
					s.Name, s.Spec.Resources = one.name, one.resources
					s.Annotations = map[string]string{authv1beta1.NodeSelectorAnnotation: one.nodes}
				})}
				s.quota = p.quota(one.name)
				if err := p.r.grant(t.Context(), s); err != nil {
					t.Fatal(err)
				}
			}
			got := s.slice.Status.Resources
			if len(tc.asks) > 1 {
				// What the other slice has a share of is not what this is about.
				got = corev1.ResourceList{corev1.ResourceCPU: *got.Cpu(), corev1.ResourceMemory: list("memory", "14745Mi")[corev1.ResourceMemory], corev1.ResourcePods: list("pods", "99")[corev1.ResourcePods]}
			}
			if text := capacity.Text(got); text != tc.want || !strings.Contains(s.resources.message, tc.said) {
				t.Errorf("granted are %s, want %s; it is told %q", text, tc.want, s.resources.message)
			}
			wanted := tc.asks[len(tc.asks)-1].nodes
			if selector := labels.Set(s.slice.Status.NodeSelector).String(); selector != wanted {
				t.Errorf("its pods are to run on nodes with %q, want %q", selector, wanted)
			}
			if kept := p.quota(s.slice.Name).Annotations[authv1beta1.NodeSelectorAnnotation]; kept != wanted {
				t.Errorf("its Quota is for nodes with %q, want %q", kept, wanted)
			}
		})
	}
}

// A slice is for kinds of nodes: by no label that is one node's, or that means something to nobody but the provider, it becomes one of certain nodes.
func TestSlicesNameNoNodes(t *testing.T) {
	for label, want := range map[string]bool{"topology.topolvm.io/node": false, "dedicated-to.example.com/payroll": false, "tenant": false, "node-role.kubernetes.io/worker": false,
		"pool": true, "kubernetes.io/arch": true, "allowed.example.com/pool": true} {
		p := newSharer(t, func(p *Policy) { p.NodeLabels = []string{"allowed.example.com/"} })
		p.r.options.Supply = p.counts(supply.Options{})
		s := slice(func(s *authv1beta1.ResourceSlice) {
			s.Annotations = map[string]string{authv1beta1.NodeSelectorAnnotation: label + "=a"}
		})
		if _, err := p.r.chosen(&scope{slice: s}, nil); (err == nil) != want {
			t.Errorf("a slice of the nodes with label %s: %v", label, err)
		}
	}
}
