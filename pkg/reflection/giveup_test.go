package reflection

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestGivenUp(t *testing.T) {
	several := GiveUp([]corev1.ObjectReference{{UID: "u2"}, {UID: "u1"}, {}, {UID: "u2"}})
	if several != "u1,u2" {
		t.Fatalf("the decision is %q", several)
	}
	for name, tc := range map[string]struct {
		decision string
		deleted  bool
		claim    types.UID
		want     bool
	}{
		"nothing decided":                      {"", true, "u1", false},
		"named":                                {several, false, "u1", true},
		"named by hand":                        {"u0, u2 ", false, "u2", true},
		"named, and the object goes":           {several, true, "u2", true},
		"another one":                          {several, false, "u3", false},
		"another one, and the object goes":     {several, true, "u3", false},
		"on the way to another claim":          {several, false, "", false},
		"on the way, and nothing decided":      {"", false, "", false},
		"part of a UID":                        {"u11", false, "u1", false},
		"everything, and the object goes":      {"true", true, "u3", true},
		"everything, but the object stays":     {"true", false, "u3", false},
		"everything, spelled in another way":   {"True", true, "u3", false},
		"everything on the way, and it goes":   {"true", true, "", true},
		"everything on the way, and it stays":  {"true", false, "", false},
		"a decision about nothing (no commas)": {",", true, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			object := &metav1.ObjectMeta{Annotations: map[string]string{offloadingv1beta1.DeleteVolumesAnnotation: tc.decision}}
			if tc.deleted {
				now := metav1.NewTime(time.Unix(1, 0))
				object.DeletionTimestamp = &now
			}
			if got := GivenUp(object, &corev1.ObjectReference{UID: tc.claim}); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
