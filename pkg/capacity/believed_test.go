package capacity

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// many are resources that nobody uses.
func many(n int, prefix string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := range n {
		list[corev1.ResourceName(fmt.Sprintf("example.org/%s-%d", prefix, i))] = resource.MustParse("1")
	}
	return list
}

// What cannot be is refused with a sentence that says whose it is, and what was known before still counts.
func TestWhatIsNotBelieved(t *testing.T) {
	node := func(has corev1.ResourceList) func(provider) error {
		return func(p provider) error {
			return p.Node(sharedNode("a", "", func(n *corev1.Node) { n.Status.Allocatable = has }))
		}
	}
	pod := func(takes corev1.ResourceList) func(provider) error {
		return func(p provider) error {
			return p.Pod(boundPod("x", "a", "", func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = takes }), nobody)
		}
	}
	changed := func(change func(*corev1.Pod)) func(provider) error {
		return func(p provider) error { return p.Pod(boundPod("x", "a", "cpu=1", change), nobody) }
	}
	asked := func(takes corev1.ResourceList) func(provider) error {
		return func(p provider) error { return p.Ask(rome, Wish{Requested: takes}) }
	}
	said := func(p Percentages) func(provider) error {
		return func(pool provider) error { return pool.Ask(rome, Wish{Percentages: p}) }
	}
	for name, tc := range map[string]struct {
		try  func(provider) error
		want string
	}{
		"a percentage of a chart below nothing": {said(Percentages{Chart: new(int32(-1))}), `slice a of cluster "rome": the sharing percentage -1 of the chart is not from 0 to 100`},
		"a percentage of a chart of too much":   {said(Percentages{Chart: new(int32(101))}), "percentage 101 of the chart"},
		"a percentage of a Tenant below":        {said(Percentages{Tenant: new(int32(-100))}), "percentage -100 of the Tenant"},
		"a percentage of a Tenant of too much":  {said(Percentages{Tenant: new(int32(1 << 30))}), "percentage 1073741824 of the Tenant"},
		"a percentage of a class below":         {said(Percentages{Class: new(int32(-1 << 31))}), "percentage -2147483648 of the slice class"},
		"a percentage of a class of too much":   {said(Percentages{Class: new(int32(900))}), "percentage 900 of the slice class"},
		"one that another one hides":            {said(Percentages{Class: new(int32(50)), Chart: new(int32(101))}), "percentage 101 of the chart"},

		"a request below nothing":           {asked(amounts("cpu=-1")), `slice a of cluster "rome": the quantity -1 of cpu is negative`},
		"a request of a device below":       {asked(amounts("nvidia.com/gpu=-1m")), "-1m of nvidia.com/gpu is negative"},
		"a request of too many cores":       {asked(amounts("cpu=1Ei")), "1Ei of cpu is more than can be"},
		"a request of too much memory":      {asked(amounts("memory=2Pi")), "2Pi of memory is more than can be: at most 1Pi"},
		"a request of ten thousand things":  {asked(many(10_000, "x")), "it names 10000 resources, more than 128"},
		"a request beyond numbers":          {asked(amounts("memory=9e99")), "of memory is more than can be"},
		"a wish of nobody":                  {func(p provider) error { return p.Ask(nobody, Wish{}) }, "it has no name"},
		"a wish of a slice without cluster": {func(p provider) error { return p.Ask(Owner{Slice: "a"}, Wish{Requested: amounts("pods=-1")}) }, "-1 of pods is negative"},

		"a node with fewer cores than none":   {node(amounts("cpu=-1 memory=1Gi")), "node a: the quantity -1 of cpu is negative"},
		"a node with less memory than none":   {node(amounts("cpu=1 memory=-1")), "-1 of memory is negative"},
		"a node with fewer devices than none": {node(amounts("cpu=1 nvidia.com/gpu=-4")), "-4 of nvidia.com/gpu is negative"},
		"a node that reports nothing":         {node(nil), "node a: it reports no allocatable resources, though it is ready"},
		"a node that reports an empty list":   {node(corev1.ResourceList{}), "reports no allocatable resources"},
		"a node that reports zeros":           {node(amounts("cpu=0 memory=0")), "reports no allocatable resources"},
		"a node with less than a unit":        {node(amounts("memory=1m")), "reports no allocatable resources"},
		"a node with all the memory there is": {node(amounts("memory=1Ei")), "1Ei of memory is more than can be"},
		"a node with all the cores there are": {node(amounts("cpu=9e15")), "of cpu is more than can be"},
		"a node beyond numbers":               {node(amounts("ephemeral-storage=1e30")), "of ephemeral-storage is more than can be"},
		"a node with ten thousand resources":  {node(many(10_000, "x")), "node a: it names 10000 resources, more than 128"},
		"a node with one resource too many":   {node(many(129, "x")), "it names 129 resources"},
		"a pod below nothing":                 {pod(amounts("cpu=-2")), "pod shop/x: the quantity -2 of cpu is negative"},
		"a pod of too many cores":             {pod(amounts("cpu=9e15")), "pod shop/x: the quantity"},
		"a pod of too much memory":            {pod(amounts("memory=1Ei")), "1Ei of memory is more than can be"},
		"a pod of ten thousand resources":     {pod(many(10_000, "x")), "pod shop/x: it names 10000 resources"},
		"a pod whose init container gives back": {changed(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: amounts("memory=-1Gi")}}}
		}), "-1Gi of memory is negative"},
		"a pod whose overhead gives back": {changed(func(p *corev1.Pod) { p.Spec.Overhead = amounts("cpu=-1") }), "-1 of cpu is negative"},
		"a pod with a negative limit":     {changed(func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Limits = amounts("cpu=-1") }), "-1 of cpu is negative"},
		"a thousand kinds, each on its node": {func(p provider) error {
			for i := range 9 {
				if err := p.Node(sharedNode(fmt.Sprint("n", i), "", func(n *corev1.Node) { n.Status.Allocatable = many(maxResources, fmt.Sprint(i)) })); err != nil {
					return err
				}
				defer p.ForgetNode(fmt.Sprint("n", i))
			}
			return nil
		}, "more than 1024 kinds of resources in the cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t).node(sharedNode("a", "cpu=10 memory=10Gi")).pod(boundPod("x", "a", "cpu=2"), nobody).asks(rome, percent(50))
			before := p.offered(rome, false)
			err := tc.try(p)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Fatalf("refused with %v, want %q", err, tc.want)
			}
			if len(err.Error()) > 300 {
				t.Errorf("the refusal has %d characters", len(err.Error()))
			}
			if after := p.offered(rome, false); after != before || before != "cpu=4 memory=5Gi pods=0" {
				t.Errorf("before %s, afterwards %s are offered", before, after)
			}
		})
	}
}

