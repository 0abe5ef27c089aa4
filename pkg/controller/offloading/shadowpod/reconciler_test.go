package shadowpod

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/provenance"
	"liqo.io/liqo/pkg/controller/offloading/signoflife"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/fakeapi"
)

var key = types.NamespacedName{Namespace: "shop-rome", Name: "web"}

// world is one provider with one ShadowPod.
type world struct {
	*testing.T
	*fakeapi.Server
	reconciler *reconciler
	refuse     error
	clock      *testclock.FakePassiveClock
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := &world{T: t, clock: testclock.NewFakePassiveClock(start)}
	w.Server = fakeapi.New(t, fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{offloadingv1beta1.AddToScheme, networkingv1beta1.AddToScheme}, Objects: objects,
		Build: func(b *fake.ClientBuilder) { b.WithStatusSubresource(&offloadingv1beta1.ShadowPod{}) },
		Creating: func(o client.Object) error {
			o.SetCreationTimestamp(metav1.NewTime(w.clock.Now()))
			o.SetUID(types.UID("pod-uid"))
			return w.refuse
		},
		Resizing: func() error { return w.refuse },
	})
	w.reconciler = &reconciler{Client: w.Client, claims: newClaims(), provenance: provenance.New(w.Client, w.Client, nil), Options: Options{Live: w.Client, Clock: w.clock, Events: events.NewFakeRecorder(100),
		Check: func(spec *corev1.PodSpec) field.ErrorList {
			if spec.HostNetwork {
				return field.ErrorList{field.Forbidden(field.NewPath("spec", "pod", "hostNetwork"), "not here")}
			}
			return nil
		}}}
	return w
}

// pass reconciles until nothing is written any more and returns the last error.
func (w *world) pass() (result ctrl.Result, err error) {
	w.Helper()
	w.Rest(w, func() bool {
		result, err = w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		return err != nil && !apierrors.IsConflict(err)
	})
	return result, err
}

func (w *world) pod() *corev1.Pod {
	w.Helper()
	var pod corev1.Pod
	if err := w.Get(context.Background(), key, &pod); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Fatal(err)
	}
	return &pod
}

func (w *world) shadow() *offloadingv1beta1.ShadowPod {
	w.Helper()
	var shadow offloadingv1beta1.ShadowPod
	if err := w.Get(context.Background(), key, &shadow); err != nil {
		w.Fatal(err)
	}
	return &shadow
}

// set changes the pod's status as a kubelet would.
func (w *world) set(change func(*corev1.Pod)) {
	w.Helper()
	pod := w.pod()
	change(pod)
	status := pod.Status
	if err := w.Update(context.Background(), pod); err != nil {
		w.Fatal(err)
	}
	pod.Status = status
	if err := w.Status().Update(context.Background(), pod); err != nil {
		w.Fatal(err)
	}
}

func (w *world) ready() string {
	c := meta.FindStatusCondition(w.shadow().Status.Conditions, "Ready")
	if c == nil {
		return ""
	}
	return string(c.Status) + " " + c.Reason
}

func job() *offloadingv1beta1.ShadowPod {
	return &offloadingv1beta1.ShadowPod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "uid-1",
			Labels: map[string]string{"app": "web", offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.CreatorUserLabel: "user-1"},
			Annotations: map[string]string{"liqo.io/origin-uid": "local-uid", offloadingv1beta1.LogsRequestedAnnotation: "true",
				"offloading.liqo.io/resources-asked":               "forged",
				"container.apparmor.security.beta.kubernetes.io/c": "unconfined", offloadingv1beta1.CreatorUserAnnotation: "somebody-else"}},
		Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, NodeName: "chosen", AutomountServiceAccountToken: ptr.To(true),
			Containers: []corev1.Container{{Name: "c", Image: "busybox"}}}},
	}
}

