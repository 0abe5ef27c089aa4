package shadowpod

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// server is a ShadowPod of a pod that never ends by itself.
func server() *offloadingv1beta1.ShadowPod {
	shadow := job()
	shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyAlways
	shadow.Spec.Pod.Containers = append(shadow.Spec.Pod.Containers, corev1.Container{Name: "log", Image: "fluent"})
	return shadow
}

// change changes the ShadowPod as its virtual kubelet does.
func (w *world) shadowBecomes(change func(*offloadingv1beta1.ShadowPod)) {
	w.Helper()
	live := w.shadow()
	change(live)
	if err := w.Client.Update(context.Background(), live); err != nil {
		w.Fatal(err)
	}
}

// podBecomes changes the Pod as somebody at the provider does.
func (w *world) podBecomes(change func(*corev1.Pod)) {
	w.Helper()
	pod := w.pod()
	change(pod)
	if err := w.Client.Update(context.Background(), pod); err != nil {
		w.Fatal(err)
	}
}

// admission is what the provider makes of a Pod whenever it is written; it counts the patches.
func (w *world) admission(mutate func(*corev1.Pod), refuse func(*corev1.Pod) error) *int {
	patches := 0
	base := w.Client.(client.WithWatch)
	w.reconciler.Client = interceptor.NewClient(base, interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			pod, isPod := o.(*corev1.Pod)
			if !isPod {
				return c.Patch(ctx, o, p, opts...)
			}
			patches++
			if refuse != nil {
				if err := refuse(pod); err != nil {
					return err
				}
			}
			if err := c.Patch(ctx, pod, p, opts...); err != nil || mutate == nil {
				return err
			}
			mutate(pod)
			return c.Update(ctx, pod)
		}})
	return &patches
}

func (w *world) refusedChange() string {
	w.Helper()
	if c := meta.FindStatusCondition(w.shadow().Status.Conditions, offloadingv1beta1.ChangeRefusedCondition); c != nil {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// What is taken off a pod at home is taken off at the provider, and nothing else is.
func TestLabelsThatVanishAreTakenAway(t *testing.T) {
	shadow := server()
	shadow.Labels["old"], shadow.Annotations["note"] = "1", "n"
	w := newWorld(t, shadow)
	_, _ = w.pass()
	w.podBecomes(func(pod *corev1.Pod) {
		pod.Labels["theirs"], pod.Labels["old"], pod.Annotations["theirs"] = "1", "2", "1"
	})
	w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) {
		delete(s.Labels, "app")
		delete(s.Labels, "old")
		delete(s.Annotations, "note")
	})
	before := w.Writes
	if _, err := w.pass(); err != nil || w.Writes != before+1 {
		t.Fatalf("error %v, %d writes", err, w.Writes-before)
	}
	pod := w.pod()
	if diff := cmp.Diff(map[string]string{"theirs": "1", "old": "2", "offloading.liqo.io/origin": "rome", "liqo.io/managed-by": "shadowpod", "liqo.io/managed": "true"}, pod.Labels); diff != "" {
		t.Error(diff)
	}
	delete(pod.Annotations, offloadingv1beta1.AskedAnnotation)
	if diff := cmp.Diff(map[string]string{"theirs": "1", "liqo.io/origin-uid": "local-uid", "offloading.liqo.io/creator-user": "user-1",
		"offloading.liqo.io/containers": "c,log", "offloading.liqo.io/no-pull-secrets": "true",
		"offloading.liqo.io/resources-asked": reflection.ResourcesAsked(&server().Spec.Pod)}, pod.Annotations); diff != "" {
		t.Error(diff)
	}
	before = w.Writes
	if _, err := newWorldFrom(w).pass(); err != nil || w.Writes != before {
		t.Errorf("error %v, %d writes after a restart", err, w.Writes-before)
	}
}

// A consumer cannot have labels of the provider's taken away by forging the note of what it asked for.
func TestTheNoteIsOurs(t *testing.T) {
	shadow := server()
	shadow.Annotations[offloadingv1beta1.AskedAnnotation] = "forged"
	w := newWorld(t, shadow)
	_, _ = w.pass()
	if note := w.pod().Annotations[offloadingv1beta1.AskedAnnotation]; note == "" || note == "forged" {
		t.Errorf("the note is %q", note)
	}
}

