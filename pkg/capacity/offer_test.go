package capacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

const gpu corev1.ResourceName = "nvidia.com/gpu"

// amounts reads "cpu=4 memory=8Gi".
func amounts(text string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for _, one := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(one, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return list
}

// shown is a list as people read it, in order.
func shown(list corev1.ResourceList) string {
	parts := make([]string, 0, len(list))
	for _, name := range names(list) {
		quantity := list[name]
		parts = append(parts, string(name)+"="+quantity.String())
	}
	return strings.Join(parts, " ")
}

func sharedNode(name, has string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Allocatable: amounts(has),
		Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
	for _, c := range change {
		c(n)
	}
	return n
}

func boundPod(name, node, takes string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "a", Resources: corev1.ResourceRequirements{Requests: amounts(takes)}}}}}
	for _, c := range change {
		c(p)
	}
	return p
}

// provider is a pool that takes everything.
type provider struct {
	*Pool
	t testing.TB
}

func newProvider(t testing.TB) provider { return provider{NewPool(nil), t} }

func (p provider) took(err error) provider {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
	return p
}

func (p provider) node(n *corev1.Node) provider { p.t.Helper(); return p.took(p.Node(n)) }
func (p provider) pod(pod *corev1.Pod, of Owner) provider {
	p.t.Helper()
	return p.took(p.Pod(pod, of))
}
func (p provider) asks(of Owner, w Wish) provider { p.t.Helper(); return p.took(p.Ask(of, w)) }

var (
	rome, turin, nobody = Owner{"rome", "a"}, Owner{"turin", "a"}, Owner{}
	romeToo             = Owner{"rome", "b"}
)

func percent(p int32) Wish { return Wish{Percentages: Percentages{Chart: &p}} }

func (p provider) offered(of Owner, exclusive bool) string {
	return shown(p.Offers(exclusive)[of].Resources)
}

// The numbers of the system's own definition: 90 % of what is free, whatever changes.
func TestNinetyPercentOfWhatIsFree(t *testing.T) {
	p := newProvider(t).asks(rome, Wish{})
	for _, step := range []struct {
		what   string
		change func()
		want   string
	}{
		{"100 are free", func() { p.node(sharedNode("a", "cpu=60")).node(sharedNode("b", "cpu=40")) }, "cpu=90 pods=0"},
		{"the provider's own applications take 50", func() { p.pod(boundPod("own", "a", "cpu=50"), nobody) }, "cpu=45 pods=0"},
		{"what is free grows to 200", func() { p.node(sharedNode("c", "cpu=150")) }, "cpu=180 pods=0"},
		{"the applications go", func() { p.ForgetPod(types.NamespacedName{Namespace: "shop", Name: "own"}) }, "cpu=225 pods=0"},
		{"a node goes", func() { p.ForgetNode("c") }, "cpu=90 pods=0"},
	} {
		step.change()
		if got := p.offered(rome, false); got != step.want {
			t.Errorf("%s: offered %s, want %s", step.what, got, step.want)
		}
	}
}

