package pod

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"liqo.io/liqo/test/fakeapi"
)

// evictions are those that the provider was asked for; the first fail ones are lost.
type evictions struct {
	mu     sync.Mutex
	fail   int
	graces []int64
}

func (w *world) evictions(fail int) *evictions {
	e := &evictions{fail: fail}
	fakeapi.React(&w.kube.Fake, "create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		eviction := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction)
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.fail--; e.fail >= 0 {
			return true, nil, errors.New("connection refused")
		}
		if *eviction.DeleteOptions.Preconditions.UID != w.remote("p").UID {
			return true, nil, errors.New("no precondition")
		}
		e.graces = append(e.graces, *eviction.DeleteOptions.GracePeriodSeconds)
		w.updateRemote(func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = eviction.DeleteOptions.GracePeriodSeconds })
		return true, nil, nil
	})
	return e
}

func (e *evictions) all() []int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]int64{}, e.graces...)
}

// lingering is a world whose pod p was deleted, and whose remote pod takes its 30 s to stop; the first evictions fail.
func lingering(t *testing.T, grace int64, fail int) (*world, *evictions) {
	t.Helper()
	w := newWorld(t)
	e := w.evictions(fail)
	w.add(newPod("p", "uid-1"))
	w.start()
	w.offload()
	w.eventually("the ShadowPod is made", func() bool { return w.shadow("p") != nil })
	object, err := w.dyn.Tracker().Get(shadowPods, twinNamespace, "p")
	if err != nil {
		t.Fatal(err)
	}
	w.runRemote(object)
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	w.calm()
	w.update(func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), &grace })
	w.eventually("the ShadowPod goes", func() bool { return w.shadow("p") == nil })
	w.updateRemote(func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(30))
	})
	return w, e
}

// C13: the remote pod gets no more time than the local one, whenever that was said.
func TestGracePeriods(t *testing.T) {
	for name, tc := range map[string]struct {
		first int64
		then  func(*world)
		fail  int
		want  []int64
	}{
		"the pod's own":                     {30, func(*world) {}, 0, []int64{}},
		"a longer one":                      {60, func(*world) {}, 0, []int64{}},
		"a shorter one from the start":      {5, func(*world) {}, 0, []int64{5}},
		"a shorter one, and a lost request": {5, func(*world) {}, 1, []int64{5}},
		"a shorter one by a second deletion": {30, func(w *world) {
			w.update(func(p *corev1.Pod) { p.DeletionGracePeriodSeconds, p.DeletionTimestamp = new(int64(2)), nil })
			w.update(func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.Now()) })
		}, 0, []int64{2}},
		"none, by force": {30, func(w *world) { w.force() }, 0, []int64{1}},
	} {
		t.Run(name, func(t *testing.T) {
			w, e := lingering(t, tc.first, tc.fail)
			w.calm()
			w.updateRemote(func(p *corev1.Pod) { p.Labels["seen"] = "again" })
			tc.then(w)
			w.r.work.Add(key{Namespace: "shop", Name: "p"})
			if len(tc.want) > 0 {
				w.eventually("the grace period is passed on", func() bool { return len(e.all()) >= len(tc.want) })
			}
			w.r.work.Add(key{Namespace: "shop", Name: "p"})
			w.calm()
			if diff := cmp.Diff(tc.want, e.all()); diff != "" {
				t.Errorf("grace periods asked for: %s", diff)
			}
		})
	}
}