// What the provider's admission makes of images, a registry mirror, stays until another one is asked for, and restarts no container.
func TestWhatTheProviderMadeOfImagesStays(t *testing.T) {
	w := newWorld(t, server())
	_, _ = w.pass()
	mirror := func(pod *corev1.Pod) {
		for i := range pod.Spec.Containers {
			if image := pod.Spec.Containers[i].Image; !strings.HasPrefix(image, "mirror/") {
				pod.Spec.Containers[i].Image = "mirror/" + image
			}
		}
	}
	images := func() (images string) {
		for _, c := range w.pod().Spec.Containers {
			images += c.Image + " "
		}
		return images
	}
	w.podBecomes(mirror)
	before := w.Writes
	w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) {
		s.Generation = 2
		s.Spec.Pod.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "busybox"}}}
		s.Spec.Pod.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("2")}
	})
	if _, err := w.pass(); err != nil || images() != "mirror/busybox mirror/fluent " || len(w.pod().Spec.EphemeralContainers) != 1 ||
		w.pod().Spec.Containers[0].Resources.Requests.Cpu().String() != "2" {
		t.Errorf("error %v; in %d writes images became %s", err, w.Writes-before, images())
	}
	w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) { s.Generation, s.Spec.Pod.Containers[0].Image = 3, "busybox:2" })
	w.admission(mirror, nil)
	if _, err := w.pass(); err != nil || images() != "mirror/busybox:2 mirror/fluent " {
		t.Errorf("error %v, images became %s", err, images())
	}
	patches := w.admission(mirror, nil)
	if _, err := w.pass(); err != nil || *patches != 0 {
		t.Errorf("error %v, %d patches at rest", err, *patches)
	}
}

// What the provider's admission makes of a label whenever it is written is asked for once, and keeps nothing else away.
func TestWhatTheProviderInsistsOn(t *testing.T) {
	w := newWorld(t, server())
	_, _ = w.pass()
	insist := func(pod *corev1.Pod) {
		pod.Labels["app"] = "web.milan"
		delete(pod.Annotations, "note")
	}
	w.podBecomes(insist)
	patches := w.admission(insist, nil)
	w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) {
		s.Generation, s.Labels["tier"], s.Annotations["note"] = 2, "front", "n"
		s.Spec.Pod.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "busybox"}}}
	})
	for range 5 {
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
	}
	// Another one names the container for debugging.
	if pod := w.pod(); *patches != 1+1 || len(pod.Spec.EphemeralContainers) != 1 || pod.Labels["tier"] != "front" || pod.Labels["app"] != "web.milan" {
		t.Errorf("%d patches; labels %v, ephemeral containers %v", *patches, pod.Labels, pod.Spec.EphemeralContainers)
	}
	w.podBecomes(func(pod *corev1.Pod) { pod.Labels["app"] = "somebody's" })
	if _, err := w.pass(); err != nil || *patches != 2+1 {
		t.Errorf("error %v: what somebody else made of it was put back in %d patches", err, *patches-2)
	}
}

// Who keeps changing what is ours is told, and put right twice a minute at most.
func TestAFightIsBounded(t *testing.T) {
	w := newWorld(t, server())
	told := events.NewFakeRecorder(100)
	w.reconciler.Events = told
	_, _ = w.pass()
	patches := w.admission(nil, nil)
	fight := func(rounds int) (again time.Duration) {
		for range rounds {
			w.podBecomes(func(pod *corev1.Pod) { pod.Labels["app"] = "theirs" })
			result, err := w.pass()
			if err != nil {
				t.Fatal(err)
			}
			again = result.RequeueAfter
		}
		return again
	}
	again := fight(1)
	if *patches != 1 || w.pod().Labels["app"] != "web" || w.refusedChange() != "" || again != 0 {
		t.Errorf("%d patches, the condition says %q", *patches, w.refusedChange())
	}
	again = fight(10)
	const words = "label app of the pod"
	if *patches != 2 || again <= 0 || again > time.Minute || !strings.Contains(w.refusedChange(), words) {
		t.Errorf("%d patches, the condition says %q, again in %s", *patches, w.refusedChange(), again)
	}
	w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) { s.Labels["tier"] = "front" })
	if _, err := w.pass(); err != nil || *patches != 3 || w.pod().Labels["tier"] != "front" {
		t.Errorf("error %v: what is asked for meanwhile waits", err)
	}
	fight(10)
	said := w.refusedChange()
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if fight(1); *patches != 5 || w.refusedChange() != said {
		t.Errorf("%d patches, the condition says %q", *patches, w.refusedChange())
	}
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if _, err := w.pass(); err != nil || w.refusedChange() != "" || w.pod().Labels["app"] != "web" {
		t.Errorf("error %v: when all is quiet the condition says %q, and the labels are %v", err, w.refusedChange(), w.pod().Labels)
	}
	counts := map[string]int{}
	for len(told.Events) > 0 {
		counts[strings.Fields(<-told.Events)[1]]++
	}
	if diff := cmp.Diff(map[string]int{"RemoteChangeReverted": 1, "Contended": 1}, counts); diff != "" {
		t.Error(diff)
	}
}