func TestWhatIsOffered(t *testing.T) {
	unready := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }
	cordoned := func(n *corev1.Node) { n.Spec.Unschedulable = true }
	full, half, none := percent(100), percent(50), percent(0)
	for name, tc := range map[string]struct {
		build     func(provider)
		exclusive bool
		// want are offers, with what is too much after a bar, of rome's slices a and b and of turin's.
		rome, romeToo, turin string
	}{
		"one device is not rounded away": {rome: "nvidia.com/gpu=1 pods=9", build: func(p provider) { p.node(sharedNode("a", "nvidia.com/gpu=1 pods=10")).asks(rome, Wish{}) }},
		"nor one page":                   {rome: "hugepages-2Mi=2Mi pods=0", build: func(p provider) { p.node(sharedNode("a", "hugepages-2Mi=2Mi")).asks(rome, Wish{}) }},
		"pages are whole":                {rome: "hugepages-1Gi=9Gi pods=0", build: func(p provider) { p.node(sharedNode("a", "hugepages-1Gi=11Gi")).asks(rome, Wish{}) }},
		"devices are rounded down":       {rome: "nvidia.com/gpu=7 pods=0", build: func(p provider) { p.node(sharedNode("a", "nvidia.com/gpu=8")).asks(rome, Wish{}) }},
		"nothing of nothing": {rome: "nvidia.com/gpu=0 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "nvidia.com/gpu=1")).pod(boundPod("x", "a", "nvidia.com/gpu=1"), nobody).asks(rome, Wish{})
		}},
		"a share of nothing is nothing": {rome: "cpu=0 nvidia.com/gpu=0 pods=0", build: func(p provider) { p.node(sharedNode("a", "nvidia.com/gpu=4 cpu=8")).asks(rome, none) }},
		"a core is rounded down":        {rome: "cpu=3m memory=4 pods=0", build: func(p provider) { p.node(sharedNode("a", "cpu=4m memory=5")).asks(rome, Wish{}) }},
		"what is requested is offered": {rome: "cpu=3 memory=9Gi nvidia.com/gpu=2 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=8 memory=10Gi")).asks(rome, Wish{Requested: amounts("cpu=3 nvidia.com/gpu=2")})
		}},
		"own pods do not count": {rome: "cpu=9 pods=9", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10 pods=10")).pod(boundPod("x", "a", "cpu=4"), rome).asks(rome, Wish{})
		}},
		"others' pods do": {rome: "cpu=5400m pods=8", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10 pods=10")).pod(boundPod("x", "a", "cpu=4"), turin).asks(rome, Wish{})
		}},
		"pods that are bound but did not start do": {rome: "cpu=5400m pods=8", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10 pods=10")).pod(boundPod("x", "a", "cpu=4", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }), nobody).asks(rome, Wish{})
		}},
		"pods that are not bound do not": {rome: "cpu=9 pods=9", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10 pods=10")).pod(boundPod("x", "", "cpu=4"), nobody).asks(rome, Wish{})
		}},
		"pods that have finished do not": {rome: "cpu=9 pods=9", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10 pods=10")).pod(boundPod("x", "a", "cpu=4"), nobody).
				pod(boundPod("x", "a", "cpu=4", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), nobody).asks(rome, Wish{})
		}},
		"nodes that are not ready, and their pods, do not": {rome: "cpu=9 pods=9", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10 pods=10")).node(sharedNode("b", "cpu=10 pods=10")).pod(boundPod("x", "b", "cpu=4"), nobody).node(sharedNode("b", "cpu=10 pods=10", unready)).asks(rome, Wish{})
		}},
		"nodes that are cordoned do not": {rome: "cpu=9 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10")).node(sharedNode("b", "cpu=10", func(n *corev1.Node) { n.Spec.Unschedulable = true })).asks(rome, Wish{})
		}},
		"virtual nodes do not": {rome: "cpu=9 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10")).node(sharedNode("v", "cpu=10", func(n *corev1.Node) { n.Labels = map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType} })).asks(rome, Wish{})
		}},
		"a pod known before its node": {rome: "cpu=5400m pods=8", build: func(p provider) {
			p.pod(boundPod("x", "a", "cpu=4"), nobody).node(sharedNode("a", "cpu=10 pods=10")).asks(rome, Wish{})
		}},
		"a pod that is resized": {rome: "cpu=7200m pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10")).pod(boundPod("x", "a", "cpu=4"), nobody).pod(boundPod("x", "a", "cpu=2"), nobody).asks(rome, Wish{})
		}},
		"nodes with more pods than room": {rome: "cpu=0 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=1")).pod(boundPod("x", "a", "cpu=4"), nobody).asks(rome, Wish{})
		}},

		"two slices share a pool":          {rome: "cpu=45 pods=0", romeToo: "cpu=45 pods=0", build: func(p provider) { p.node(sharedNode("a", "cpu=100")).asks(rome, Wish{}).asks(romeToo, Wish{}) }},
		"by halves that lose no device":    {rome: "nvidia.com/gpu=2 pods=0", romeToo: "nvidia.com/gpu=1 pods=0", build: func(p provider) { p.node(sharedNode("a", "nvidia.com/gpu=3")).asks(rome, full).asks(romeToo, full) }},
		"and one device is offered to one": {rome: "nvidia.com/gpu=1 pods=0", romeToo: "nvidia.com/gpu=0 pods=0", build: func(p provider) { p.node(sharedNode("a", "nvidia.com/gpu=1")).asks(rome, Wish{}).asks(romeToo, Wish{}) }},
		"each by its percentage":           {rome: "cpu=50 pods=0", romeToo: "cpu=25 pods=0", build: func(p provider) { p.node(sharedNode("a", "cpu=100")).asks(rome, full).asks(romeToo, half) }},
		"what one requests the other does not get": {rome: "cpu=40 pods=0", romeToo: "cpu=54 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=100")).asks(rome, Wish{Requested: amounts("cpu=40")}).asks(romeToo, Wish{})
		}},

		"two consumers get each its share": {rome: "cpu=90 pods=0", turin: "cpu=90 pods=0", build: func(p provider) { p.node(sharedNode("a", "cpu=100")).asks(rome, Wish{}).asks(turin, Wish{}) }},
		"exclusively they get half":        {exclusive: true, rome: "cpu=50 pods=0", turin: "cpu=50 pods=0", build: func(p provider) { p.node(sharedNode("a", "cpu=100")).asks(rome, Wish{}).asks(turin, Wish{}) }},
		"two slices get no more than one": {exclusive: true, rome: "cpu=25 pods=0", romeToo: "cpu=25 pods=0", turin: "cpu=50 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=100")).asks(rome, Wish{}).asks(romeToo, Wish{}).asks(turin, Wish{})
		}},
		"pods of who asks for nothing leave less": {exclusive: true, rome: "cpu=30 pods=0", turin: "cpu=30 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=100 pods=1")).pod(boundPod("x", "a", "cpu=40"), Owner{"oslo", "a"}).asks(rome, Wish{}).asks(turin, Wish{})
		}},
		"who wants less gets all of it":    {exclusive: true, rome: "cpu=20 pods=0", turin: "cpu=80 pods=0", build: func(p provider) { p.node(sharedNode("a", "cpu=100")).asks(rome, percent(20)).asks(turin, full) }},
		"the last device is promised once": {exclusive: true, rome: "nvidia.com/gpu=1 pods=0", turin: "nvidia.com/gpu=0 pods=0", build: func(p provider) { p.node(sharedNode("a", "nvidia.com/gpu=1")).asks(rome, Wish{}).asks(turin, Wish{}) }},
		"to whom it runs for": {exclusive: true, rome: "nvidia.com/gpu=0 pods=1", turin: "nvidia.com/gpu=1 pods=1", build: func(p provider) {
			p.node(sharedNode("a", "nvidia.com/gpu=1 pods=2")).pod(boundPod("x", "a", "nvidia.com/gpu=1"), turin).asks(rome, Wish{}).asks(turin, Wish{})
		}},
		"what is requested has no priority": {exclusive: true, rome: "cpu=50 pods=0", turin: "cpu=50 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=100")).asks(rome, Wish{Requested: amounts("cpu=400")}).asks(turin, Wish{})
		}},
		"what runs stays": {exclusive: true, rome: "cpu=82 pods=1", turin: "cpu=18 pods=1", build: func(p provider) {
			p.node(sharedNode("a", "cpu=100 pods=2")).pod(boundPod("x", "a", "cpu=80"), rome).asks(rome, Wish{}).asks(turin, Wish{})
		}},

		"less than what runs is not offered": {rome: "cpu=8 pods=1|cpu=4400m", build: func(p provider) {
			p.node(sharedNode("a", "cpu=4 pods=2")).pod(boundPod("x", "a", "cpu=8"), rome).asks(rome, Wish{})
		}},
		"nor less than runs on a node that takes no more": {rome: "cpu=8 pods=1|cpu=4400m pods=1", build: func(p provider) {
			p.node(sharedNode("a", "cpu=4")).node(sharedNode("b", "cpu=10")).pod(boundPod("x", "b", "cpu=8"), rome).node(sharedNode("b", "cpu=10", cordoned)).asks(rome, Wish{})
		}},
		"nor on one that is lost": {rome: "cpu=8 pods=1|cpu=8 pods=1", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10", unready)).pod(boundPod("x", "a", "cpu=8"), rome).asks(rome, Wish{})
		}},
		"nor of a device there": {rome: "cpu=9 nvidia.com/gpu=2 pods=9|nvidia.com/gpu=2", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10 pods=10")).pod(boundPod("x", "b", "nvidia.com/gpu=2"), rome).node(sharedNode("b", "nvidia.com/gpu=4", cordoned)).asks(rome, Wish{})
		}},
		"what runs there takes nothing of what is free": {rome: "cpu=90 pods=1|pods=1", turin: "cpu=90 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=100")).node(sharedNode("b", "cpu=100", cordoned)).pod(boundPod("x", "b", "cpu=60"), rome).asks(rome, Wish{}).asks(turin, Wish{})
		}},
		"but exclusively others get less by it": {exclusive: true, rome: "cpu=60 pods=1|pods=1", turin: "cpu=40 pods=0", build: func(p provider) {
			p.node(sharedNode("a", "cpu=100")).node(sharedNode("b", "cpu=100", cordoned)).pod(boundPod("x", "b", "cpu=60"), rome).asks(rome, Wish{}).asks(turin, Wish{})
		}},
		"and no less once it takes pods again": {rome: "cpu=18 pods=1|pods=1", build: func(p provider) {
			p.node(sharedNode("b", "cpu=20", cordoned)).pod(boundPod("x", "b", "cpu=8"), rome).node(sharedNode("b", "cpu=20")).asks(rome, Wish{})
		}},
		"nor less than runs of a request": {rome: "cpu=8 pods=1|cpu=5", build: func(p provider) {
			p.node(sharedNode("a", "cpu=10 pods=2")).pod(boundPod("x", "a", "cpu=8"), rome).asks(rome, Wish{Requested: amounts("cpu=3")})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			tc.build(p)
			for of, want := range map[Owner]string{rome: tc.rome, romeToo: tc.romeToo, turin: tc.turin} {
				offer := p.Offers(tc.exclusive)[of]
				got := shown(offer.Resources)
				if over := shown(offer.Over); over != "" {
					got += "|" + over
				}
				if got != want {
					t.Errorf("slice %s of %s is offered %q, want %q", of.Slice, of.Consumer, got, want)
				}
			}
		})
	}
}