func TestPodIsMadeAsItShould(t *testing.T) {
	w := newWorld(t, job())
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Finalizers: []string{"shadowpod.liqo.io/record"},
			Labels: map[string]string{"app": "web", "offloading.liqo.io/origin": "rome", "liqo.io/managed-by": "shadowpod", "liqo.io/managed": "true"},
			Annotations: map[string]string{"liqo.io/origin-uid": "local-uid", "offloading.liqo.io/creator-user": "user-1", "offloading.liqo.io/resources-asked": reflection.ResourcesAsked(&job().Spec.Pod),
				"offloading.liqo.io/containers": "c", "offloading.liqo.io/no-pull-secrets": "true",
				"offloading.liqo.io/asked": "ayu-OhXdZAJ2i4TDSFLBGtSql4rc3-UmmnbHlYgyB96MHUsIlrJxOFZya4YKlxEIkUGLlUm4"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job(), offloadingv1beta1.GroupVersion.WithKind("ShadowPod"))}},
		Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: ptr.To(false), Containers: []corev1.Container{{Name: "c", Image: "busybox"}}},
	}
	if diff := cmp.Diff(want, w.pod(), cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ResourceVersion", "CreationTimestamp", "UID")); diff != "" {
		t.Error(diff)
	}
	if w.Writes != 1 {
		t.Errorf("%d writes for a pod that is pending, want the pod alone", w.Writes)
	}
	w.set(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	before := w.Writes
	if _, err := w.pass(); err != nil || w.Writes != before || w.ready() != "" {
		t.Errorf("error %v, %d writes for a pod that runs, ready %q: a healthy pod is told by itself", err, w.Writes-before, w.ready())
	}
}

func TestServersCarryNoFinalizer(t *testing.T) {
	shadow := job()
	shadow.Spec.Pod.RestartPolicy = corev1.RestartPolicyAlways
	w := newWorld(t, shadow)
	if _, err := w.pass(); err != nil || len(w.pod().Finalizers) > 0 {
		t.Errorf("error %v, finalizers %v", err, w.pod().Finalizers)
	}
}

// C15: a Job that completes remotely stays completed after its pod and the node are removed.
func TestFinishedPodNeverRunsAgain(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, job())
	_, _ = w.pass()
	w.set(ended(corev1.PodSucceeded, -1))
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if shadow := w.shadow(); shadow.Status.Phase != corev1.PodSucceeded || len(shadow.Status.ContainerStatuses) != 1 || w.ready() != "True PodTerminated" {
		t.Fatalf("recorded %s, %d containers, ready %s", shadow.Status.Phase, len(shadow.Status.ContainerStatuses), w.ready())
	}
	if finalizers := w.pod().Finalizers; len(finalizers) > 0 {
		t.Fatalf("the pod still has %v", finalizers)
	}
	if err := w.Delete(ctx, w.pod()); err != nil {
		t.Fatal(err)
	}
	restarted := newWorldFrom(w)
	for _, now := range []*world{w, restarted} {
		if _, err := now.pass(); err != nil || now.pod() != nil {
			t.Errorf("error %v; the pod is back: %v", err, now.pod() != nil)
		}
	}
}

// newWorldFrom is the same provider after a restart of the controller.
func newWorldFrom(w *world) *world {
	w.reconciler = &reconciler{Client: w.Client, claims: newClaims(), provenance: provenance.New(w.Client, w.Client, nil), Options: w.reconciler.Options,
		signs: signoflife.New(w.Client, w.reconciler.Live)}
	return w
}

