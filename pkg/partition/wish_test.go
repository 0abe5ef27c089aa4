package partition_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/partition"
)

func TestOnPartition(t *testing.T) {
	type asks = partition.Wish
	for value, test := range map[string]struct {
		want    asks
		refused bool
	}{
		"keep":      {},
		"stop":      {want: asks{After: 3 * time.Minute}},
		"fence":     {want: asks{After: 3 * time.Minute, Fence: true}},
		"stop=60s":  {want: asks{After: time.Minute}},
		"stop=5m":   {want: asks{After: 5 * time.Minute}},
		"fence=90s": {want: asks{After: 90 * time.Second, Fence: true}},
		"fence=48h": {want: asks{After: 48 * time.Hour, Fence: true}},

		"":              {refused: true},
		"Stop":          {refused: true},
		"keep=5m":       {refused: true},
		"stop=":         {refused: true},
		"stop=5":        {refused: true},
		"stop=0s":       {refused: true},
		"stop=59s":      {refused: true},
		"stop=-5m":      {refused: true},
		"stop=1h30m":    {refused: true},
		"stop=1.5h":     {refused: true},
		"stop=5m ":      {refused: true},
		"stop=100000h":  {refused: true},
		"stop=5m,fence": {refused: true},
		"kill":          {refused: true},
	} {
		t.Run(value, func(t *testing.T) {
			got, err := partition.Of(map[string]string{offloadingv1beta1.OnPartitionAnnotation: value})
			if got != test.want || (err != nil) != test.refused {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	if got, err := partition.Of(nil); got != (asks{}) || err != nil {
		t.Errorf("without an annotation: got %+v, %v", got, err)
	}
}

// A provider counts from the last sign of life; a consumer from when it knows that it lost the provider, which is later.
func TestStoppedAfter(t *testing.T) {
	pod := func(value string, own, asked *int64) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{offloadingv1beta1.OnPartitionAnnotation: value}, DeletionGracePeriodSeconds: asked},
			Spec: corev1.PodSpec{TerminationGracePeriodSeconds: own}}
	}
	for sentence, test := range map[string]struct {
		pod  *corev1.Pod
		want time.Duration
	}{
		"kept":                      {pod("keep", nil, nil), 0},
		"not understood":            {pod("stop=1s", nil, nil), 0},
		"the default time":          {pod("fence", nil, nil), 3*time.Minute + 3600*time.Millisecond + 30*time.Second + time.Minute},
		"a grace period of its own": {pod("stop=100s", ptr.To[int64](10), nil), 100*time.Second + 2*time.Second + 10*time.Second + time.Minute},
		"a longer one was asked":    {pod("stop=100s", ptr.To[int64](10), ptr.To[int64](600)), 100*time.Second + 2*time.Second + 600*time.Second + time.Minute},
		"a shorter one was asked":   {pod("stop=100s", ptr.To[int64](10), ptr.To[int64](0)), 100*time.Second + 2*time.Second + 10*time.Second + time.Minute},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := partition.StoppedAfter(test.pod); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
	// Kubernetes gives pods 300 s on a node that is lost: with all defaults nobody has to say anything else.
	if got := partition.StoppedAfter(pod("fence", nil, nil)); got > 300*time.Second {
		t.Errorf("by default a pod is stopped after %s", got)
	}
}
