package shadowpod

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

const (
	user  = "liqo.io:slice:milan-0123456789ab"
	group = "liqo.io:consumer:rome"
)

func newWebhook(t *testing.T, cordoned bool) *webhook {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	twin := func(name, cluster, manager string) *corev1.Namespace {
		ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/remote-cluster-id": cluster, "liqo.io/managed": "true"}}}
		if manager != "" {
			ns.Annotations = map[string]string{"liqo.io/managed-by-namespace-map": manager}
		}
		return ns
	}
	quota := &offloadingv1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "q"}, Spec: offloadingv1beta1.QuotaSpec{User: user,
		Cordoned: ptr.To(cordoned), Resources: corev1.ResourceList{"cpu": resource.MustParse("2"), "pods": resource.MustParse("2")}}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(quota, twin("shop-rome", "rome", "liqo-tenant-rome/milan"), twin("shop-naples", "naples", "liqo-tenant-naples/milan"),
		twin("liqo-tenant-rome", "rome", "")).Build()
	w := &webhook{Reader: c, book: newBook(nil), Options: Options{Enforce: true, Clock: testclock.NewFakePassiveClock(time.Unix(0, 0)), Check: func(s *corev1.PodSpec) field.ErrorList {
		if s.HostNetwork {
			return field.ErrorList{field.Forbidden(field.NewPath("spec", "pod", "hostNetwork"), "not here")}
		}
		return nil
	}}}
	w.book.synced.Store(true)
	return w
}

func shadow(changes ...func(*offloadingv1beta1.ShadowPod)) *offloadingv1beta1.ShadowPod {
	s := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "web", Labels: map[string]string{
		"offloading.liqo.io/origin": "rome", "liqo.io/creator-user": capacity.UserLabel(user)}},
		Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "busybox",
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}}}
	for _, change := range changes {
		change(s)
	}
	return s
}

func raw(t *testing.T, o any) runtime.RawExtension {
	t.Helper()
	text, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.RawExtension{Raw: text}
}

func request(t *testing.T, operation admissionv1.Operation, old, now *offloadingv1beta1.ShadowPod, changes ...func(*admission.Request)) admission.Request {
	t.Helper()
	req := admission.Request{AdmissionRequest: admissionv1.AdmissionRequest{Operation: operation, Namespace: "shop-rome", Name: "web",
		UserInfo: authenticationv1.UserInfo{Username: user, Groups: []string{"system:authenticated", group}}}}
	if now != nil {
		req.Object = raw(t, now)
	}
	if old != nil {
		req.OldObject = raw(t, old)
	}
	for _, change := range changes {
		change(&req)
	}
	return req
}

func words(r admission.Response) string {
	if r.Result == nil {
		return ""
	}
	return r.Result.Message
}