// C15: a pod that is deleted between its end and the record of it, together with its node.
func TestEndIsRecordedAlthoughThePodIsDeleted(t *testing.T) {
	w := newWorld(t, job())
	_, _ = w.pass()
	w.set(ended(corev1.PodFailed, -30))
	if err := w.Delete(context.Background(), w.pod()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if w.shadow().Status.Phase != corev1.PodFailed || w.pod() != nil {
		t.Errorf("phase %s, pod there: %v", w.shadow().Status.Phase, w.pod() != nil)
	}
}

// C4 and C14: what a provider's user, a full node or a lost one takes away is made again, and was not the end.
func TestDeletedEvictedAndLostPodsAreMadeAgain(t *testing.T) {
	ctx := context.Background()
	for name, happen := range map[string]func(w *world){
		"C4: deleted while it runs": func(w *world) {
			w.set(func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning; p.Finalizers = nil })
			_ = w.Delete(ctx, w.pod())
		},
		"C4: deleted, and stopped by that": func(w *world) {
			w.set(ended(corev1.PodFailed, 10*365*24*3600))
			_ = w.Delete(ctx, w.pod())
		},
		"C14: evicted": func(w *world) {
			w.clock.SetTime(start.Add(settle))
			w.set(ended(corev1.PodFailed, -1))
			w.set(disruption)
			w.set(reason("Evicted"))
		},
		"C14: lost with its node": func(w *world) {
			w.set(failed)
			w.set(disruption)
			_ = w.Delete(ctx, w.pod())
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, job())
			_, _ = w.pass()
			w.set(func(p *corev1.Pod) { p.UID = "old"; p.CreationTimestamp = seconds(-100) })
			happen(w)
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if pod := w.pod(); pod == nil || pod.UID == "old" || Terminal(w.shadow().Status.Phase) {
				t.Errorf("pod %v, phase %s", pod, w.shadow().Status.Phase)
			}
		})
	}
}

func TestWhatThePodsNameIsTakenBy(t *testing.T) {
	foreign := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "foreign", Labels: map[string]string{"app": "other"}}}
	w := newWorld(t, job(), foreign)
	before := w.pod().ResourceVersion
	result, err := w.pass()
	if err != nil || result.RequeueAfter == 0 || w.ready() != "False PodConflict" || w.pod().ResourceVersion != before {
		t.Errorf("error %v, again in %s, ready %s", err, result.RequeueAfter, w.ready())
	}
	if err := w.Delete(context.Background(), w.pod()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pass(); err != nil || w.pod() == nil || w.pod().UID == "foreign" {
		t.Errorf("error %v: the pod is not made once the name is free", err)
	}
}

// C2: same name, new UID: the old pod goes first, then the new one comes.
func TestOldPodGoesFirst(t *testing.T) {
	w := newWorld(t, job())
	_, _ = w.pass()
	w.set(func(p *corev1.Pod) { p.UID = "old" })
	if err := w.Delete(context.Background(), w.shadow()); err != nil {
		t.Fatal(err)
	}
	again := job()
	again.UID, again.Spec.Pod.Containers[0].Image = "uid-2", "nginx"
	if err := w.Client.Create(context.Background(), again); err != nil {
		t.Fatal(err)
	}
	again = w.shadow()
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	pod := w.pod()
	if pod == nil || pod.UID == "old" || pod.Spec.Containers[0].Image != "nginx" || !metav1.IsControlledBy(pod, again) {
		t.Errorf("pod %+v", pod)
	}
}

// The pod of a ShadowPod that is gone is let go by its finalizer.
func TestOrphanIsReleased(t *testing.T) {
	w := newWorld(t, job())
	_, _ = w.pass()
	_ = w.Delete(context.Background(), w.shadow())
	_ = w.Delete(context.Background(), w.pod())
	if _, err := w.pass(); err != nil || w.pod() != nil {
		t.Errorf("error %v, the pod is still there: %v", err, w.pod() != nil)
	}
}

