package offloading

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// stubborn is how long a refused pod is watched: what tries again at once, or each second, is found out.
const stubborn = 15 * time.Second

const registryOnly = "images come from registry.milan.example"

var obstacles = map[string]world.Obstacle{
	"Pod Security":                  {Raise: restrict, Words: `violates PodSecurity "restricted:latest"`, Reason: offloadingv1beta1.ReasonPodCreationFailed},
	"a policy that gives no reason": {Raise: denyBy(""), Words: registryOnly, Reason: offloadingv1beta1.ReasonPodCreationFailed},
	"a policy that forbids":         {Raise: denyBy(metav1.StatusReasonForbidden), Words: registryOnly, Reason: offloadingv1beta1.ReasonPodCreationFailed},
	"a webhook":                     {Raise: webhook(http.StatusForbidden), Words: "denied the request: " + registryOnly, Reason: offloadingv1beta1.ReasonPodCreationFailed},
	"a webhook that finds it invalid": {Raise: webhook(http.StatusUnprocessableEntity), Words: "denied the request: " + registryOnly,
		Reason: offloadingv1beta1.ReasonPodCreationFailed},
	"a ResourceQuota": {Raise: noPods, Words: "exceeded quota: theirs", Reason: offloadingv1beta1.ReasonPodCreationFailed},
	"D9: a RuntimeClass that the provider does not allow": {Words: "runtimeClassName", Reason: offloadingv1beta1.ReasonPodRefused,
		Change: func(p *corev1.Pod) {
			p.Annotations = map[string]string{offloadingv1beta1.RemoteRuntimeClassAnnotation: "gvisor"}
		}},
}

// restrict has the provider enforce a Pod Security level that the pod does not reach.
func restrict(t *testing.T, namespace string) func() {
	t.Helper()
	label := func(value string) {
		patch := fmt.Sprintf(`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":%s}}}`, value)
		fixture.Must(t, "labelling the twin", env.Milan.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}},
			client.RawPatch("application/merge-patch+json", []byte(patch))))
	}
	label(`"restricted"`)
	return func() { label("null") }
}

// noPods gives the twin a quota that is used up.
func noPods(t *testing.T, namespace string) func() {
	t.Helper()
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "theirs"},
		Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}}}
	env.Provide(t, quota)
	return func() { fixture.Must(t, "deleting the quota", env.Milan.Client.Delete(t.Context(), quota)) }
}

// newPodsOf are the creations of pods in one namespace.
func newPodsOf(namespace string) (*metav1.LabelSelector, admissionregistrationv1.RuleWithOperations) {
	return &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}, admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
	}
}

// denyBy has an admission policy deny the pods of a twin, for a reason that policies need not give.
func denyBy(reason metav1.StatusReason) func(*testing.T, string) func() {
	return func(t *testing.T, namespace string) func() {
		t.Helper()
		selector, rule := newPodsOf(namespace)
		validation := admissionregistrationv1.Validation{Message: registryOnly,
			Expression: "object.spec.containers.all(c, c.image.startsWith('registry.milan.example/'))"}
		if reason != "" {
			validation.Reason = &reason
		}
		policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: namespace},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
				MatchConstraints: &admissionregistrationv1.MatchResources{NamespaceSelector: selector,
					ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}}},
				Validations: []admissionregistrationv1.Validation{validation},
			}}
		binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: namespace},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: namespace,
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}}}
		env.Provide(t, policy, binding)
		return func() { fixture.Must(t, "unbinding the policy", env.Milan.Client.Delete(t.Context(), binding)) }
	}
}

// webhook has a webhook deny the pods of a twin with an HTTP code.
func webhook(code int32) func(*testing.T, string) func() {
	return func(t *testing.T, namespace string) func() {
		t.Helper()
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			review := &admissionv1.AdmissionReview{}
			if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
				http.Error(w, fmt.Sprint(err), http.StatusBadRequest)
				return
			}
			review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Code: code, Message: registryOnly}}
			_ = json.NewEncoder(w).Encode(review) // The API server says it if this fails.
		}))
		t.Cleanup(server.Close)
		selector, rule := newPodsOf(namespace)
		none := admissionregistrationv1.SideEffectClassNone
		configuration := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: namespace},
			Webhooks: []admissionregistrationv1.ValidatingWebhook{{
				Name: "registry.milan.example", NamespaceSelector: selector, Rules: []admissionregistrationv1.RuleWithOperations{rule},
				SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
				ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: ptr.To(server.URL),
					CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})},
			}}}
		env.Provide(t, configuration)
		return func() { fixture.Must(t, "removing the webhook", env.Milan.Client.Delete(t.Context(), configuration)) }
	}
}

