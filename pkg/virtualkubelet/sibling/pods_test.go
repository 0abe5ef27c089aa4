package sibling

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/fakeapi"
)

func TestMain(m *testing.M) {
	// The others sleep until the time of the last error, which was on the clock of another bubble.
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("k8s.io/klog/v2.(*flushDaemon).run.func1"))
}

// world is an API server and Pods that watch it.
type world struct {
	*testing.T
	api  *fake.Clientset
	pods *Pods

	mu      sync.Mutex
	changed map[string]bool
	// listed are the places that were listed; the fake watches only after a list.
	listed []string
	// refusal is what lists and watches are answered with.
	refusal error
}

func inBubble(t *testing.T, test func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, api: fake.NewClientset(), changed: map[string]bool{}}
		fakeapi.NoGaps(&w.api.Fake, w.api.Tracker())
		fakeapi.React(&w.api.Fake, "list", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			options := action.(clienttesting.ListActionImpl).ListOptions
			w.listed = append(w.listed, action.GetNamespace()+" "+options.FieldSelector)
			return w.refusal != nil, nil, w.refusal
		})
		w.api.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.refusal != nil, nil, w.refusal
		})
		pods, err := New(Options{Local: w.api, Changed: func(namespace, kind, name string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.changed[namespace+"/"+kind+"/"+name] = true
		}})
		if err != nil {
			t.Fatal(err)
		}
		w.pods = pods
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = pods.Run(ctx)
		}()
		defer func() {
			cancel()
			<-done
		}()
		test(w)
	})
}

// refuse has the API server refuse pods from now on, or answer again.
func (w *world) refuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refusal = err
}

func pod(name, node, secret string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name + "-1"), Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{NodeName: node, Volumes: []corev1.Volume{{Name: "a", VolumeSource: corev1.VolumeSource{
			Secret: &corev1.SecretVolumeSource{SecretName: secret}}}}},
	}
}

func (w *world) create(pods ...*corev1.Pod) {
	w.Helper()
	for _, p := range pods {
		if _, err := w.api.CoreV1().Pods(p.Namespace).Create(w.Context(), p, metav1.CreateOptions{}); err != nil {
			w.Fatal(err)
		}
	}
}

func (w *world) update(p *corev1.Pod) {
	w.Helper()
	if _, err := w.api.CoreV1().Pods(p.Namespace).Update(w.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.Helper()
	if err := w.api.CoreV1().Pods("shop").Delete(w.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.Fatal(err)
	}
}

const (
	used    = "used"
	unused  = "not used"
	unknown = "not known"
)

// says waits until all is at rest and compares what is known of Secrets.
func (w *world) says(what string, want map[string]string) {
	w.Helper()
	synctest.Wait()
	got := map[string]string{}
	for name := range want {
		switch is, known := w.pods.Uses("shop", "secret", name); {
		case is && known:
			got[name] = used
		case known:
			got[name] = unused
		case is:
			got[name] = "used, but not known"
		default:
			got[name] = unknown
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		w.Fatalf("%s: %s", what, diff)
	}
}

// told compares what was told to have changed since the last time.
func (w *world) told(what string, want ...string) {
	w.Helper()
	synctest.Wait()
	w.mu.Lock()
	got := slices.Sorted(maps.Keys(w.changed))
	clear(w.changed)
	w.mu.Unlock()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("%s: %s", what, diff)
	}
}

// watched compares what was listed since the last time.
func (w *world) watched(what string, want ...string) {
	w.Helper()
	synctest.Wait()
	w.mu.Lock()
	got := w.listed
	slices.Sort(got)
	w.listed = nil
	w.mu.Unlock()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		w.Fatalf("%s: %s", what, diff)
	}
}