// Nodes whose taints keep consumers' pods off have nothing for them.
func TestTaintsThatKeepPodsOff(t *testing.T) {
	const prefix = "node-role.kubernetes.io/"
	only := func(keys ...string) Tolerated { return func(key string) bool { return slices.Contains(keys, key) } }
	for name, tc := range map[string]struct {
		tolerated Tolerated
		key       string
		effect    corev1.TaintEffect
		want      bool
	}{
		"a control plane":                          {nil, prefix + "control-plane", corev1.TaintEffectNoSchedule, false},
		"an old one":                               {nil, prefix + "master", corev1.TaintEffectNoSchedule, false},
		"one that throws out what runs":            {nil, prefix + "etcd", corev1.TaintEffectNoExecute, false},
		"one that may be tolerated":                {only(prefix + "control-plane"), prefix + "control-plane", corev1.TaintEffectNoSchedule, true},
		"one that would rather have none":          {nil, prefix + "control-plane", corev1.TaintEffectPreferNoSchedule, true},
		"a pool for somebody else":                 {only("batch"), "dedicated", corev1.TaintEffectNoSchedule, false},
		"a pool that consumers' pods may tolerate": {only("batch"), "batch", corev1.TaintEffectNoSchedule, true},
		"a pool for who asks for its devices":      {nil, "nvidia.com/gpu", corev1.TaintEffectNoSchedule, true},
		"by a device that it does not have":        {nil, "amd.com/gpu", corev1.TaintEffectNoSchedule, false},
		"a node that is short of memory":           {nil, corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule, true},
		"a node that is short of disk":             {nil, corev1.TaintNodeDiskPressure, corev1.TaintEffectNoSchedule, false},
		"a node that is not set up yet":            {nil, "node.cloudprovider.kubernetes.io/uninitialized", corev1.TaintEffectNoSchedule, false},
		"a node that was shut down":                {nil, corev1.TaintNodeOutOfService, corev1.TaintEffectNoExecute, false},
	} {
		t.Run(name, func(t *testing.T) {
			node := sharedNode("a", "cpu=10 nvidia.com/gpu=2", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: tc.key, Effect: tc.effect}} })
			want := "pods=0"
			if tc.want {
				want = "cpu=9 nvidia.com/gpu=1 pods=0"
			}
			p := provider{NewPool(tc.tolerated), t}.node(node).asks(rome, Wish{})
			if got := p.offered(rome, false); got != want {
				t.Errorf("offered are %s, want %s", got, want)
			}
			if got := len(NodesHave([]corev1.Node{*node}, tc.tolerated, nil)) > 0; got != tc.want {
				t.Errorf("the cluster has something: %v", got)
			}
		})
	}
}

