package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuantiles(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[99-i] = float64(i+1) / 1000
	}
	for sentence, tc := range map[string]struct {
		seconds []float64
		want    Quantiles
	}{
		"of nothing":        {nil, Quantiles{}},
		"of one":            {[]float64{0.25}, Quantiles{P50: 250, P90: 250, P99: 250, N: 1}},
		"of a hundred, any": {hundred, Quantiles{P50: 51, P90: 91, P99: 100, N: 100}},
	} {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, quantiles(tc.seconds)); diff != "" {
				t.Errorf("differs (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for sentence, tc := range map[string]struct {
		values []float64
		want   float64
	}{
		"of nothing": {nil, 0},
		"of three":   {[]float64{9, 1, 2}, 2},
		"of four":    {[]float64{9, 1, 2, 4}, 3},
	} {
		if got := median(tc.values); got != tc.want {
			t.Errorf("%s: %v, want %v", sentence, got, tc.want)
		}
	}
}

func TestRequestsAreCountedOnce(t *testing.T) {
	counted := tally{}
	for _, line := range []string{
		`{"stage":"ResponseComplete","verb":"create","user":{"username":"system:node:milan"},"objectRef":{"resource":"pods","subresource":"status"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseStarted","verb":"watch","user":{"username":"liqo.io:slice:x"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseComplete","verb":"watch","user":{"username":"liqo.io:slice:x"},"objectRef":{"resource":"pods"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseComplete","verb":"patch","userAgent":"kwok/v1","user":{"username":"kubernetes-admin"},"objectRef":{"resource":"pods","subresource":"status"},"responseStatus":{"code":409}}`,
		`{"stage":"ResponseComplete","verb":"update","user":{"username":"system:node:milan"},"objectRef":{"resource":"leases","apiGroup":"coordination.k8s.io"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseComplete","verb":"create","user":{"username":"system:x"},"objectRef":{"resource":"subjectaccessreviews","apiGroup":"authorization.k8s.io"},"responseStatus":{"code":201}}`,
		`{"stage":"ResponseComplete","verb":"patch","requestURI":"/api/v1/secrets/x?dryRun=All","user":{"username":"liqo.io:slice:x"},"objectRef":{"resource":"secrets"},"responseStatus":{"code":200}}`,
		`{"stage":"ResponseComplete","ver`,
	} {
		counted.add("rome", []byte(line))
	}
	want := tally{
		{"rome", kubeletNode, "create", "pods/status", false, false}:                       1,
		{"rome", kubeletAway, "watch", "pods", false, false}:                               1,
		{"rome", "kwok", "patch", "pods/status", true, false}:                              1,
		{"rome", kubeletNode, "update", "leases.coordination.k8s.io", false, false}:        1,
		{"rome", "x", "create", "subjectaccessreviews.authorization.k8s.io", false, false}: 1,
		{"rome", kubeletAway, "patch", "secrets", false, true}:                             1,
	}
	if diff := cmp.Diff(want, counted); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	if got := counted.sum(kind.write); got != 2 {
		t.Errorf("%d writes, want those of pods, which are 2", got)
	}
	if got := counted.sum(kind.ofLiqo); got != 4 {
		t.Errorf("%d requests of Liqo, want 4", got)
	}
}