func TestCreate(t *testing.T) {
	as := func(name string, groups ...string) func(*admission.Request) {
		return func(r *admission.Request) { r.UserInfo.Username, r.UserInfo.Groups = name, groups }
	}
	in := func(namespace string) func(*admission.Request) {
		return func(r *admission.Request) { r.Namespace = namespace }
	}
	for name, tc := range map[string]struct {
		shadow   *offloadingv1beta1.ShadowPod
		change   func(*admission.Request)
		cordoned bool
		want     string
	}{
		"what a virtual kubelet sends":        {shadow(), func(*admission.Request) {}, false, ""},
		"V4: a field that is not on the list": {shadow(func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.HostNetwork = true }), func(*admission.Request) {}, false, "PodRefused: spec.pod.hostNetwork"},
		"V4: a field that nobody knows":       {nil, func(r *admission.Request) { r.Object.Raw = []byte(`{"spec":{"pod":{"hostTeleport":true}}}`) }, false, `PodRefused: decoding the ShadowPod: unknown field "spec.pod.hostTeleport"`},
		"V4: a field twice": {nil, func(r *admission.Request) {
			r.Object.Raw = []byte(`{"spec":{"pod":{"hostNetwork":true,"hostNetwork":false}}}`)
		}, false, "PodRefused: decoding the ShadowPod: duplicate field"},
		"V4: a field in capitals":          {nil, func(r *admission.Request) { r.Object.Raw = []byte(`{"spec":{"pod":{"HOSTNETWORK":true}}}`) }, false, "PodRefused: decoding the ShadowPod: unknown field"},
		"V4: no JSON":                      {nil, func(r *admission.Request) { r.Object.Raw = []byte(`{`) }, false, "PodRefused: decoding"},
		"V12: another cluster's origin":    {shadow(func(s *offloadingv1beta1.ShadowPod) { s.Labels["offloading.liqo.io/origin"] = "naples" }), func(*admission.Request) {}, false, "PodRefused: the label offloading.liqo.io/origin"},
		"V12: no origin":                   {shadow(func(s *offloadingv1beta1.ShadowPod) { delete(s.Labels, "offloading.liqo.io/origin") }), func(*admission.Request) {}, false, "PodRefused: the label offloading.liqo.io/origin"},
		"V12: another cluster's namespace": {shadow(), in("shop-naples"), false, "PodRefused: namespace shop-naples is not offloaded by cluster rome"},
		"V12: the tenant namespace":        {shadow(), in("liqo-tenant-rome"), false, "PodRefused: namespace liqo-tenant-rome is not offloaded"},
		"V12: another consumer's user":     {shadow(), as("liqo.io:slice:x", "liqo.io:consumer:naples"), false, "PodRefused: namespace shop-rome is not offloaded by cluster naples"},
		"V12: a user of two consumers":     {shadow(), as(user, group, "liqo.io:consumer:naples"), false, "PodRefused: only a virtual kubelet"},
		"V12: nobody's user":               {shadow(), as("admin", "system:masters"), false, "PodRefused: only a virtual kubelet"},
		"V12: a group without name":        {shadow(), as(user, "liqo.io:consumer:"), false, "PodRefused: only a virtual kubelet"},
		"V9: another creator":              {shadow(func(s *offloadingv1beta1.ShadowPod) { s.Labels["liqo.io/creator-user"] = "somebody" }), func(*admission.Request) {}, false, "PodRefused: the label liqo.io/creator-user"},
		"V9: a user without a Quota":       {shadow(func(s *offloadingv1beta1.ShadowPod) { s.Labels["liqo.io/creator-user"] = capacity.UserLabel("other") }), as("other", group), false, "QuotaExceeded: the provider has no Quota"},
		"V9: more than was granted": {shadow(func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Requests["cpu"] = resource.MustParse("3")
		}), func(*admission.Request) {}, false, "QuotaExceeded: the provider's grant of cpu"},
		"V9: more than was granted, as a limit": {shadow(func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Requests = nil
		}, limiting("cpu", "3")), func(*admission.Request) {}, false, "QuotaExceeded: the provider's grant of cpu"},
		"V9: a negative request": {shadow(func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Requests["cpu"] = resource.MustParse("-3")
		}), func(*admission.Request) {}, false, "PodRefused: the quantity -3 of cpu is negative"},
		"V9: as many ephemeral containers as a pod has":    {shadow(debugging(names(64)...)), func(*admission.Request) {}, false, ""},
		"V9: more ephemeral containers":                    {shadow(debugging(names(65)...)), func(*admission.Request) {}, false, "PodRefused: a pod has at most 64 ephemeral containers"},
		"V10: a cordoned slice":                            {shadow(), func(*admission.Request) {}, true, "Cordoned: "},
		"a finalizer, which would keep namespaces forever": {shadow(func(s *offloadingv1beta1.ShadowPod) { s.Finalizers = []string{"x/y"} }), func(*admission.Request) {}, false, "PodRefused: a ShadowPod has no finalizers"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWebhook(t, tc.cordoned)
			got := w.validate(context.Background(), request(t, admissionv1.Create, nil, tc.shadow, tc.change))
			if got.Allowed != (tc.want == "") || !strings.HasPrefix(words(got), tc.want) {
				t.Errorf("allowed %v: %s, want %q", got.Allowed, words(got), tc.want)
			}
		})
	}
}