// What a slice uses is what its pods request on nodes that take pods.
func TestWhatASliceUses(t *testing.T) {
	p := newProvider(t).node(sharedNode("a", "cpu=10 memory=10Gi")).pod(boundPod("x", "a", "cpu=2 memory=1Gi"), rome).
		pod(boundPod("y", "a", "cpu=1"), rome).pod(boundPod("z", "a", "cpu=4"), nobody).pod(boundPod("w", "gone", "cpu=4"), rome)
	if got, want := Text(p.Used(rome)), "cpu 3, memory 1Gi, pods 2"; got != want {
		t.Errorf("used are %s, want %s", got, want)
	}
	if got := p.Used(Owner{Consumer: rome.Consumer, Slice: "another"}); len(got) != 0 {
		t.Errorf("another slice uses %v", got)
	}
}

func TestTheClosestPercentageWins(t *testing.T) {
	one, two, three := int32(10), int32(20), int32(30)
	for name, tc := range map[string]struct {
		said Percentages
		want int64
	}{
		"nobody says":   {Percentages{}, 90},
		"the chart":     {Percentages{Chart: &three}, 30},
		"the Tenant":    {Percentages{Tenant: &two, Chart: &three}, 20},
		"the class":     {Percentages{Class: &one, Tenant: &two, Chart: &three}, 10},
		"zero is a say": {Percentages{Class: new(int32(0)), Chart: &three}, 0},
	} {
		if got := tc.said.Closest(); got != tc.want {
			t.Errorf("%s: %d, want %d", name, got, tc.want)
		}
	}
}

