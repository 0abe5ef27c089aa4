package writers

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhoWroteAFieldLast(t *testing.T) {
	entry := func(manager, fields string, minute int) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(fields),
			Time: &metav1.Time{Time: time.Date(2030, 1, 1, 0, minute, 0, 0, time.UTC)}}
	}
	ours := entry("self", `{"f:data":{"f:a":{}}}`, 9)
	status := entry("kubelet", `{"f:data":{}}`, 8)
	status.Subresource = "status"
	timeless := entry("old", `{"f:data":{"f:a":{}}}`, 0)
	timeless.Time = nil
	for name, tc := range map[string]struct {
		entries []metav1.ManagedFieldsEntry
		want    string
	}{
		"nobody":                               {nil, ""},
		"we ourselves, and a status":           {[]metav1.ManagedFieldsEntry{ours, status}, ""},
		"the one who owns the field":           {[]metav1.ManagedFieldsEntry{ours, entry("kubectl", `{"f:data":{"f:a":{}}}`, 1), entry("argo", `{"f:immutable":{}}`, 2)}, "kubectl"},
		"the last of two":                      {[]metav1.ManagedFieldsEntry{entry("b", `{"f:data":{}}`, 3), entry("a", `{"f:data":{}}`, 1), timeless}, "b"},
		"a removed field: who wrote last":      {[]metav1.ManagedFieldsEntry{entry("a", `{"f:metadata":{}}`, 1), entry("b", `{"f:immutable":{}}`, 2)}, "b"},
		"a record that cannot be read":         {[]metav1.ManagedFieldsEntry{entry("a", `{"f:data"`, 1)}, "a"},
		"a name that is no text, and too long": {[]metav1.ManagedFieldsEntry{entry("x\xff"+string(make([]byte, 200)), `{"f:data":{}}`, 1)}, "x" + string(make([]byte, maxName-2))},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Last(tc.entries, []string{"data", "a"}, "self"); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