func TestQuotaOverSeveralPods(t *testing.T) {
	w := newWebhook(t, false)
	create := func(name string, dry bool) bool {
		return w.validate(context.Background(), request(t, admissionv1.Create, nil, shadow(func(s *offloadingv1beta1.ShadowPod) { s.Name = name }), func(r *admission.Request) {
			r.Name, r.DryRun = name, ptr.To(dry)
		})).Allowed
	}
	if !create("a", true) || !create("a", false) || !create("b", false) || create("c", false) {
		t.Error("two pods fit, the third does not")
	}
	a := shadow(func(s *offloadingv1beta1.ShadowPod) { s.Name = "a" })
	w.book.OnAdd(a, true)
	if create("c", false) {
		t.Error("the pod that appeared is not counted")
	}
	done := a.DeepCopy()
	done.Status.Phase = corev1.PodSucceeded
	w.book.OnUpdate(a, done)
	if !create("c", false) {
		t.Error("a finished pod is counted")
	}
	w.book.OnAdd(shadow(func(s *offloadingv1beta1.ShadowPod) { s.Name = "b" }), false)
	w.book.OnDelete(toolscache.DeletedFinalStateUnknown{Key: "shop-rome/b", Obj: shadow(func(s *offloadingv1beta1.ShadowPod) { s.Name = "b" })})
	if !create("d", false) {
		t.Error("a pod whose deletion was missed is counted")
	}
	w.book.synced.Store(false)
	got := w.validate(context.Background(), request(t, admissionv1.Create, nil, shadow()))
	if got.Allowed || got.Result.Code != 503 {
		t.Errorf("allowed %v, code %d before the ledger is complete", got.Allowed, got.Result.Code)
	}
}

func TestWithoutEnforcement(t *testing.T) {
	for cordoned, allowed := range map[bool]bool{false: true, true: false} {
		w := newWebhook(t, cordoned)
		w.Enforce = false
		big := shadow(func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Requests["cpu"] = resource.MustParse("300")
		})
		if got := w.validate(context.Background(), request(t, admissionv1.Create, nil, big)); got.Allowed != allowed {
			t.Errorf("cordoned %v: allowed %v: %s", cordoned, got.Allowed, words(got))
		}
	}
}

func requesting(name corev1.ResourceName, quantity string) func(*offloadingv1beta1.ShadowPod) {
	return func(s *offloadingv1beta1.ShadowPod) {
		s.Spec.Pod.Containers[0].Resources.Requests[name] = resource.MustParse(quantity)
	}
}

func limiting(name corev1.ResourceName, quantity string) func(*offloadingv1beta1.ShadowPod) {
	return func(s *offloadingv1beta1.ShadowPod) {
		limits := corev1.ResourceList{name: resource.MustParse(quantity)}
		for other, has := range s.Spec.Pod.Containers[0].Resources.Limits {
			if other != name {
				limits[other] = has
			}
		}
		s.Spec.Pod.Containers[0].Resources.Limits = limits
	}
}

func together(name corev1.ResourceName, quantity string) func(*offloadingv1beta1.ShadowPod) {
	return func(s *offloadingv1beta1.ShadowPod) {
		s.Spec.Pod.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse(quantity)}}
	}
}

// V9: growing pods share the grant with the others.
func TestPodsThatGrowShareTheGrant(t *testing.T) {
	w := newWebhook(t, false)
	live := map[string]*offloadingv1beta1.ShadowPod{}
	for _, name := range []string{"a", "b"} {
		live[name] = shadow(func(s *offloadingv1beta1.ShadowPod) { s.Name = name }, requesting("cpu", "500m"))
		w.book.OnAdd(live[name], true)
	}
	resize := func(name, cpu string) bool {
		now := live[name].DeepCopy()
		requesting("cpu", cpu)(now)
		return w.validate(context.Background(), request(t, admissionv1.Update, live[name], now, func(r *admission.Request) { r.Name = name })).Allowed
	}
	for range 2 { // asking again costs nothing
		if !resize("a", "1500m") {
			t.Error("a pod does not grow to what is left of the grant")
		}
	}
	if resize("b", "600m") {
		t.Error("one pod grows to what is left of the grant, the other one cannot grow then")
	}
	smaller := live["a"].DeepCopy()
	w.book.OnUpdate(live["a"], smaller)
	if !resize("b", "1") {
		t.Error("what was freed is not free")
	}
}