func TestTheLargestPod(t *testing.T) {
	p := newProvider(t).asks(rome, percent(1)).node(sharedNode("a", "cpu=8 memory=4Gi nvidia.com/gpu=2")).node(sharedNode("b", "cpu=4 memory=16Gi"))
	for _, step := range []struct {
		change func()
		want   string
	}{
		{func() {}, "cpu=8 memory=16Gi nvidia.com/gpu=2"},
		{func() { p.pod(boundPod("x", "a", "cpu=6 nvidia.com/gpu=2"), nobody) }, "cpu=4 memory=16Gi nvidia.com/gpu=0"},
		{func() { p.pod(boundPod("y", "b", "cpu=3 memory=15Gi"), rome) }, "cpu=2 memory=4Gi nvidia.com/gpu=0"},
		{func() { p.ForgetPod(types.NamespacedName{Namespace: "shop", Name: "x"}) }, "cpu=8 memory=4Gi nvidia.com/gpu=2"},
		{func() { p.pod(boundPod("z", "a", "memory=1000000001"), nobody) }, "cpu=8 memory=3142Mi nvidia.com/gpu=2"},
		{func() { p.ForgetNode("a") }, "cpu=1 memory=1Gi"},
		{func() { p.ForgetNode("b") }, ""},
	} {
		step.change()
		if got := shown(p.everywhere().nodes().LargestPod); got != step.want {
			t.Errorf("the largest pod is %q, want %q", got, step.want)
		}
		if got := shown(p.Offers(false)[rome].Nodes.LargestPod); got != step.want {
			t.Errorf("the consumer is told %q, want %q", got, step.want)
		}
	}
}

