package capacity

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"pgregory.net/rapid"
)

// inPool puts a node into a pool of nodes, of an architecture.
func inPool(pool, arch string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels = map[string]string{"pool": pool, corev1.LabelArchStable: arch} }
}

// of has a wish be for the nodes of a pool.
func (w Wish) of(pool string) Wish {
	w.Nodes = labels.Set{"pool": pool}
	return w
}

func TestWhatIsOfferedOfCertainNodes(t *testing.T) {
	nodes := func(p provider) provider {
		return p.node(sharedNode("a", "cpu=40 pods=10", inPool("arm", "arm64"))).node(sharedNode("b", "cpu=60 nvidia.com/gpu=2 pods=10", inPool("amd", "amd64")))
	}
	paris := Owner{"paris", "a"}
	arm64 := Wish{Nodes: labels.Set{corev1.LabelArchStable: "arm64"}}
	for name, tc := range map[string]struct {
		build                       func(provider)
		exclusive                   bool
		rome, romeToo, paris, turin string
	}{
		"a share of theirs": {rome: "cpu=36 pods=9", build: func(p provider) { p.asks(rome, Wish{}.of("arm")) }},
		"what others run elsewhere takes nothing of it": {rome: "cpu=36 pods=9", build: func(p provider) {
			p.pod(boundPod("x", "b", "cpu=50"), nobody).asks(rome, Wish{}.of("arm"))
		}},
		"what others run there does": {rome: "cpu=18 pods=8", build: func(p provider) {
			p.pod(boundPod("x", "a", "cpu=20"), nobody).asks(rome, Wish{}.of("arm"))
		}},
		"what it runs itself does not": {rome: "cpu=36 pods=9", build: func(p provider) {
			p.pod(boundPod("x", "a", "cpu=20"), rome).asks(rome, Wish{}.of("arm"))
		}},
		"what runs on other nodes is its own all the same": {rome: "cpu=50 pods=9", build: func(p provider) {
			p.pod(boundPod("x", "b", "cpu=50"), rome).asks(rome, Wish{}.of("arm"))
		}},
		"a pool each": {rome: "cpu=36 pods=9", romeToo: "cpu=54 nvidia.com/gpu=1 pods=9", build: func(p provider) {
			p.asks(rome, Wish{}.of("arm")).asks(romeToo, Wish{}.of("amd"))
		}},
		"one pool together": {rome: "cpu=18 pods=5", romeToo: "cpu=18 pods=4", build: func(p provider) {
			p.asks(rome, Wish{}.of("arm")).asks(romeToo, Wish{}.of("arm"))
		}},
		"all nodes come after certain ones": {rome: "cpu=57600m nvidia.com/gpu=1 pods=9", romeToo: "cpu=36 pods=9", build: func(p provider) {
			p.asks(rome, Wish{}).asks(romeToo, Wish{}.of("arm"))
		}},
		"what is requested comes first": {rome: "cpu=30 pods=9", romeToo: "cpu=9 pods=1", build: func(p provider) {
			p.asks(rome, Wish{Requested: amounts("cpu=30 pods=9")}.of("arm")).asks(romeToo, Wish{}.of("arm"))
		}},
		"no such node": {rome: "pods=0", build: func(p provider) { p.asks(rome, Wish{}.of("riscv")) }},
		"exclusively": {exclusive: true, rome: "cpu=20 pods=5", turin: "cpu=20 pods=5", build: func(p provider) {
			p.asks(rome, Wish{}.of("arm")).asks(turin, Wish{}.of("arm"))
		}},
		"exclusively of all and of certain ones": {exclusive: true, rome: "cpu=36 pods=9", turin: "cpu=64 nvidia.com/gpu=1 pods=11", build: func(p provider) {
			p.asks(rome, Wish{}.of("arm")).asks(turin, Wish{})
		}},
		"exclusively, two slices against one": {exclusive: true, rome: "cpu=10 pods=3", romeToo: "cpu=10 pods=2", turin: "cpu=20 pods=5", build: func(p provider) {
			p.asks(rome, Wish{}.of("arm")).asks(romeToo, Wish{}.of("arm")).asks(turin, Wish{}.of("arm"))
		}},
		"three slices": {rome: "cpu=18 pods=5", romeToo: "cpu=18 pods=4", paris: "cpu=54 nvidia.com/gpu=1 pods=9", build: func(p provider) {
			p.asks(rome, Wish{}.of("arm")).asks(romeToo, Wish{}.of("arm")).asks(paris, Wish{}.of("amd"))
		}},
		"exclusively, what is free elsewhere goes to who uses all": {exclusive: true, rome: "cpu=20 pods=5", turin: "cpu=20 pods=5", paris: "cpu=60 nvidia.com/gpu=1 pods=10", build: func(p provider) {
			p.asks(rome, Wish{}.of("arm")).asks(turin, Wish{}.of("arm")).asks(paris, Wish{})
		}},
		"exclusively, the same nodes by another label": {exclusive: true, rome: "cpu=20 pods=5", turin: "cpu=20 pods=5", build: func(p provider) {
			p.asks(rome, Wish{}.of("arm")).asks(turin, arm64)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := nodes(newProvider(t))
			tc.build(p)
			for of, want := range map[Owner]string{rome: tc.rome, romeToo: tc.romeToo, paris: tc.paris, turin: tc.turin} {
				if got := p.offered(of, tc.exclusive); got != want {
					t.Errorf("%v is offered %s, want %s", of, got, want)
				}
			}
		})
	}
}