func TestUpdate(t *testing.T) {
	type change = func(*offloadingv1beta1.ShadowPod)
	other := func(r *admission.Request) { r.UserInfo.Username = "liqo.io:slice:second-0123456789ab" }
	local := func(r *admission.Request) { r.UserInfo = authenticationv1.UserInfo{Username: "admin"} }
	same := func(*admission.Request) {}
	for name, tc := range map[string]struct {
		before, after change
		as            func(*admission.Request)
		want          string
	}{
		"labels": {nil, func(s *offloadingv1beta1.ShadowPod) { s.Labels["app"] = "web" }, same, ""},
		"V14: a wish for logs": {nil, func(s *offloadingv1beta1.ShadowPod) {
			s.Annotations = map[string]string{offloadingv1beta1.LogsRequestedAnnotation: "true"}
		}, same, ""},
		"the image":         {nil, func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Containers[0].Image = "busybox:2" }, same, ""},
		"a new toleration":  {nil, func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "a"}} }, same, ""},
		"a toleration less": {func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "a"}} }, func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Tolerations = nil }, same, "PodRefused: tolerations can only be added"},
		"a toleration that lasts another time": {func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "a", TolerationSeconds: ptr.To[int64](1)}}
		}, func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "a", TolerationSeconds: ptr.To[int64](2)}}
		}, same, ""},
		"another toleration":                           {func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "a"}} }, func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Tolerations = []corev1.Toleration{{Key: "b"}} }, same, "PodRefused: tolerations can only be added"},
		"an ephemeral container":                       {nil, debugging("d"), same, ""},
		"V9: more ephemeral containers than a pod has": {nil, debugging(names(65)...), same, "PodRefused: a pod has at most 64 ephemeral containers"},
		"V9: one more than a pod has":                  {debugging(names(64)...), debugging(names(65)...), same, "PodRefused: a pod has at most 64 ephemeral containers"},
		"labels of one that has too many":              {debugging(names(70)...), func(s *offloadingv1beta1.ShadowPod) { s.Labels["app"] = "web" }, same, ""},
		"an ephemeral container less":                  {debugging("d"), func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.EphemeralContainers = nil }, same, "PodRefused: ephemeral containers can only be added"},
		"another ephemeral container":                  {debugging("d"), debugging("e"), same, "PodRefused: ephemeral containers can only be added"},
		"V9: an ephemeral container with resources": {nil, func(s *offloadingv1beta1.ShadowPod) {
			debugging("d")(s)
			s.Spec.Pod.EphemeralContainers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("3")}
		}, same, "PodRefused: ephemeral containers have no resources"},
		"a deadline":       {nil, func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.ActiveDeadlineSeconds = ptr.To[int64](5) }, same, ""},
		"a later deadline": {func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.ActiveDeadlineSeconds = ptr.To[int64](5) }, func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.ActiveDeadlineSeconds = ptr.To[int64](6) }, same, "PodRefused: activeDeadlineSeconds"},
		"another command":  {nil, func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Containers[0].Command = []string{"sh"} }, same, "PodRefused: the specification of a pod cannot be changed"},
		"a container more": {nil, func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers = append(s.Spec.Pod.Containers, corev1.Container{Name: "d"})
		}, same, "PodRefused: containers cannot be added"},
		"a container less": {nil, func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Containers = nil }, same, "PodRefused: containers cannot be added or removed"},
		"V9: smaller requests to free the grant": {nil, func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources = corev1.ResourceRequirements{}
		}, same, "PodRefused: requests and limits of container \"c\" cannot be removed"},
		"a smaller request":                         {nil, requesting("cpu", "500m"), same, ""},
		"a larger request":                          {nil, requesting("cpu", "2"), same, ""},
		"V9: a larger request than what is granted": {nil, requesting("cpu", "3"), same, "QuotaExceeded: the provider's grant of cpu"},
		"V9: a negative request in place":           {nil, requesting("cpu", "-1"), same, "PodRefused: the cpu of container"},
		"a limit that was not there": {nil, func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("4")}
		}, same, ""},
		"V9: a limit of what was not granted": {nil, limiting("memory", "1Gi"), same, "QuotaExceeded: the provider granted no memory"},
		"V9: too much by a limit that has no request": {func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Requests = corev1.ResourceList{}
		}, limiting("cpu", "3"), same, "QuotaExceeded: the provider's grant of cpu"},
		"a request that was not there": {func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Requests = corev1.ResourceList{}
		}, requesting("cpu", "1"), same, ""},
		"V9: too much that was not there": {func(s *offloadingv1beta1.ShadowPod) {
			s.Spec.Pod.Containers[0].Resources.Requests = corev1.ResourceList{}
		}, requesting("cpu", "3"), same, "QuotaExceeded: the provider's grant of cpu"},
		"V9: a request of what was not granted":     {nil, requesting("memory", "1Gi"), same, "QuotaExceeded: the provider granted no memory"},
		"resources of the pod":                      {nil, together("cpu", "2"), same, ""},
		"V9: more for the pod than what is granted": {nil, together("cpu", "3"), same, "QuotaExceeded: the provider's grant of cpu"},
		"V9: more for the pod of something else":    {nil, together("hugepages-2Mi", "2Mi"), same, "PodRefused: of the resources of the pod only cpu"},
		"V9: a negative request of the pod":         {nil, together("cpu", "-1"), same, "PodRefused: the cpu of the pod is negative"},
		"less for the pod":                          {together("cpu", "2"), together("cpu", "1"), same, ""},
		"V9: nothing for the pod any more": {together("cpu", "2"), func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Resources = nil }, same,
			"PodRefused: requests and limits of the pod cannot be removed"},
		"V9: something else that was not there": {nil, requesting("example.com/gpu", "1"), same, "PodRefused: of the resources of container \"c\" only cpu"},
		"V9: more of something else":            {requesting("example.com/gpu", "1"), requesting("example.com/gpu", "2"), same, "PodRefused: of the resources of container \"c\" only cpu"},
		"V12: another origin":                   {nil, func(s *offloadingv1beta1.ShadowPod) { s.Labels["offloading.liqo.io/origin"] = "naples" }, same, "PodRefused: the label offloading.liqo.io/origin cannot"},
		"V9: another creator":                   {nil, func(s *offloadingv1beta1.ShadowPod) { s.Labels["liqo.io/creator-user"] = "x" }, same, "PodRefused: the label liqo.io/creator-user cannot"},
		"another slice's user":                  {nil, func(s *offloadingv1beta1.ShadowPod) { s.Labels["app"] = "web" }, other, "PodRefused: the ShadowPod was created by another user"},
		"an administrator's label":              {nil, func(s *offloadingv1beta1.ShadowPod) { s.Labels["app"] = "web" }, local, ""},
		"a finalizer":                           {nil, func(s *offloadingv1beta1.ShadowPod) { s.Finalizers = []string{"x/y"} }, same, "PodRefused: a ShadowPod has no finalizers"},
	} {
		t.Run(name, func(t *testing.T) {
			old := shadow()
			if tc.before != nil {
				tc.before(old)
			}
			now := old.DeepCopy()
			tc.after(now)
			w := newWebhook(t, false)
			w.book.OnAdd(old, true)
			got := w.validate(context.Background(), request(t, admissionv1.Update, old, now, tc.as))
			if got.Allowed != (tc.want == "") || !strings.HasPrefix(words(got), tc.want) {
				t.Errorf("allowed %v: %s, want %q", got.Allowed, words(got), tc.want)
			}
		})
	}
	if got := newWebhook(t, false).validate(context.Background(), request(t, admissionv1.Delete, shadow(), nil)); !got.Allowed {
		t.Error("deletion is refused")
	}
}

