package pod

import (
	"bytes"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/kube/packed"
)

// countUnpacked counts how often something is decoded in a test.
func countUnpacked(t *testing.T) *atomic.Int64 {
	t.Helper()
	var count atomic.Int64
	before := packed.Unpacked
	packed.Unpacked = func() { count.Add(1) }
	t.Cleanup(func() { packed.Unpacked = before })
	return &count
}

// As long as no collection comes between, nothing of the way of a pod is decoded again: each event hands its object on.
func TestNothingIsDecodedTwice(t *testing.T) {
	decoded := countUnpacked(t)
	percent := debug.SetGCPercent(-1)
	t.Cleanup(func() { debug.SetGCPercent(percent) })
	w := up(t)
	w.update(func(p *corev1.Pod) { p.Labels["app"] = "other" })
	w.eventually("the change crosses", func() bool { return w.shadow("p").Labels["app"] == "other" })
	w.calm()
	if n := decoded.Load(); n != 0 {
		t.Errorf("%d objects were decoded again", n)
	}
}

// A pod that shows all that is known is not even decoded to find that out again; what is news is looked at.
func TestWhatIsShownIsNotDecoded(t *testing.T) {
	decoded := countUnpacked(t)
	w := up(t)
	w.calm()
	k := key{Namespace: "shop", Name: "p"}
	look := func() int64 {
		t.Helper()
		for range 3 {
			runtime.GC()
		}
		before := decoded.Load()
		if err := w.r.reconcileStatus(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		return decoded.Load() - before
	}
	w.eventually("the status is known to be shown", func() bool {
		w.r.mu.Lock()
		defer w.r.mu.Unlock()
		return remembered(w.r, func(s *state) bool { return s.shown != nil }) == 1
	})
	look() // whatever was known when it was noted, now it is what is known
	if n := look(); n != 0 {
		t.Errorf("%d objects were decoded for a look at a pod that nothing happened to", n)
	}
	w.r.mu.Lock()
	w.r.changes++
	w.r.mu.Unlock()
	if n := look(); n == 0 {
		t.Error("nothing was decoded although the settings are others")
	}
	w.r.forget(w.pod("p"))
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	if len(w.r.memory.pods) != 0 {
		t.Error("a pod that is gone is remembered")
	}
}

// unchanged fails the test if somebody changed an object that others may read.
func (w *world) unchanged() {
	w.t.Helper()
	var held []*packed.Pod
	for _, local := range w.r.All("") {
		held = append(held, &local.Pod)
	}
	w.r.mu.Lock()
	if w.r.link != nil {
		for _, t := range w.r.link.twins {
			held = append(append(held, t.shadows.List()...), t.pods.List()...)
		}
	}
	w.r.mu.Unlock()
	for _, p := range held {
		pod := p.Unpack()
		if data, err := pod.Marshal(); err != nil || !bytes.Equal(data, p.Data()) {
			w.t.Errorf("what is held of %s/%s was changed by somebody who read it (%v)", p.Namespace, p.Name, err)
		}
	}
}
