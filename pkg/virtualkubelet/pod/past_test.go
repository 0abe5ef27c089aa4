package pod

import (
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	clienttesting "k8s.io/client-go/testing"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/fakeapi"
)

// The pods of a StatefulSet keep their names. A cache that shows an earlier one takes nothing from the one that runs.
func TestACacheOfThePastEndsNoPod(t *testing.T) {
	for name, past := range map[string]*corev1.Pod{
		"a pod that was pending": newPod("p", "uid-1"),
		"a pod that was deleted": newPod("p", "uid-1", func(p *corev1.Pod) {
			p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
		}),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.add(newPod("p", "uid-2"))
			w.addShadow("uid-2")
			w.provider()
			fakeapi.React(&w.local.Fake, "list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				if strings.Contains(action.(clienttesting.ListActionImpl).ListOptions.FieldSelector, metav1.ObjectNameField) {
					return false, nil, nil // asked for this very pod, past all caches
				}
				return true, &corev1.PodList{Items: []corev1.Pod{*past}}, nil
			})
			news := watch.NewRaceFreeFake()
			w.local.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) { return true, news, nil })
			w.start()
			w.offload()
			w.eventually("the earlier pod is looked at", func() bool { return w.twinIsWatched() })
			w.calm()
			if shadow := w.shadow("p"); shadow == nil || reflection.OriginUID(shadow) != "uid-2" || w.count() != 0 {
				t.Fatalf("writes: %v", w.writes)
			}
			news.Delete(past)
			news.Add(w.pod("p"))
			w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
			if w.ran != 1 {
				t.Errorf("there were %d remote pods", w.ran)
			}
		})
	}
}

func (w *world) twinIsWatched() bool {
	w.r.mu.Lock()
	defer w.r.mu.Unlock()
	return w.r.link != nil && w.r.link.twins["shop"] != nil && w.r.link.twins["shop"].synced()
}

// A pod of the past would be started once more, beside the one that took its place elsewhere.
func TestTheFirstListOfPodsIsOfNow(t *testing.T) {
	w := newWorld(t)
	var lists, lagging atomic.Int32
	fakeapi.React(&w.local.Fake, "list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		options := action.(clienttesting.ListActionImpl).ListOptions
		if options.ResourceVersion != "" || options.ResourceVersionMatch != "" {
			lagging.Add(1)
		}
		lists.Add(1) // after the other: it is waited for
		return false, nil, nil
	})
	w.start()
	w.offload()
	w.eventually("pods are listed", func() bool { return lists.Load() > 0 })
	if n := lagging.Load(); n > 0 {
		t.Errorf("%d of %d lists may be answered from a cache that lags", n, lists.Load())
	}
}