// V9: what enforcement Hard wanted at creation it wants of every later size, also of one that takes nothing more of the grant.
func TestHardStaysHard(t *testing.T) {
	full := func(cpu, memory string) func(*offloadingv1beta1.ShadowPod) {
		return func(s *offloadingv1beta1.ShadowPod) {
			amount := corev1.ResourceList{"cpu": resource.MustParse(cpu), "memory": resource.MustParse(memory)}
			s.Spec.Pod.Containers[0].Resources = corev1.ResourceRequirements{Requests: amount, Limits: amount.DeepCopy()}
		}
	}
	for name, tc := range map[string]struct {
		before, after func(*offloadingv1beta1.ShadowPod)
		want          string
	}{
		"a larger limit alone":             {full("1", "1Gi"), limiting("cpu", "1000"), "QuotaExceeded: container \"c\" must have a cpu limit equal to its request 1"},
		"another size":                     {full("1", "1Gi"), full("2", "1Gi"), ""},
		"an image of one that came before": {requesting("cpu", "1"), func(s *offloadingv1beta1.ShadowPod) { s.Spec.Pod.Containers[0].Image = "busybox:2" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWebhook(t, false)
			w.alter(t, func(q *offloadingv1beta1.QuotaSpec) {
				q.LimitsEnforcement, q.Resources["memory"] = offloadingv1beta1.HardLimitsEnforcement, resource.MustParse("1Gi")
			})
			old := shadow(tc.before)
			now := old.DeepCopy()
			tc.after(now)
			w.book.OnAdd(old, true)
			got := w.validate(context.Background(), request(t, admissionv1.Update, old, now))
			if got.Allowed != (tc.want == "") || !strings.HasPrefix(words(got), tc.want) {
				t.Errorf("allowed %v: %s, want %q", got.Allowed, words(got), tc.want)
			}
		})
	}
}

