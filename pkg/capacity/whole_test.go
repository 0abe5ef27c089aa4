package capacity

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestWholePieces(t *testing.T) {
	for name, tc := range map[string]struct {
		asked, want corev1.ResourceList
		why         string
	}{
		"parts of a CPU are usual":  {resources("cpu", "1500m", "memory", "0.5"), resources("cpu", "1500m", "memory", "0.5"), ""},
		"whole pieces":              {resources("pods", "10", "nvidia.com/gpu", "1k"), resources("pods", "10", "nvidia.com/gpu", "1k"), ""},
		"a pod and a half":          {resources("pods", "1.5"), resources("pods", "1"), "1500m of pods is no whole number"},
		"a tenth of a device":       {resources("nvidia.com/gpu", "100m"), resources("nvidia.com/gpu", "0"), "100m of nvidia.com/gpu is no whole number"},
		"nothing":                   {nil, nil, ""},
		"large numbers stay whole":  {resources("pods", "2000"), resources("pods", "2000"), ""},
		"binary suffixes are whole": {resources("pods", "1.5Ki"), resources("pods", "1.5Ki"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := WhyNotWhole(tc.asked); got != tc.why {
				t.Errorf("got %q, want %q", got, tc.why)
			}
			WholePieces(tc.asked)
			if diff := cmp.Diff(text(tc.want), text(tc.asked)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Where not all have room, what every pod needs is not crowded out by devices.
func TestInOrder(t *testing.T) {
	list := resources("a.example.org/x", "1", "pods", "1", "memory", "1", "zz.example.org/y", "1", "cpu", "1")
	want := []corev1.ResourceName{"cpu", "memory", "pods", "a.example.org/x", "zz.example.org/y"}
	if diff := cmp.Diff(want, InOrder(list)); diff != "" {
		t.Error(diff)
	}
}