// What the provider refuses of a change is told, and keeps nothing else away.
func TestARefusedChangeKeepsNothingElseAway(t *testing.T) {
	w := newWorld(t, server())
	_, _ = w.pass()
	refuse := true
	patches := w.admission(nil, func(pod *corev1.Pod) error {
		if refuse && pod.Spec.Containers[0].Image != "busybox" {
			return apierrors.NewForbidden(corev1.Resource("pods"), pod.Name, errors.New("this image is not allowed"))
		}
		return nil
	})
	w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) {
		s.Generation, s.Labels["tier"], s.Spec.Pod.Containers[0].Image = 2, "front", "bad"
		s.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Exists"}}
		s.Spec.Pod.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "d", Image: "busybox"}}}
	})
	var result ctrl.Result
	for range 5 {
		var err error
		if result, err = w.pass(); err != nil {
			t.Fatal(err)
		}
	}
	pod := w.pod()
	if pod.Labels["tier"] != "front" || len(pod.Spec.Tolerations) != 1 || len(pod.Spec.EphemeralContainers) != 1 || pod.Spec.Containers[0].Image != "busybox" {
		t.Errorf("labels %v, tolerations %v, ephemeral containers %v", pod.Labels, pod.Spec.Tolerations, pod.Spec.EphemeralContainers)
	}
	// One of them names the container for debugging.
	if *patches != 4+1 || result.RequeueAfter != time.Minute || !strings.Contains(w.refusedChange(), "images: ") || !strings.Contains(w.refusedChange(), "this image is not allowed") {
		t.Errorf("%d patches; again in %s; the condition says %q", *patches, result.RequeueAfter, w.refusedChange())
	}
	refuse = false
	w.clock.SetTime(w.clock.Now().Add(time.Minute))
	if _, err := w.pass(); err != nil || w.pod().Spec.Containers[0].Image != "bad" || w.refusedChange() != "" {
		t.Errorf("error %v: when it may, the image is %s, and the condition says %q", err, w.pod().Spec.Containers[0].Image, w.refusedChange())
	}
}

func TestWhatChangesInARunningPod(t *testing.T) {
	exists := func(seconds *int64) corev1.Toleration {
		return corev1.Toleration{Key: "a", Operator: "Exists", Effect: "NoExecute", TolerationSeconds: seconds}
	}
	type spec struct {
		Deadline    *int64
		Tolerations []corev1.Toleration
	}
	for name, tc := range map[string]struct {
		first, theirs, then, want spec
	}{
		"a toleration more":              {spec{}, spec{}, spec{nil, []corev1.Toleration{exists(nil)}}, spec{nil, []corev1.Toleration{exists(nil)}}},
		"a toleration for longer":        {spec{nil, []corev1.Toleration{exists(ptr.To[int64](3))}}, spec{nil, []corev1.Toleration{exists(ptr.To[int64](3))}}, spec{nil, []corev1.Toleration{exists(ptr.To[int64](9))}}, spec{nil, []corev1.Toleration{exists(ptr.To[int64](9))}}},
		"a toleration for ever":          {spec{nil, []corev1.Toleration{exists(ptr.To[int64](3))}}, spec{nil, []corev1.Toleration{exists(ptr.To[int64](3))}}, spec{nil, []corev1.Toleration{exists(nil)}}, spec{nil, []corev1.Toleration{exists(nil)}}},
		"a toleration that Pods keep":    {spec{nil, []corev1.Toleration{exists(nil)}}, spec{nil, []corev1.Toleration{exists(nil)}}, spec{}, spec{nil, []corev1.Toleration{exists(nil)}}},
		"the provider's seconds":         {spec{nil, []corev1.Toleration{exists(nil)}}, spec{nil, []corev1.Toleration{exists(ptr.To[int64](5))}}, spec{ptr.To[int64](9), []corev1.Toleration{exists(nil)}}, spec{ptr.To[int64](9), []corev1.Toleration{exists(ptr.To[int64](5))}}},
		"a deadline":                     {spec{}, spec{}, spec{ptr.To[int64](9), nil}, spec{ptr.To[int64](9), nil}},
		"a shorter deadline":             {spec{ptr.To[int64](9), nil}, spec{ptr.To[int64](9), nil}, spec{ptr.To[int64](8), nil}, spec{ptr.To[int64](8), nil}},
		"the provider's is even shorter": {spec{ptr.To[int64](9), nil}, spec{ptr.To[int64](5), nil}, spec{ptr.To[int64](8), nil}, spec{ptr.To[int64](5), nil}},
	} {
		t.Run(name, func(t *testing.T) {
			put := func(to *corev1.PodSpec, s spec) { to.ActiveDeadlineSeconds, to.Tolerations = s.Deadline, s.Tolerations }
			shadow := server()
			put(&shadow.Spec.Pod, tc.first)
			w := newWorld(t, shadow)
			_, _ = w.pass()
			w.podBecomes(func(pod *corev1.Pod) { put(&pod.Spec, tc.theirs) })
			w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) {
				s.Generation = 2
				put(&s.Spec.Pod, tc.then)
			})
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, spec{w.pod().Spec.ActiveDeadlineSeconds, w.pod().Spec.Tolerations}); diff != "" {
				t.Error(diff)
			}
			before := w.Writes
			if _, err := newWorldFrom(w).pass(); err != nil || w.Writes != before {
				t.Errorf("error %v, %d writes at rest", err, w.Writes-before)
			}
		})
	}
}