// V10: pods of a cordoned slice may shrink, but not grow, whether or not somebody counts.
func TestNothingGrowsInACordonedSlice(t *testing.T) {
	for name, tc := range map[string]struct {
		cordoned, enforce bool
		cpu, want         string
	}{
		"more":                      {true, true, "2", "Cordoned: "},
		"less":                      {true, true, "500m", ""},
		"more, and nobody counts":   {true, false, "2", "Cordoned: "},
		"less, and nobody counts":   {true, false, "500m", ""},
		"more, without any cordon":  {false, false, "200", ""},
		"as much as there is, then": {false, true, "2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWebhook(t, tc.cordoned)
			w.Enforce = tc.enforce
			old, now := shadow(), shadow(requesting("cpu", tc.cpu))
			w.book.OnAdd(old, true)
			got := w.validate(context.Background(), request(t, admissionv1.Update, old, now))
			if got.Allowed != (tc.want == "") || !strings.HasPrefix(words(got), tc.want) {
				t.Errorf("allowed %v: %s, want %q", got.Allowed, words(got), tc.want)
			}
		})
	}
}

// alter changes the Quota.
func (w *webhook) alter(t *testing.T, how func(*offloadingv1beta1.QuotaSpec)) {
	t.Helper()
	c, q := w.Reader.(client.Client), &offloadingv1beta1.Quota{}
	if err := c.Get(context.Background(), client.ObjectKey{Namespace: "liqo-tenant-rome", Name: "q"}, q); err != nil {
		t.Fatal(err)
	}
	how(&q.Spec)
	if err := c.Update(context.Background(), q); err != nil {
		t.Fatal(err)
	}
}

func TestMutate(t *testing.T) {
	w := newWebhook(t, false)
	bare := shadow(func(s *offloadingv1beta1.ShadowPod) { s.Labels = nil })
	forged := shadow(func(s *offloadingv1beta1.ShadowPod) { s.Labels["liqo.io/creator-user"] = "forged" })
	// Mutating webhooks are asked before the schema is: to decode this one would take minutes, and the next one is none at all.
	slow, wrong := request(t, admissionv1.Create, nil, bare), request(t, admissionv1.Create, nil, bare)
	slow.Object.Raw = []byte(`{"spec":{"pod":{"overhead":{"cpu":"1e-999999999"}}}}`)
	wrong.Object.Raw = []byte(`{"spec":["a pod"]}`)
	for name, tc := range map[string]struct {
		req  admission.Request
		want string
	}{
		"the creator is recorded":                 {request(t, admissionv1.Create, nil, bare), `[{"op":"add","path":"/metadata/labels","value":{"liqo.io/creator-user":"` + capacity.UserLabel(user) + `"}}]`},
		"a quantity is not read":                  {slow, `[{"op":"add","path":"/metadata/labels","value":{"liqo.io/creator-user":"` + capacity.UserLabel(user) + `"}}]`},
		"nor anything else beside the labels":     {wrong, `[{"op":"add","path":"/metadata/labels","value":{"liqo.io/creator-user":"` + capacity.UserLabel(user) + `"}}]`},
		"a forged creator is replaced":            {request(t, admissionv1.Create, nil, forged), `[{"op":"replace","path":"/metadata/labels/liqo.io~1creator-user","value":"` + capacity.UserLabel(user) + `"}]`},
		"an update that forgets it is completed":  {request(t, admissionv1.Update, shadow(), bare), `[{"op":"add","path":"/metadata/labels","value":{"liqo.io/creator-user":"` + capacity.UserLabel(user) + `"}}]`},
		"an update that has it is left as it is":  {request(t, admissionv1.Update, shadow(), shadow()), "null"},
		"deletions are none of its business":      {request(t, admissionv1.Delete, shadow(), nil), "null"},
		"a creation that has it is left as it is": {request(t, admissionv1.Create, nil, shadow()), "null"},
	} {
		got, err := json.Marshal(w.mutate(context.Background(), tc.req).Patches)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: error %v, patch %s, want %s", name, err, got, tc.want)
		}
	}
}