// What all nodes are is told, and nothing of what only some are.
func TestThePlatformIsThatOfAllNodes(t *testing.T) {
	of := func(os, arch string) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Labels = map[string]string{corev1.LabelOSStable: os, corev1.LabelArchStable: arch}
		}
	}
	p := newProvider(t).asks(rome, Wish{})
	for _, step := range []struct {
		what   string
		change func()
		want   string
	}{
		{"there is no node", func() {}, "/"},
		{"there is one", func() { p.node(sharedNode("a", "cpu=1", of("linux", "arm64"))) }, "linux/arm64"},
		{"and another of its kind", func() { p.node(sharedNode("b", "cpu=1", of("linux", "arm64"))) }, "linux/arm64"},
		{"two architectures", func() { p.node(sharedNode("c", "cpu=1", of("linux", "amd64"))) }, "linux/"},
		{"and systems", func() { p.node(sharedNode("d", "cpu=1", of("windows", "amd64"))) }, "/"},
		{"one of them takes no pods", func() {
			p.node(sharedNode("d", "cpu=1", of("windows", "amd64"), func(n *corev1.Node) { n.Spec.Unschedulable = true }))
		}, "linux/"},
		{"one is gone", func() { p.ForgetNode("c") }, "linux/arm64"},
		{"one without labels says it in its status", func() {
			p.node(sharedNode("e", "cpu=1", func(n *corev1.Node) {
				n.Status.NodeInfo = corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "arm64"}
			}))
		}, "linux/arm64"},
		{"one that says nothing", func() { p.node(sharedNode("e", "cpu=1")) }, "/"},
	} {
		before := p.Offers(false)[rome]
		step.change()
		after := p.Offers(false)[rome]
		if got := after.Nodes.OperatingSystem + "/" + after.Nodes.Architecture; got != step.want {
			t.Errorf("%s: %s, want %s", step.what, got, step.want)
		}
		after.Resources, after.Nodes.LargestPod = before.Resources, before.Nodes.LargestPod
		if _, told := Settled(before, after, false); told != !cmp.Equal(before.Nodes, after.Nodes) {
			t.Errorf("%s: told %v", step.what, told)
		}
	}
}

func TestSmallChangesAreNotTold(t *testing.T) {
	for name, tc := range map[string]struct {
		last, next, running string
		exclusive, want     bool
		largest, then       string
	}{
		"a pod may be a little larger":    {largest: "cpu=100", then: "cpu=101"},
		"a pod may be larger":             {largest: "cpu=100", then: "cpu=102", want: true},
		"a pod may be smaller":            {largest: "cpu=8 memory=8Gi", then: "cpu=8 memory=4Gi", want: true},
		"a device less for one pod":       {largest: "nvidia.com/gpu=200", then: "nvidia.com/gpu=199", want: true},
		"with it no crumb is told":        {last: "cpu=100", next: "cpu=100500m", largest: "cpu=100", then: "cpu=50", want: true},
		"a device that no node has more":  {largest: "cpu=8 nvidia.com/gpu=1", then: "cpu=8", want: true},
		"nothing":                         {last: "cpu=100", next: "cpu=100"},
		"one percent more":                {last: "cpu=100", next: "cpu=101"},
		"one percent less":                {last: "cpu=100", next: "cpu=99"},
		"a bit more than that":            {last: "cpu=100", next: "cpu=101001m", want: true},
		"a bit less than that":            {last: "cpu=100", next: "cpu=98999m", want: true},
		"one device of a thousand":        {last: "nvidia.com/gpu=1000", next: "nvidia.com/gpu=999", want: true},
		"one pod of a thousand":           {last: "pods=1000", next: "pods=999"},
		"one pod of ten":                  {last: "pods=10", next: "pods=9", want: true},
		"anything of nothing":             {last: "memory=0", next: "memory=1", want: true},
		"another resource":                {last: "cpu=1", next: "cpu=1 memory=1", want: true},
		"a resource less":                 {last: "cpu=1 memory=1", next: "cpu=1", want: true},
		"one of two":                      {last: "cpu=100 memory=100", next: "cpu=100 memory=200", want: true},
		"less than runs":                  {last: "cpu=100", next: "cpu=100500m", running: "cpu=100500m", want: true},
		"a little less, exclusively":      {last: "cpu=100", next: "cpu=99999m", exclusive: true, want: true},
		"a little more, exclusively":      {last: "cpu=100", next: "cpu=100001m", exclusive: true},
		"the same in other words":         {last: "cpu=1", next: "cpu=1000m"},
		"quantities beyond what is usual": {last: "memory=1Ei", next: "memory=2Ei", want: true},
	} {
		last, next := Offer{Resources: amounts(tc.last)}, Offer{Resources: amounts(tc.next), Running: amounts(tc.running)}
		last.Nodes.LargestPod, next.Nodes.LargestPod = amounts(tc.largest), amounts(tc.then)
		settled, changed := Settled(last, next, tc.exclusive)
		want := last
		if tc.want {
			want = next
		}
		if tc.then != "" {
			want.Resources = last.Resources
		}
		if changed != tc.want || shown(settled.Resources) != shown(want.Resources) || shown(settled.Nodes.LargestPod) != shown(want.Nodes.LargestPod) {
			t.Errorf("%s: told %v: %s", name, changed, shown(settled.Resources))
		}
	}
}

