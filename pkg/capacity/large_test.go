package capacity

import (
	"runtime"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

func heap() float64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return float64(stats.HeapAlloc) / 1e6
}

// processor is the time that this process had a processor.
func processor(t testing.TB) time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// A provider of 5000 nodes and 100 000 pods costs at most 50 ms of processor time for a change with all offers after it, and 60 MB.
func TestALargeProvider(t *testing.T) {
	before := heap()
	p := large(t)
	if took := heap() - before; took > 60 {
		t.Errorf("it takes %.1f MB", took)
	} else {
		t.Logf("it takes %.1f MB", took)
	}
	const changes = 20
	start := processor(t)
	for i := range changes {
		p.took(p.Pod(largePod(100_000+i), nobody))
		p.node(sharedNode("node-1", "cpu=32 memory=128Gi pods=110", func(n *corev1.Node) { n.Spec.Unschedulable = i%2 == 0 }))
		if len(p.Offers(true)) != 10 || len(p.Largest()) == 0 {
			t.Fatal("nothing is offered")
		}
	}
	each := (processor(t) - start) / changes
	t.Logf("a change of a pod and a node, and all offers after it, take %s", each)
	if each > 50*time.Millisecond {
		t.Errorf("%s of processor time for a change", each)
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
		"largest":    func(int) { p.Largest() },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := range b.N {
				change(i)
			}
		})
	}
}