// debugging gives the pod just these ephemeral containers.
func debugging(names ...string) func(*offloadingv1beta1.ShadowPod) {
	return func(s *offloadingv1beta1.ShadowPod) {
		s.Spec.Pod.EphemeralContainers = nil
		for _, name := range names {
			s.Spec.Pod.EphemeralContainers = append(s.Spec.Pod.EphemeralContainers,
				corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "busybox"}})
		}
	}
}

// names are so many names of containers.
func names(n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("d-%d", i))
	}
	return out
}

// Whoever reaches the webhooks' port without the token of API servers gets an answer, but reserves nothing of a grant.
func TestAnUnknownCallerReservesNothing(t *testing.T) {
	const token = "secret-of-api-servers"
	for what, tc := range map[string]struct {
		path, token string
		reserves    bool
	}{
		"the path alone":                     {ValidatePath, token, false},
		"the path and a slash":               {ValidatePath + "/", token, false},
		"another token":                      {ValidatePath + "/" + strings.ToUpper(token), token, false},
		"the token and more":                 {ValidatePath + "/" + token + "/x", token, false},
		"an empty token while there is none": {ValidatePath + "/", "", false},
		"the token":                          {ValidatePath + "/" + token, token, true},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWebhook(t, false)
			w.Token = func() string { return tc.token }
			for _, operation := range []admissionv1.Operation{admissionv1.Create, admissionv1.Update} {
				name, old := strings.ToLower(string(operation)), (*offloadingv1beta1.ShadowPod)(nil)
				now := shadow(func(s *offloadingv1beta1.ShadowPod) { s.Name = name }, requesting("cpu", "500m"))
				before := w.book.ledger.Used(now.Labels[offloadingv1beta1.CreatorUserLabel], w.Clock.Now())
				if operation == admissionv1.Update {
					old = shadow(func(s *offloadingv1beta1.ShadowPod) { s.Name = name }, requesting("cpu", "250m"))
					w.book.OnAdd(old, true)
					before = w.book.ledger.Used(now.Labels[offloadingv1beta1.CreatorUserLabel], w.Clock.Now())
				}
				r := request(t, operation, old, now, func(r *admission.Request) { r.Name, r.UID = name, "u" })
				body, err := json.Marshal(admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &r.AdmissionRequest})
				if err != nil {
					t.Fatal(err)
				}
				call := httptest.NewRequest(http.MethodPost, tc.path, bytes.NewReader(body))
				call.Header.Set("Content-Type", "application/json")
				answer := httptest.NewRecorder()
				w.server().ServeHTTP(answer, call)
				var review admissionv1.AdmissionReview
				if err := json.Unmarshal(answer.Body.Bytes(), &review); err != nil || review.Response == nil || !review.Response.Allowed {
					t.Fatalf("%s: no answer, or a refusal: %s, %v", operation, answer.Body.String(), err)
				}
				after := w.book.ledger.Used(now.Labels[offloadingv1beta1.CreatorUserLabel], w.Clock.Now())
				if reserved := after.Cpu().Cmp(*before.Cpu()) != 0; reserved != tc.reserves {
					t.Errorf("%s: before %v, after %v", operation, before, after)
				}
			}
		})
	}
}

// What a provider let in once, by rules of another release or other values, keeps nothing else from being changed; what is added is judged.
func TestWhatWasLetInOnceKeepsNothingFromChanging(t *testing.T) {
	refused := func(spec *corev1.PodSpec) (errs field.ErrorList) {
		for key := range spec.NodeSelector {
			errs = append(errs, field.Forbidden(field.NewPath("nodeSelector").Key(key), "no"))
		}
		return errs
	}
	w := &webhook{Options: Options{Check: refused}}
	choosing := func(keys ...string) *corev1.PodSpec {
		spec := &corev1.PodSpec{NodeSelector: map[string]string{}}
		for _, key := range keys {
			spec.NodeSelector[key] = "a"
		}
		return spec
	}
	for name, tc := range map[string]struct {
		old, now *corev1.PodSpec
		want     int
	}{
		"as before":     {choosing("a"), choosing("a"), 0},
		"one less":      {choosing("a", "b"), choosing("b"), 0},
		"one more":      {choosing("a"), choosing("a", "b"), 1},
		"another one":   {choosing("a"), choosing("b"), 1},
		"the first":     {choosing(), choosing("a"), 1},
		"none at all":   {choosing(), choosing(), 0},
		"none any more": {choosing("a"), choosing(), 0},
	} {
		if got := w.added(tc.old, tc.now); len(got) != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