// A node that takes no pods is not asked what it has: it may report anything.
func TestNodesThatTakeNoPodsMayReportAnything(t *testing.T) {
	p := newProvider(t).node(sharedNode("a", "cpu=10")).asks(rome, Wish{})
	p.node(sharedNode("a", "cpu=-1", func(n *corev1.Node) { n.Spec.Unschedulable = true }))
	if got := p.offered(rome, false); got != "pods=0" {
		t.Errorf("offered %s of a node that takes no pods", got)
	}
}

// Nothing is kept of what is gone.
func TestAnEmptyPoolKeepsNothing(t *testing.T) {
	p := newProvider(t)
	for i := range 20 {
		name := fmt.Sprint(i)
		p.pod(boundPod(name, "n"+name, "cpu=1 example.org/"+name+"=1"), rome).node(sharedNode("n"+name, "cpu=4 example.org/"+name+"=2"))
	}
	for i := range 20 {
		name := fmt.Sprint(i)
		p.ForgetNode("n" + name)
		p.took(p.Pod(boundPod(name, "", ""), rome))
	}
	if len(p.tallies)+len(p.hosts)+len(p.pods)+len(p.owners) != 0 {
		t.Errorf("kept are %d resources, %d nodes, %d pods, %d owners", len(p.tallies), len(p.hosts), len(p.pods), len(p.owners))
	}
}

// large is a provider of 5000 nodes and 100 000 pods, a tenth of them of ten consumers.
func large(t testing.TB) provider {
	p := newProvider(t)
	for i := range 5000 {
		p.node(sharedNode(fmt.Sprint("node-", i), "cpu=32 memory=128Gi ephemeral-storage=500Gi pods=110 nvidia.com/gpu=4"))
	}
	for i := range 100_000 {
		of := nobody
		if i%10 == 0 {
			of = Owner{fmt.Sprint("cluster-", i/10%10), "a"}
		}
		p.pod(largePod(i), of)
	}
	for i := range 10 {
		p.asks(Owner{fmt.Sprint("cluster-", i), "a"}, Wish{})
	}
	return p
}

func largePod(i int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: fmt.Sprint("namespace-", i%100), Name: fmt.Sprint("deployment-6d4f75c9b8-", i)},
		Spec: corev1.PodSpec{NodeName: fmt.Sprint("node-", i%5000), Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("250m"), corev1.ResourceMemory: resource.MustParse("512Mi")}}}}}}
}