func TestNothingIsWatchedThatNobodyNeeds(t *testing.T) {
	inBubble(t, func(w *world) {
		w.create(pod("a", "milan-gpu", "keys"))
		w.says("before anybody told of siblings", map[string]string{"keys": unknown})
		w.pods.Follow(nil, []string{"shop", "bank"})
		w.says("no siblings", map[string]string{"keys": unused})
		w.pods.Follow([]string{"milan-gpu"}, nil)
		w.says("a sibling, but nobody wants to know", map[string]string{"keys": unknown})
		w.watched("so far")
		w.told("so far")

		w.pods.Follow([]string{"milan-gpu"}, []string{"shop", "bank"})
		w.says("somebody wants to know", map[string]string{"keys": used, "other": unused})
		w.watched("two namespaces", "bank spec.nodeName=milan-gpu", "shop spec.nodeName=milan-gpu")
		w.told("answers are known now", "bank//", "shop//", "shop/secret/keys")
		w.pods.Follow([]string{"milan-gpu"}, []string{"shop", "bank"})
		w.watched("told again")

		w.pods.Follow([]string{"milan-gpu"}, nil)
		w.says("nobody wants to know any more", map[string]string{"keys": unknown})
		w.create(pod("b", "milan-gpu", "more"))
		w.told("nobody watches")
		w.pods.Follow([]string{"milan-gpu"}, []string{"shop"})
		w.says("somebody wants to know again", map[string]string{"keys": used, "more": used, "other": unused})
		w.watched("one namespace is offloaded", "shop spec.nodeName=milan-gpu")
	})
}

func TestWhatPodsOnASiblingUse(t *testing.T) {
	for sentence, tc := range map[string]struct {
		before []*corev1.Pod
		then   func(w *world)
		want   map[string]string
		told   []string
	}{
		"a pod on a sibling": {
			before: []*corev1.Pod{pod("a", "milan-gpu", "keys")}, want: map[string]string{"keys": used, "other": unused},
		},
		"a pod on the own node, which another knows": {
			before: []*corev1.Pod{pod("a", "milan", "keys")}, want: map[string]string{"keys": unused},
		},
		"a pod on a node of this cluster": {
			before: []*corev1.Pod{pod("a", "worker", "keys")}, want: map[string]string{"keys": unused},
		},
		"a pod that is not bound yet": {
			before: []*corev1.Pod{pod("a", "", "keys")}, want: map[string]string{"keys": unused},
		},
		"a pod that is bound": {
			before: []*corev1.Pod{pod("a", "", "keys")}, then: func(w *world) { w.update(pod("a", "milan-gpu", "keys")) },
			want: map[string]string{"keys": used}, told: []string{"shop/secret/keys"},
		},
		"a pod that comes": {
			then: func(w *world) { w.create(pod("a", "milan-gpu", "keys")) },
			want: map[string]string{"keys": used}, told: []string{"shop/secret/keys"},
		},
		"a pod that goes": {
			before: []*corev1.Pod{pod("a", "milan-gpu", "keys")}, then: func(w *world) { w.remove("a") },
			want: map[string]string{"keys": unused}, told: []string{"shop/secret/keys"},
		},
		"one of two pods goes": {
			before: []*corev1.Pod{pod("a", "milan-gpu", "keys"), pod("b", "milan-gpu", "keys")}, then: func(w *world) { w.remove("b") },
			want: map[string]string{"keys": used}, told: []string{"shop/secret/keys"},
		},
		"both pods go": {
			before: []*corev1.Pod{pod("a", "milan-gpu", "keys"), pod("b", "milan-gpu", "keys")},
			then: func(w *world) {
				w.remove("a")
				w.remove("b")
			},
			want: map[string]string{"keys": unused}, told: []string{"shop/secret/keys"},
		},
		"a pod that has finished": {
			before: []*corev1.Pod{pod("a", "milan-gpu", "keys")},
			then: func(w *world) {
				done := pod("a", "milan-gpu", "keys")
				done.Status.Phase = corev1.PodSucceeded
				w.update(done)
			},
			want: map[string]string{"keys": used},
		},
		"a pod that is debugged": {
			before: []*corev1.Pod{pod("a", "milan-gpu", "keys")},
			then: func(w *world) {
				debugged := pod("a", "milan-gpu", "keys")
				debugged.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
					EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "tools"}}}}}}}
				w.update(debugged)
			},
			want: map[string]string{"keys": used, "tools": used}, told: []string{"shop/secret/keys", "shop/secret/tools"},
		},
	} {
		t.Run(sentence, func(t *testing.T) {
			inBubble(t, func(w *world) {
				w.create(tc.before...)
				w.pods.Follow([]string{"milan-gpu"}, []string{"shop"})
				synctest.Wait()
				w.mu.Lock()
				clear(w.changed)
				w.mu.Unlock()
				if tc.then != nil {
					tc.then(w)
				}
				w.says(sentence, tc.want)
				w.told(sentence, tc.told...)
			})
		})
	}
}

