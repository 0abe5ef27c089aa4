package pod

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
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
	object, err := w.dyn.Tracker().Get(shadowpods.Resource, twinNamespace, "p")
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

// ends plays a provider's controller that ends the pod of a ShadowPod in the time that it is asked for, and remembers which.
func (w *world) ends(begins bool) func() []string {
	var mu sync.Mutex
	var asked []string
	fakeapi.React(&w.dyn.Fake, "patch", "shadowpods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		var patch struct {
			Metadata struct {
				UID         string            `json:"uid"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(action.(clienttesting.PatchAction).GetPatch(), &patch); err != nil {
			return true, nil, err
		}
		seconds, is := patch.Metadata.Annotations[offloadingv1beta1.EndsInAnnotation]
		if !is || patch.Metadata.UID != string(w.shadow("p").UID) {
			return true, nil, errors.New("not what was to be written, or not to this ShadowPod")
		}
		mu.Lock()
		asked = append(asked, seconds)
		mu.Unlock()
		if begins {
			w.updateRemote(func(p *corev1.Pod) {
				p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), new(int64(1))
			})
		}
		return false, nil, nil
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(asked)
	}
}

// A kubelet goes by the grace period that it was told first: it has to be in the first deletion of the remote pod.
func TestTheGracePeriodIsToldBeforeTheShadowPodGoes(t *testing.T) {
	deleted := func(grace int64) func(*world) {
		return func(w *world) {
			w.update(func(p *corev1.Pod) { p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.Now()), &grace })
		}
	}
	for name, tc := range map[string]struct {
		happens func(*world)
		silent  bool
		want    []string
	}{
		"its own":                               {deleted(30), false, nil},
		"a shorter one":                         {deleted(1), false, []string{"1"}},
		"a longer one":                          {deleted(60), false, []string{"60"}},
		"none, while a finalizer holds the pod": {deleted(0), false, []string{"1"}},
		"removed by force":                      {(*world).force, false, []string{"1"}},
		"of a provider that does not end it":    {deleted(1), true, []string{"1"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := up(t)
			asked := w.ends(!tc.silent)
			tc.happens(w)
			w.eventually("the ShadowPod is gone", func() bool { return w.shadow("p") == nil })
			w.eventually("the pod is gone", func() bool { return w.pod("p") == nil })
			if diff := cmp.Diff(tc.want, asked(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("grace periods asked for, -want +got:\n%s", diff)
			}
		})
	}
}

// The successor of a pod that was removed by force says what it waits for.
func TestASuccessorSaysThatItsPredecessorStillEnds(t *testing.T) {
	w := up(t)
	stop := make(chan struct{})
	w.stopRemote = func() { <-stop }
	w.ends(true)
	w.force()
	w.eventually("the pod is seen to be gone", func() bool { return w.r.local(key{Namespace: "shop", Name: "p"}) == nil })
	w.add(newPod("p", "uid-2"))
	w.eventually("the successor says so", func() bool { return w.pod("p").Status.Reason == offloadingv1beta1.ReasonEarlierPod })
	close(stop)
	w.eventually("the successor is ready", func() bool { return isReady(w.pod("p")) })
	if reason := w.pod("p").Status.Reason; reason != "" {
		t.Errorf("it still says %s", reason)
	}
}