func TestRefusals(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	hostile := job()
	hostile.Spec.Pod.HostNetwork = true
	for name, tc := range map[string]struct {
		shadow  *offloadingv1beta1.ShadowPod
		refuse  error
		want    string
		retried bool
	}{
		"V4: a specification that is not on the list": {hostile, nil, "False PodRefused", false},
		"D8: the quota is used up":                    {job(), apierrors.NewForbidden(pods, "web", errors.New("exceeded quota: liqo")), "False FailedCreatePod", true},
		"D9: there is no such class of priorities":    {job(), apierrors.NewForbidden(pods, "web", errors.New("no PriorityClass with name high was found")), "False FailedCreatePod", true},
		"D9: there is no such runtime":                {job(), apierrors.NewForbidden(pods, "web", errors.New("pod rejected: RuntimeClass \"gvisor\" not found")), "False FailedCreatePod", true},
		"D9: there is no such ServiceAccount":         {job(), apierrors.NewForbidden(pods, "web", errors.New("error looking up service account shop-rome/web: serviceaccount \"web\" not found")), "False FailedCreatePod", true},
		"D8: the pod is invalid":                      {job(), apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", nil), "False FailedCreatePod", true},
		"an admission policy without a reason":        {job(), apierrors.NewInvalid(schema.GroupKind{Kind: "Pod"}, "web", field.ErrorList{field.Forbidden(nil, "denied request: no")}), "False FailedCreatePod", true},
		"a webhook without a code":                    {job(), apierrors.NewBadRequest("admission webhook \"images\" denied the request"), "False FailedCreatePod", true},
		"D8: the pod is too large":                    {job(), apierrors.NewRequestEntityTooLargeError("limit is 3145728"), "False FailedCreatePod", false},
		"the namespace is going":                      {job(), apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "shop-rome"), "False FailedCreatePod", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.shadow)
			w.refuse = tc.refuse
			result, err := w.pass()
			if w.ready() != tc.want || w.pod() != nil {
				t.Errorf("ready %q, want %q; pod there: %v", w.ready(), tc.want, w.pod() != nil)
			}
			if (result.RequeueAfter > 0) != tc.retried || (err == nil) != tc.retried {
				t.Errorf("again in %s, error %v", result.RequeueAfter, err)
			}
			writes := w.Writes
			if _, _ = w.pass(); w.Writes != writes {
				t.Error("the same refusal is written again")
			}
			w.refuse = nil
			if _, err := w.pass(); tc.retried && (err != nil || w.pod() == nil) {
				t.Errorf("error %v: the pod is not made once it may be", err)
			}
		})
	}
}

// The cache does not show a pod that exists: nothing is made twice and nothing is taken for a conflict.
func TestPodThatTheCacheDoesNotShow(t *testing.T) {
	w := newWorld(t, job())
	_, _ = w.pass()
	w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, isPod := o.(*corev1.Pod); isPod {
				return apierrors.NewNotFound(schema.GroupResource{Resource: "pods"}, k.Name)
			}
			return c.Get(ctx, k, o, opts...)
		}})
	result, err := w.reconciler.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	if err != nil || result.RequeueAfter != lag {
		t.Errorf("error %v, again in %s", err, result.RequeueAfter)
	}
}

func TestLabelsAndImagesFollow(t *testing.T) {
	w := newWorld(t, job())
	_, _ = w.pass()
	shadow := w.shadow()
	shadow.Generation, shadow.Labels["tier"], shadow.Spec.Pod.Containers[0].Image = 2, "front", "busybox:2"
	shadow.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "a", Operator: "Exists", TolerationSeconds: ptr.To[int64](3)}}
	if err := w.Update(context.Background(), shadow); err != nil {
		t.Fatal(err)
	}
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	pod := w.pod()
	if pod.Labels["tier"] != "front" || pod.Spec.Containers[0].Image != "busybox:2" || len(pod.Spec.Tolerations) != 1 {
		t.Errorf("labels %v, image %s, tolerations %v", pod.Labels, pod.Spec.Containers[0].Image, pod.Spec.Tolerations)
	}
}

// What the consumer says of the time that a pod has to end in is in the first deletion, and no other pod is made.
func TestAPodEndsInTheTimeThatItsConsumerWants(t *testing.T) {
	shadow := job()
	w := newWorld(t, shadow)
	w.reconciler.MaxGracePeriod = time.Minute
	if _, err := w.pass(); err != nil || w.pod() == nil {
		t.Fatal(err)
	}
	now := w.shadow()
	now.Annotations[offloadingv1beta1.EndsInAnnotation] = "600"
	if err := w.Update(context.Background(), now); err != nil {
		t.Fatal(err)
	}
	var graces []int64
	w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			applied := &client.DeleteOptions{}
			applied.ApplyOptions(options)
			graces = append(graces, ptr.Deref(applied.GracePeriodSeconds, -1))
			return c.Delete(ctx, o, options...)
		}})
	w.set(func(p *corev1.Pod) { p.Finalizers = nil })
	for range 2 {
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]int64{60}, graces); diff != "" || w.pod() != nil {
		t.Errorf("grace periods, -want +got: %s; the pod is there: %t", diff, w.pod() != nil)
	}
}