func TestSiblingsComeAndGo(t *testing.T) {
	inBubble(t, func(w *world) {
		w.create(pod("a", "milan-gpu", "gpu"), pod("b", "milan-big", "big"))
		w.pods.Follow([]string{"milan-gpu"}, []string{"shop"})
		w.says("one sibling", map[string]string{"gpu": used, "big": unused})
		w.watched("one sibling", "shop spec.nodeName=milan-gpu")
		w.refuse(errors.New("no rights"))
		w.pods.Follow([]string{"milan-big", "milan-gpu"}, []string{"shop"})
		w.says("a sibling came, its pods are not known yet", map[string]string{"gpu": used, "big": unknown, "other": unknown})
		w.refuse(nil)
		time.Sleep(time.Minute)
		w.says("its pods are known", map[string]string{"gpu": used, "big": used, "other": unused})
		w.pods.Follow([]string{"milan-big"}, []string{"shop"})
		w.says("the first sibling went", map[string]string{"gpu": unused, "big": used})
		w.pods.Follow(nil, []string{"shop"})
		w.says("all went", map[string]string{"gpu": unused, "big": unused})
		w.mu.Lock()
		clear(w.changed)
		w.mu.Unlock()
		w.create(pod("c", "milan-gpu", "gpu"))
		w.told("nobody watches any more")
	})
}

// While the pods cannot be followed, what was used still is, and nothing is known to be unused.
func TestWatchesThatFail(t *testing.T) {
	inBubble(t, func(w *world) {
		w.refuse(errors.New("no rights"))
		w.create(pod("a", "milan-gpu", "keys"))
		w.pods.Follow([]string{"milan-gpu"}, []string{"shop"})
		time.Sleep(time.Minute)
		w.says("no right to pods", map[string]string{"keys": unknown, "other": unknown})
		w.told("no right to pods")
		w.refuse(nil)
		time.Sleep(time.Minute)
		w.says("the right came", map[string]string{"keys": used, "other": unused})
		w.told("the right came", "shop//", "shop/secret/keys")

		v := w.pods.views[place{"shop", "milan-gpu"}]
		v.note(errors.New("the connection is gone"))
		w.says("the connection is gone", map[string]string{"keys": used, "other": unknown})
		w.told("the connection is gone")
		v.note(nil)
		w.says("it is back", map[string]string{"keys": used, "other": unused})
		w.told("it is back", "shop//")

		v.cancel()
		w.says("the end", map[string]string{"keys": used, "other": unknown})
	})
}

// A pod takes no more memory than its names, and a deletion that the watch missed is one.
func TestWhatIsKeptOfAPod(t *testing.T) {
	v := newView(t.Context(), Options{Local: fake.NewClientset(), Changed: func(_, _, _ string) {}}, place{"shop", "milan-gpu"})
	full := pod("a", "milan-gpu", "keys")
	full.ResourceVersion, full.Annotations = "7", map[string]string{"long": "story"}
	slim, err := v.slim(full)
	if err != nil {
		t.Fatal(err)
	}
	want := &user{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a", ResourceVersion: "7"}, uses: []reflection.Reference{{Kind: "secret", Name: "keys"}}}
	if diff := cmp.Diff(want, slim, cmp.AllowUnexported(user{})); diff != "" {
		t.Error(diff)
	}
	again, err := v.slim(slim)
	if diff := cmp.Diff(want, again, cmp.AllowUnexported(user{})); diff != "" || err != nil {
		t.Errorf("slimmed again: %s, %v", diff, err)
	}
	h, keys := (*handler)(v), reflection.Reference{Kind: "secret", Name: "keys"}
	h.OnAdd(slim, true)
	h.OnAdd(slim, false)
	if !v.uses(keys) {
		t.Error("the pod does not count")
	}
	h.OnDelete(cache.DeletedFinalStateUnknown{Key: "shop/a", Obj: slim})
	if v.uses(keys) || len(v.pods) != 0 || len(v.users) != 0 {
		t.Errorf("a pod that is gone counts: %v, %v", v.pods, v.users)
	}
}

func TestNew(t *testing.T) {
	for i, o := range []Options{{}, {Local: fake.NewClientset()}, {Changed: func(_, _, _ string) {}}} {
		if _, err := New(o); err == nil {
			t.Error(fmt.Sprint(i), "incomplete options are accepted")
		}
	}
}