// Pods of earlier versions say nothing of what was asked for: they are not written only to say it, and follow what changes.
func TestPodsWithoutTheNoteFollow(t *testing.T) {
	w := newWorld(t, server())
	_, _ = w.pass()
	w.podBecomes(func(pod *corev1.Pod) {
		maps.DeleteFunc(pod.Annotations, func(key, _ string) bool { return key == offloadingv1beta1.AskedAnnotation })
		pod.Spec.Containers[1].Image = "mirror/fluent"
	})
	before := w.Writes
	if _, err := w.pass(); err != nil || w.Writes != before {
		t.Errorf("error %v, %d writes", err, w.Writes-before)
	}
	w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) { s.Labels["tier"] = "front" })
	_, _ = w.pass()
	w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) {
		s.Generation, s.Spec.Pod.Containers[0].Image = 2, "busybox:2"
		delete(s.Labels, "tier")
	})
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	pod := w.pod()
	if _, there := pod.Labels["tier"]; there || pod.Spec.Containers[0].Image != "busybox:2" || pod.Spec.Containers[1].Image != "mirror/fluent" {
		t.Errorf("labels %v, images %s and %s", pod.Labels, pod.Spec.Containers[0].Image, pod.Spec.Containers[1].Image)
	}
}

// Who is told of a refused change, or of one that somebody keeps undoing, is not told again by a manager that starts anew.
func TestWhatIsRefusedOfAChangeIsToldOnce(t *testing.T) {
	notAllowed := func(*corev1.Pod) error {
		return apierrors.NewForbidden(corev1.Resource("pods"), "web", errors.New("not this label"))
	}
	for name, tc := range map[string]struct {
		refuse func(*corev1.Pod) error
		// meanwhile is what happens to the Pod before each pass.
		meanwhile func(*corev1.Pod)
		told      map[string]int
		shown     string
	}{
		"a label that is refused": {notAllowed, nil, map[string]int{"FailedReflection": 1}, "FailedReflection: changing labels and annotations: "},
		"a label that is changed": {nil, func(pod *corev1.Pod) { pod.Labels["app"] = "theirs" }, map[string]int{"RemoteChangeReverted": 1, "Contended": 1},
			"Contended: somebody at the provider keeps changing label app of the pod"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, server())
			told := events.NewFakeRecorder(100)
			w.reconciler.Events = told
			_, _ = w.pass()
			w.admission(nil, tc.refuse)
			if tc.refuse != nil {
				w.shadowBecomes(func(s *offloadingv1beta1.ShadowPod) { s.Labels["tier"] = "front" })
			}
			passes := func(count int) {
				for range count {
					if tc.meanwhile != nil {
						w.podBecomes(tc.meanwhile)
					}
					if _, err := w.pass(); err != nil {
						t.Fatal(err)
					}
				}
			}
			passes(3)
			said := w.refusedChange()
			if !strings.HasPrefix(said, tc.shown) {
				t.Errorf("the condition says %q", said)
			}
			for range 3 {
				answering := w.reconciler.Client
				newWorldFrom(w).reconciler.Client = answering
				passes(3)
				if now := w.refusedChange(); now != said {
					t.Errorf("after a restart the condition says %q", now)
				}
			}
			counts := map[string]int{}
			for len(told.Events) > 0 {
				counts[strings.Fields(<-told.Events)[1]]++
			}
			if diff := cmp.Diff(tc.told, counts); diff != "" {
				t.Error(diff)
			}
			w.admission(nil, nil)
			tc.meanwhile = nil
			for range 2 {
				w.clock.SetTime(w.clock.Now().Add(time.Minute))
				passes(1)
			}
			if now := w.refusedChange(); now != "" {
				t.Errorf("when all is quiet the condition says %q", now)
			}
		})
	}
}
