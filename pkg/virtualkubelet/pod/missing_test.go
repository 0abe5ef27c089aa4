package pod

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/massremoval"
)

// A12: most pods of the node are not there when they are listed. What runs at the provider stays until somebody confirms that it is to
// go; what ended, what was seen to be deleted, and a few go at once.
func TestA12ManyMissingPods(t *testing.T) {
	const all = 10
	name := func(i int) string { return fmt.Sprintf("p%d", i) }
	uid := func(i int) types.UID { return types.UID(fmt.Sprintf("uid-%d", i)) }
	for title, tc := range map[string]struct {
		// here are how many pods there are at first; the ShadowPods of all are at the provider.
		here  int
		phase corev1.PodPhase
		// goes are how many go at once, after then happened.
		goes int
		then func(w *world)
		held string
	}{
		"most are missing":              {here: 2, held: "8 of kind pod in namespace shop"},
		"a few are missing":             {here: 5, goes: 5},
		"most are missing, which ended": {here: 2, phase: corev1.PodSucceeded, goes: 8},
		"most are seen to be deleted": {here: all, goes: 8, then: func(w *world) {
			for i := range 8 {
				if err := w.local.Tracker().Delete(podResource, "shop", name(2+i)); err != nil {
					w.t.Fatal(err)
				}
			}
		}},
		"most have new pods of the same name": {here: 2, held: "8 of kind pod in namespace shop", then: func(w *world) {
			for i := range 8 {
				w.add(newPod(name(2+i), "new-"+uid(i)))
			}
			w.eventually("a pod that waits says so", func() bool {
				return w.pod(name(9)).Status.Reason == offloadingv1beta1.ReasonManyAtOnce
			})
		}},
		"most are missing, which is confirmed": {here: 2, goes: 8, then: func(w *world) {
			guard := w.r.options.Removals
			w.eventually("they are held", func() bool { confirm, _ := guard.Held(); return confirm != "" })
			confirm, _ := guard.Held()
			guard.Confirm(confirm)
		}},
		"most are missing, and come back": {here: 2, then: func(w *world) {
			guard := w.r.options.Removals
			w.eventually("they are held", func() bool { confirm, _ := guard.Held(); return confirm != "" })
			for i := 2; i < all; i++ {
				w.add(newPod(name(i), uid(i)))
			}
			w.eventually("nothing is held", func() bool { _, said := guard.Held(); return said == "" })
		}},
	} {
		t.Run(title, func(t *testing.T) {
			w := newWorld(t)
			w.change = func(o *Options) { o.Removals = massremoval.New(massremoval.Options{Share: massremoval.DefaultShare}) }
			for i := range all {
				w.addShadow(string(uid(i)), func(s *offloadingv1beta1.ShadowPod) { s.Name, s.Status.Phase = name(i), tc.phase })
				if i < tc.here {
					w.add(newPod(name(i), uid(i)))
				}
			}
			w.provider()
			w.start()
			w.offload()
			w.eventually("the twin is watched", func() bool { return w.twinIsWatched() })
			w.calm()
			if tc.then != nil {
				tc.then(w)
			}
			there := func() (count int) {
				for i := range all {
					if shadow := w.shadow(name(i)); shadow != nil && shadow.UID == "shadow-of-"+uid(i) {
						count++
					}
				}
				return count
			}
			w.eventually(fmt.Sprintf("%d are there", all-tc.goes), func() bool { return there() <= all-tc.goes })
			w.calm()
			if got := there(); got != all-tc.goes {
				t.Errorf("%d are there, want %d", got, all-tc.goes)
			}
			if _, said := w.r.options.Removals.Held(); said != tc.held {
				t.Errorf("it says %q, want %q", said, tc.held)
			}
			w.r.mu.Lock()
			defer w.r.mu.Unlock()
			if n := len(w.r.memory.went); n > 0 {
				t.Errorf("%d pods are remembered that have no ShadowPod", n)
			}
		})
	}
}
