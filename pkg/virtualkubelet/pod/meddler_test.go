package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/record"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// C5: whose change of a ShadowPod is undone is told; that our own user changed it is not.
func TestWhoseChangeIsPutBackIsTold(t *testing.T) {
	fields := func(manager, subresource, paths string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Subresource: subresource, FieldsType: "FieldsV1", FieldsV1: &metav1.FieldsV1{Raw: []byte(paths)}}
	}
	const labels, image = `{"f:metadata":{"f:labels":{"f:app":{}}}}`, `{"f:spec":{"f:pod":{"f:containers":{"k:{\"name\":\"a\"}":{"f:image":{}}}}}}`
	label := reflection.Change{Path: []string{"metadata", "labels", "app"}, Value: "a"}
	containers := reflection.Change{Path: []string{"spec", "pod", "containers"}}
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		changes []reflection.Change
		want    string
	}{
		"nobody but us wrote it":     {[]metav1.ManagedFieldsEntry{fields(fieldManager, "", labels)}, []reflection.Change{label}, ""},
		"there is no record":         {nil, []reflection.Change{label}, ""},
		"others wrote another field": {[]metav1.ManagedFieldsEntry{fields(fieldManager, "", labels), fields("kubectl", "", image)}, []reflection.Change{label}, ""},
		"somebody wrote a label":     {[]metav1.ManagedFieldsEntry{fields("kubectl", "", labels)}, []reflection.Change{label}, `Field metadata.labels.app of twin/p in cluster "milan" was changed by field manager "kubectl"`},
		"somebody wrote an image":    {[]metav1.ManagedFieldsEntry{fields(fieldManager, "", labels), fields("kubectl", "", image)}, []reflection.Change{label, containers}, `Field spec.pod.containers`},
		"a name without end":         {[]metav1.ManagedFieldsEntry{fields(strings.Repeat("x", 1000), "", labels)}, []reflection.Change{label}, `"` + strings.Repeat("x", maxManager) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			recorder := record.NewFakeRecorder(9)
			r := &Reconciler{options: Options{Remote: "milan", Recorder: recorder}}
			r.tellPutBack(&corev1.Pod{}, &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: "twin", Name: "p", ManagedFields: tc.entries}}, tc.changes)
			close(recorder.Events)
			got := ""
			for event := range recorder.Events {
				got += event + "\n"
			}
			if !strings.Contains(got, tc.want) || tc.want == "" && got != "" || strings.Count(got, "\n") > 1 {
				t.Errorf("told %q, want %q", got, tc.want)
			}
		})
	}
}
