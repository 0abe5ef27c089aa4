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

// What is small fits every virtual node that is not crowded.
func TestCrowded(t *testing.T) {
	for name, tc := range map[string]struct {
		largest corev1.ResourceList
		want    bool
	}{
		"nothing is known":        {nil, false},
		"others are known":        {resources("nvidia.com/gpu", "0"), false},
		"room for a small pod":    {resources("cpu", "500m", "memory", "1Gi", "pods", "1", "nvidia.com/gpu", "0"), false},
		"no room for its cpu":     {resources("cpu", "499m", "memory", "1Gi", "pods", "1"), true},
		"no room for its memory":  {resources("cpu", "4", "memory", "1023Mi", "pods", "1"), true},
		"no room for another pod": {resources("cpu", "4", "memory", "8Gi", "pods", "0"), true},
	} {
		if got := Crowded(tc.largest); got != tc.want {
			t.Errorf("%s: crowded %v, want %v", name, got, tc.want)
		}
		why := WhyLarger(&corev1.PodSpec{Containers: []corev1.Container{container("a", resources("cpu", "500m", "memory", "1Gi"), nil)}}, tc.largest)
		if !tc.want && why != "" {
			t.Errorf("%s: a small pod is refused: %s", name, why)
		}
	}
}

func TestWhyLarger(t *testing.T) {
	largest := resources("cpu", "4", "memory", "8Gi", "nvidia.com/gpu", "1", "pods", "5")
	for name, tc := range map[string]struct {
		requests, limits, largest corev1.ResourceList
		want                      string
	}{
		"nothing is requested":                 {nil, nil, largest, ""},
		"it fits":                              {resources("cpu", "4", "memory", "8Gi", "nvidia.com/gpu", "1"), nil, largest, ""},
		"a core too many":                      {resources("cpu", "5"), nil, largest, "it requests cpu 5, of which no more than 4 is left"},
		"by a limit":                           {nil, resources("memory", "9Gi"), largest, "it requests memory 9Gi, of which no more than 8Gi is left"},
		"a hundredth more":                     {resources("cpu", "4040m"), nil, largest, ""},
		"more than that":                       {resources("cpu", "4041m"), nil, largest, "it requests cpu 4041m, of which no more than 4 is left"},
		"a device too many":                    {resources("nvidia.com/gpu", "2"), nil, largest, "it requests nvidia.com/gpu 2, of which no more than 1 is left"},
		"what nodes do not say":                {resources("example.org/licence", "2"), nil, largest, ""},
		"a provider that does not say":         {resources("cpu", "500"), nil, nil, ""},
		"no pod more":                          {nil, nil, resources("pods", "0"), "it requests pods 1, of which no more than 0 is left"},
		"what every pod needs is named first":  {resources("cpu", "5", "a.example.org/x", "5"), nil, resources("cpu", "4", "a.example.org/x", "1"), "it requests cpu 5, of which no more than 4 is left"},
		"a quantity beyond what there is":      {resources("cpu", "9e15"), nil, largest, "it requests cpu 9e15, of which no more than 4 is left"},
		"nothing of a resource is left at all": {resources("cpu", "1m"), nil, resources("cpu", "0"), "it requests cpu 1m, of which no more than 0 is left"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := &corev1.PodSpec{Containers: []corev1.Container{container("a", tc.requests, tc.limits)}}
			if got := WhyLarger(spec, tc.largest); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