func TestCertainNodesSayWhatTheyAre(t *testing.T) {
	p := newProvider(t).node(sharedNode("a", "cpu=4", inPool("arm", "arm64"))).node(sharedNode("b", "cpu=16", inPool("amd", "amd64")))
	p.asks(rome, Wish{}.of("arm")).asks(romeToo, Wish{})
	for _, step := range []struct {
		change           func()
		largest, arch    string
		everywhere, both string
	}{
		{func() {}, "cpu=4", "arm64", "cpu=16", ""},
		{func() { p.node(sharedNode("c", "cpu=8", inPool("arm", "arm64"))) }, "cpu=8", "arm64", "cpu=16", ""},
		{func() { p.node(sharedNode("b", "cpu=16", inPool("arm", "amd64"))) }, "cpu=16", "", "cpu=16", ""},
		{func() { p.node(sharedNode("b", "cpu=16", inPool("amd", "amd64"))) }, "cpu=8", "arm64", "cpu=16", ""},
		{func() { p.ForgetNode("a"); p.ForgetNode("c") }, "", "", "cpu=16", "amd64"},
	} {
		step.change()
		offers := p.Offers(false)
		there, all := offers[rome].Nodes, offers[romeToo].Nodes
		if got := shown(there.LargestPod); got != step.largest || there.Architecture != step.arch {
			t.Errorf("of the pool: %s on %q, want %s on %q", got, there.Architecture, step.largest, step.arch)
		}
		if got := shown(all.LargestPod); got != step.everywhere || all.Architecture != step.both {
			t.Errorf("of all: %s on %q, want %s on %q", got, all.Architecture, step.everywhere, step.both)
		}
	}
}

// Whatever nodes there are and whoever asks for whichever: exclusive offers of some nodes are never more than what is free on them, and all
// together never more than what is free; a label that all nodes have changes nothing.
func TestCertainNodesProperties(t *testing.T) {
	arm, arm64 := labels.Set{"pool": "arm"}, labels.Set{corev1.LabelArchStable: "arm64"}
	selectors := []labels.Set{nil, arm, {"pool": "amd"}, arm64, labels.Merge(arm, arm64)}
	owners := []Owner{rome, romeToo, turin, {"paris", "a"}}
	rapid.Check(t, func(rt *rapid.T) {
		p, plain, alike, nodes := newProvider(t), newProvider(t), newProvider(t), []corev1.Node{}
		for i := range rapid.IntRange(0, 6).Draw(rt, "nodes") {
			pool, arch := rapid.SampledFrom([]string{"arm", "amd"}).Draw(rt, "pool"), rapid.SampledFrom([]string{"arm64", "amd64"}).Draw(rt, "arch")
			has := fmt.Sprintf("cpu=%d pods=3", rapid.IntRange(0, 20).Draw(rt, "cpu"))
			node := func(pool string) *corev1.Node { return sharedNode(fmt.Sprint(i), has, inPool(pool, arch)) }
			nodes = append(nodes, *node(pool))
			p.node(node(pool))
			plain.node(node(pool))
			alike.node(node("same"))
		}
		asks := map[Owner]labels.Set{}
		for _, of := range owners {
			w := percent(rapid.Int32Range(0, 100).Draw(rt, "percentage"))
			plain.asks(of, w)
			alike.asks(of, w.of("same"))
			asks[of] = rapid.SampledFrom(selectors).Draw(rt, "asks for")
			w.Nodes = asks[of]
			p.asks(of, w)
		}
		for _, exclusive := range []bool{false, true} {
			if diff := cmp.Diff(plain.Offers(exclusive), alike.Offers(exclusive)); len(nodes) > 0 && diff != "" {
				rt.Fatalf("a label that all nodes have changes what is offered (exclusively: %t): %s", exclusive, diff)
			}
		}
		offers := p.Offers(true)
		for _, selector := range selectors {
			sum := corev1.ResourceList{}
			for of, offer := range offers {
				if Within(nodes, asks[of], selector) {
					add(sum, offer.Resources)
				}
			}
			if more := Less(NodesHave(nodes, nil, selector), sum); len(more) > 0 {
				rt.Fatalf("of what nodes with %q have more is offered exclusively: %v, %s", selector, more, shown(sum))
			}
		}
	})
}

func TestParseNodes(t *testing.T) {
	for text, want := range map[string]string{
		"":                             "",
		"pool=spot":                    "pool=spot",
		" b = 2 , a=1":                 "a=1,b=2",
		"empty=":                       "empty=",
		"pool":                         "the node selector is not like key=value",
		"pool!=spot":                   "the node selector is not like key=value",
		"pool in (a,b)":                "the node selector is not like key=value",
		"a b=c":                        `the node selector is not like key=value,key=value: label: Invalid value: "a b"`,
		"=x":                           "the node selector is not like key=value",
		"a=" + strings.Repeat("x", 64): "the node selector is not like key=value",
		"kubernetes.io/hostname=n":     "the node selector names a node",
		strings.TrimSuffix(strings.Repeat("k%d=v,", 17), ","): "at most 16",
	} {
		if strings.Contains(text, "%d") {
			parts := strings.Split(text, ",")
			for i := range parts {
				parts[i] = fmt.Sprintf(parts[i], i)
			}
			text = strings.Join(parts, ",")
		}
		nodes, err := ParseNodes(text)
		got := nodes.String()
		if err != nil {
			got = err.Error()
		}
		if got != want && (err == nil || !strings.Contains(got, want)) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}
