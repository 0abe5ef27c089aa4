package capacity

import (
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / 1e6
}

// A provider of 5000 nodes and 100 000 pods costs 60 MB at most; what a change costs is measured below.
func TestALargeProvider(t *testing.T) {
	before := heap()
	p := large(t)
	if took := heap() - before; took > 60 {
		t.Errorf("it takes %.1f MB", took)
	} else {
		t.Logf("it takes %.1f MB", took)
	}
	if n := len(p.Offers(true)); n != 10 {
		t.Errorf("%d slices are offered something", n)
	}
	runtime.KeepAlive(p)
}

func BenchmarkPoolOfALargeProvider(b *testing.B) {
	p := large(b)
	for name, change := range map[string]func(i int){
		"pod": func(i int) { p.took(p.Pod(largePod(i%200_000), nobody)) },
		"node": func(i int) {
			p.node(sharedNode("node-1", "cpu=32 memory=128Gi pods=110", func(n *corev1.Node) { n.Spec.Unschedulable = i%2 == 0 }))
		},
		"all offers": func(int) { p.Offers(true) },
		"largest":    func(int) { p.everywhere().nodes() },
		// A slice of certain nodes costs a walk: here all of them have the labels.
		"certain nodes": func(int) { regionOf(p.hosts, nil) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				change(i)
			}
		})
	}
}