// Whatever is believed of nodes, pods and wishes, in whatever order: the sums are those of a walk over all, no device is lost, a larger
// percentage never offers less, and exclusive offers are never more than what is free, unless what runs is.
func TestOffersProperties(t *testing.T) {
	resources := []string{"cpu", "memory", "nvidia.com/gpu", "hugepages-2Mi", "pods"}
	list := func(t *rapid.T, what string, most int) string {
		var parts []string
		for _, name := range resources {
			n := rapid.IntRange(0, most).Draw(t, what+" "+name)
			if name == "hugepages-2Mi" {
				n *= 2 << 20
			}
			if name != "pods" || what == "node" {
				parts = append(parts, fmt.Sprintf("%s=%d", name, n))
			}
		}
		return strings.Join(parts, " ")
	}
	owners := []Owner{nobody, rome, romeToo, turin}
	rapid.Check(t, func(rt *rapid.T) {
		p := newProvider(t)
		nodes, pods, podOwners := map[string]*corev1.Node{}, map[string]*corev1.Pod{}, map[string]Owner{}
		for range rapid.IntRange(1, 60).Draw(rt, "events") {
			name := rapid.SampledFrom(strings.Split("abcdefgh", "")).Draw(rt, "name")
			switch rapid.IntRange(0, 5).Draw(rt, "event") {
			case 0:
				delete(nodes, name)
				p.ForgetNode(name)
			case 1, 2:
				nodes[name] = sharedNode(name, list(rt, "node", 12)+" ephemeral-storage=1", func(n *corev1.Node) { n.Spec.Unschedulable = rapid.Bool().Draw(rt, "cordoned") })
				p.node(nodes[name])
			case 3:
				delete(pods, name)
				p.ForgetPod(types.NamespacedName{Namespace: "shop", Name: name})
			default:
				pods[name] = boundPod(name, rapid.SampledFrom(append(strings.Split("abcdefgh", ""), "")).Draw(rt, "on"), list(rt, "pod", 5))
				podOwners[name] = rapid.SampledFrom(owners).Draw(rt, "whose")
				p.pod(pods[name], podOwners[name])
			}
		}
		wishes := map[Owner]Wish{}
		for _, of := range owners[1:] {
			if rapid.IntRange(0, 3).Draw(rt, "asks") == 0 {
				continue
			}
			w := percent(rapid.Int32Range(0, 100).Draw(rt, "percentage"))
			if rapid.Bool().Draw(rt, "requests") {
				w.Requested = amounts(fmt.Sprintf("nvidia.com/gpu=%d", rapid.IntRange(0, 20).Draw(rt, "requested")))
			}
			wishes[of] = w
			p.asks(of, w)
		}
		// The same by another way: all that there is at the end, pods first.
		again := newProvider(t)
		for name, pod := range pods {
			again.pod(pod, podOwners[name])
		}
		for _, node := range nodes {
			again.node(node)
		}
		for of, w := range wishes {
			again.asks(of, w)
		}
		for _, exclusive := range []bool{false, true} {
			if diff := cmp.Diff(again.Offers(exclusive), p.Offers(exclusive)); diff != "" {
				rt.Fatalf("offers depend on the order of events: %s", diff)
			}
		}
		if diff := cmp.Diff(again.everywhere().nodes().LargestPod, p.everywhere().nodes().LargestPod); diff != "" {
			rt.Fatalf("the largest pod depends on the order of events: %s", diff)
		}
		walked(rt, p, nodes, pods, podOwners)
		for of, w := range wishes {
			mine := p.Free(of.Consumer)
			offers := p.Offers(false)[of]
			ran := corev1.ResourceList{}
			for name, pod := range pods {
				if podOwners[name] == of && pod.Spec.NodeName != "" {
					add(ran, PodRequests(&pod.Spec))
				}
			}
			if less := Less(offers.Running, ran); len(less) > 0 || len(Less(offers.Resources, ran)) > 0 {
				rt.Fatalf("%s run, and %s are offered: %v is missing", shown(ran), shown(offers.Resources), less)
			}
			if quantity := mine[gpu]; of == turin && w.Requested == nil && *w.Percentages.Chart > 0 && quantity.Sign() > 0 {
				if offered := offers.Resources[gpu]; offered.Sign() == 0 {
					rt.Fatalf("of %s devices none is offered", quantity.String())
				}
			}
			more := *w.Percentages.Chart
			more += rapid.Int32Range(0, 100-more).Draw(rt, "more")
			p.asks(of, Wish{Requested: w.Requested, Percentages: Percentages{Chart: &more}})
			for _, exclusive := range []bool{false, true} {
				if exclusive && of.Consumer == "rome" {
					continue // by rounding a piece may go from one slice to another
				}
				before, after := again.Offers(exclusive)[of].Resources, p.Offers(exclusive)[of].Resources
				if less := Less(after, before); len(less) > 0 {
					rt.Fatalf("with %d instead of %d percent (exclusive: %v) less %v is offered: %s, %s", more, *w.Percentages.Chart, exclusive, less, shown(before), shown(after))
				}
			}
			p.asks(of, w)
		}
		free := map[string]Owner{} // of what others' pods take that ask for nothing, nothing is free
		for name, of := range podOwners {
			if _, asks := wishes[of]; asks {
				free[name] = of
			}
		}
		sum, running := corev1.ResourceList{}, corev1.ResourceList{}
		for _, offer := range p.Offers(true) {
			add(sum, offer.Resources)
			add(running, offer.Running)
		}
		for name, offered := range sum {
			there := allFree(nodes, pods, free, name)
			if run := running[name]; offered.Cmp(there) > 0 && offered.Cmp(run) > 0 {
				rt.Fatalf("of %s are %s offered exclusively, and %s free (%s running)", name, offered.String(), there.String(), run.String())
			}
		}
	})
}

