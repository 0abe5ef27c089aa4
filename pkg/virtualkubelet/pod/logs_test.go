package pod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
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
