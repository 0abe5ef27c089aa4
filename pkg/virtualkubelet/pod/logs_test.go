package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/virtualkubelet/api"
	"liqo.io/liqo/test/fakeapi"
)

// V14: reading logs is asked for by one write in a pod's life, which later changes of the pod leave alone.
func TestLogsAreRequestedOnce(t *testing.T) {
	w := up(t)
	w.calm()
	before := w.count()
	requested := func() bool { return w.shadow("p").Annotations[offloadingv1beta1.LogsRequestedAnnotation] == "true" }
	request := func() {
		t.Helper()
		target, err := w.r.Twin(t.Context(), "shop", "p", "uid-1")
		if err == nil {
			err = target.RequestLogs(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	request()
	if !requested() {
		t.Fatal("the ShadowPod does not ask for its logs")
	}
	w.eventually("the cache shows the request", func() bool {
		v := w.r.look(key{Namespace: "shop", Name: "p"}, "uid-1")
		return v.shadow != nil && v.shadow.Annotations[offloadingv1beta1.LogsRequestedAnnotation] == "true"
	})
	request()
	w.update(func(p *corev1.Pod) { p.Labels["app"], p.Annotations = "other", map[string]string{"a": "b"} })
	w.eventually("the change crosses", func() bool { return w.shadow("p").Labels["app"] == "other" })
	w.update(func(p *corev1.Pod) { p.Annotations = nil })
	w.eventually("the change crosses", func() bool { return w.shadow("p").Annotations["a"] == "" })
	w.calm()
	if !requested() {
		t.Error("a change of the pod took the request away")
	}
	want := []string{"remote patch shadowpods/", "remote patch shadowpods/", "remote patch shadowpods/"}
	if diff := cmp.Diff(want, w.writes[before:]); diff != "" {
		t.Errorf("writes: %s", diff)
	}
}

// Who has just taken over a node reads logs before the twin is known.
func TestLogsAreRequestedBeforeTheTwinIsRead(t *testing.T) {
	for name, tc := range map[string]struct {
		origin    string
		requested bool
	}{
		"the pod's ShadowPod":          {"uid-1", true},
		"the ShadowPod of another pod": {"uid-0", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addShadow(tc.origin)
			fakeapi.React(&w.dyn.Fake, "list", "shadowpods", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewServiceUnavailable("not yet")
			})
			w.add(newPod("p", "uid-1"))
			w.start()
			w.offload()
			var target api.Target
			w.eventually("the pod's namespace at the provider is known", func() (ok bool) {
				var err error
				target, err = w.r.Twin(t.Context(), "shop", "p", "uid-1")
				return err == nil
			})
			err := target.RequestLogs(t.Context())
			if asked := w.shadow("p").Annotations[offloadingv1beta1.LogsRequestedAnnotation] == "true"; asked != tc.requested || (err == nil) != tc.requested {
				t.Errorf("requested %v, error %v", asked, err)
			}
		})
	}
}