// counted are the nodes that take pods.
func counted(nodes map[string]*corev1.Node, name string) bool {
	n := nodes[name]
	return n != nil && Tolerated(nil).TakesPods(n)
}

// allFree is what nodes have less what the provider's own pods take, by a walk.
func allFree(nodes map[string]*corev1.Node, pods map[string]*corev1.Pod, whose map[string]Owner, name corev1.ResourceName) resource.Quantity {
	sum := resource.Quantity{}
	for _, n := range nodes {
		if Tolerated(nil).TakesPods(n) {
			sum.Add(n.Status.Allocatable[name])
		}
	}
	for key, pod := range pods {
		if counted(nodes, pod.Spec.NodeName) && whose[key] == nobody {
			sum.Sub(PodRequests(&pod.Spec)[name])
		}
	}
	return sum
}

// walked compares sums with a walk over everything.
func walked(rt *rapid.T, p provider, nodes map[string]*corev1.Node, pods map[string]*corev1.Pod, whose map[string]Owner) {
	for _, consumer := range []string{"rome", "turin", "x"} {
		others := map[string]Owner{}
		for name := range pods {
			if of := whose[name]; of.Consumer == consumer {
				others[name] = Owner{"own", "own"}
			}
		}
		got := p.Free(consumer)
		for _, name := range names(got) {
			want := allFree(nodes, pods, others, name)
			if want.Sign() < 0 {
				want = resource.Quantity{}
			}
			if quantity := got[name]; quantity.Cmp(want) != 0 {
				rt.Fatalf("%s of %s are free for %s, and not %s", quantity.String(), name, consumer, want.String())
			}
		}
	}
}