// D8 and D9: what the provider's own rules refuse is pending at home with the provider's words, which are told once; nobody keeps
// asking. Once the obstacle is gone the pod runs without anybody touching it. What the provider's LimitRange makes of a pod, and
// a PriorityClass that it does not have, are no obstacles.
func TestD8WhatTheProviderRefuses(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	defaults := defaulted(t)
	var pods []*world.RefusedPod
	for name, o := range obstacles {
		r := o.Meet(t, &env)
		t.Logf("namespace %s: %s", r.Namespace, name)
		pods = append(pods, r)
	}
	for _, r := range pods {
		r.Says(t)
	}
	end := time.Now().Add(stubborn)
	fixture.Await(t, 2*stubborn, "some time to pass", func(context.Context) (bool, string) { return time.Now().After(end), "it passes" })
	defaults.rests(t)
	for _, r := range pods {
		if told, all := r.Told(t.Context()); told != 1 {
			t.Errorf("it was told %d times in %s:\n%s", told, r.Namespace, all)
		}
		tries := 0
		for _, write := range env.Milan.Recorder.RefusedSince(t, r.Start, fixture.OfLiqo) {
			if write.Namespace == r.Namespace && (write.Resource == "pods" || write.Resource == "shadowpods.offloading.liqo.io") {
				tries++
			}
		}
		// What is written about the first refusal has it tried once more; after that, once a minute.
		most := 3 + int(time.Since(r.Began)/reconcile.RefusedRetry)
		if tries < 1 || tries > most {
			t.Errorf("it was tried %d times in %s, want at most %d", tries, r.Namespace, most)
		}
	}
	for _, r := range pods {
		if r.Lift != nil {
			r.Lift()
		}
	}
	for _, r := range pods {
		if r.Lift != nil {
			world.AwaitPods(t, env.Rome, r.Namespace, 1)
			world.AwaitPods(t, env.Milan, r.Namespace, 1)
		}
	}
	defaults.check(t)
}

// defaultedPod is a pod at milan that is not what was asked for.
type defaultedPod struct {
	*corev1.Pod
	start map[*fixture.Cluster]fixture.Moment
}

// defaulted runs a pod of a PriorityClass that only rome has in a twin whose LimitRange gives it resources that it did not ask
// for, and then changes the pod.
func defaulted(t *testing.T) *defaultedPod {
	t.Helper()
	namespace := env.Offloaded(t)
	env.Provide(t, &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "defaults"}, Spec: corev1.LimitRangeSpec{
		Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer,
			Default: world.Quantities("cpu", "2", "memory", "64Mi"), DefaultRequest: world.Quantities("cpu", "10m", "memory", "32Mi")}}}})
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("urgent")}, Value: 1000}
	fixture.Must(t, "creating a PriorityClass at rome", env.Rome.Client.Create(t.Context(), class))
	local := world.Pod(namespace, "defaulted")
	local.Spec.PriorityClassName = class.Name
	fixture.Await(t, fixture.Patience, "the pod with the new PriorityClass to be admitted", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Create(ctx, local)
		return err == nil, fmt.Sprint(err)
	})
	world.AwaitPods(t, env.Rome, namespace, 1)
	d := &defaultedPod{Pod: world.Pod(namespace, "defaulted"), start: map[*fixture.Cluster]fixture.Moment{}}
	fixture.Must(t, "reading the pod at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(d.Pod), d.Pod))
	if got := d.Spec.Containers[0].Resources; got.Limits.Cpu().Value() != 2 || got.Requests.Cpu().MilliValue() != 10 {
		t.Fatalf("the LimitRange had no effect: %+v", got)
	}
	if d.Spec.PriorityClassName == class.Name {
		t.Errorf("the pod at milan is of PriorityClass %s", class.Name)
	}
	fixture.Must(t, "reading the pod at rome", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(local), local))
	if !slices.ContainsFunc(local.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == offloadingv1beta1.PriorityCondition && c.Reason == offloadingv1beta1.ReasonPriorityNotKept
	}) {
		t.Errorf("the pod at rome does not say that it is without its priority: %+v", local.Status.Conditions)
	}
	fixture.Must(t, "changing the pod's image", env.Rome.Client.Patch(t.Context(), withImage(local, "other"), client.StrategicMergeFrom(local)))
	return d
}

// withImage is a pod with another image.
func withImage(pod *corev1.Pod, image string) *corev1.Pod {
	other := pod.DeepCopy()
	other.Spec.Containers[0].Image = image
	return other
}

// rests says that nothing is to be written from now on.
func (d *defaultedPod) rests(t *testing.T) {
	t.Helper()
	for _, c := range []*fixture.Cluster{env.Rome, env.Milan} {
		d.start[c] = c.Recorder.Now(t)
	}
}

// check finds out whether the pod is what the provider made of it, and whether nobody tried to change that.
func (d *defaultedPod) check(t *testing.T) {
	t.Helper()
	live := &corev1.Pod{}
	fixture.Must(t, "reading the pod at milan", env.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(d.Pod), live))
	if diff := cmp.Diff(d.Spec.Containers[0].Resources, live.Spec.Containers[0].Resources); diff != "" || live.UID != d.UID || live.Spec.Containers[0].Image != "other" {
		t.Errorf("the pod, with image %q, is another one: %t, or has other resources: %s", live.Spec.Containers[0].Image, live.UID != d.UID, diff)
	}
	for c, start := range d.start {
		for _, write := range append(c.Recorder.Since(t, start, fixture.OfLiqo), c.Recorder.RefusedSince(t, start, fixture.OfLiqo)...) {
			if write.Namespace == d.Namespace {
				t.Errorf("at %s: %s: %s", c.ID, write, write.Body)
			}
		}
	}
}
