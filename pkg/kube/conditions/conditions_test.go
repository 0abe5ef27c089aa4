package conditions

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

func TestSet(t *testing.T) {
	t0, t1 := time.Unix(100, 0), time.Unix(200, 0)
	at := func(ts time.Time, status, reason string) corev1beta1.Condition {
		return corev1beta1.Condition{Type: "Ready", Status: status, Reason: reason, LastTransitionTime: metav1.NewTime(ts)}
	}
	for name, tc := range map[string]struct {
		list    []corev1beta1.Condition
		set     corev1beta1.Condition
		want    []corev1beta1.Condition
		changed bool
	}{
		"a missing condition is added":                 {nil, at(time.Time{}, "True", "A"), []corev1beta1.Condition{at(t1, "True", "A")}, true},
		"a new status moves the transition time":       {[]corev1beta1.Condition{at(t0, "True", "A")}, at(time.Time{}, "False", "B"), []corev1beta1.Condition{at(t1, "False", "B")}, true},
		"a new reason alone keeps the transition time": {[]corev1beta1.Condition{at(t0, "True", "A")}, at(time.Time{}, "True", "B"), []corev1beta1.Condition{at(t0, "True", "B")}, true},
		"the same condition is no change":              {[]corev1beta1.Condition{at(t0, "True", "A")}, at(time.Time{}, "True", "A"), []corev1beta1.Condition{at(t0, "True", "A")}, false},
		"conditions of other types are left alone": {
			[]corev1beta1.Condition{{Type: "Node", Status: "Running"}}, at(time.Time{}, "True", "A"),
			[]corev1beta1.Condition{{Type: "Node", Status: "Running"}, at(t1, "True", "A")}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Set(&tc.list, tc.set, t1); got != tc.changed {
				t.Errorf("changed = %v, want %v", got, tc.changed)
			}
			if diff := cmp.Diff(tc.want, tc.list); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFindIsRemove(t *testing.T) {
	list := []corev1beta1.Condition{{Type: "A", Status: "True"}, {Type: "B", Status: "None"}}
	if !Is(list, "A", "True") || Is(list, "A", "False") || Is(list, "C", "True") {
		t.Error("Is reads another condition than the one of its type")
	}
	if !Remove(&list, "A") || Remove(&list, "A") || Find(list, "A") != nil || Find(list, "B") == nil {
		t.Error("Remove takes out another condition than the one of its type")
	}
}

func TestBound(t *testing.T) {
	if got := Bound("short"); got != "short" {
		t.Errorf("a short message became %q", got)
	}
	got := Bound(strings.Repeat("é", MaxMessage))
	if len(got) > MaxMessage || !utf8.ValidString(got) || !strings.HasSuffix(got, "…") {
		t.Errorf("a long message became %d bytes, valid UTF-8: %v", len(got), utf8.ValidString(got))
	}
}

func TestReplace(t *testing.T) {
	t0, t1 := metav1.NewTime(time.Unix(100, 0)), time.Unix(200, 0)
	list := []corev1beta1.Condition{{Type: "Gone", Status: "True", LastTransitionTime: t0}, {Type: "Stays", Status: "True", LastTransitionTime: t0}}
	Replace(&list, []corev1beta1.Condition{{Type: "New", Status: "True"}, {Type: "Stays", Status: "True"}}, t1)
	want := []corev1beta1.Condition{{Type: "Stays", Status: "True", LastTransitionTime: t0}, {Type: "New", Status: "True", LastTransitionTime: metav1.NewTime(t1)}}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Error(diff)
	}
	if Replace(&list, nil, t1); list != nil {
		t.Errorf("%v stays", list)
	}
}
