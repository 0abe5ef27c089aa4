package partition

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const (
	// Default is after how long without a sign of its consumer a pod is stopped that names no time. With the grace period that a
	// pod has by default its provider has stopped it before Kubernetes evicts it from a node that is lost.
	Default = 3 * time.Minute
	// Min is the shortest time: several signs of life have to fail for that.
	Min = time.Minute
	// margin is what a consumer waits besides: for requests that are under way when the link is cut, clocks of one cluster that
	// differ, and the provider to act.
	margin = time.Minute
	// drift is by how much of the time (a fiftieth) the clocks of two clusters may differ in speed, twice over.
	drift = 50
)

// readable is what the annotation may say; admission policy liqo-on-partition says the same.
var readable = regexp.MustCompile(`^(keep|(stop|fence)(=[1-9][0-9]{0,4}[smh])?)$`)

// Wish is what becomes of a pod whose provider hears nothing of its consumer any more. The zero value keeps it.
type Wish struct {
	// After is how long the provider waits until it stops the pod; 0 means for ever.
	After time.Duration
	// Fence has the consumer start no other one before that.
	Fence bool
}

// Of reads what a pod or ShadowPod asks for. What nobody understands keeps the pod, with an error.
func Of(annotations map[string]string) (Wish, error) {
	value, asked := annotations[offloadingv1beta1.OnPartitionAnnotation]
	if !asked || value == "keep" {
		return Wish{}, nil
	}
	if !readable.MatchString(value) {
		return Wish{}, fmt.Errorf("annotation %s is %q: it must be keep, stop or fence, the last two with a time if wanted, such as fence=5m",
			offloadingv1beta1.OnPartitionAnnotation, value)
	}
	mode, text, timed := strings.Cut(value, "=")
	asks := Wish{After: Default, Fence: mode == "fence"}
	if !timed {
		return asks, nil
	}
	after, err := time.ParseDuration(text)
	if err != nil || after < Min {
		return Wish{}, fmt.Errorf("annotation %s is %q: the time must be at least %s", offloadingv1beta1.OnPartitionAnnotation, value, Min)
	}
	asks.After = after
	return asks, nil
}

// StoppedAfter is how long after it lost the provider a consumer knows that the provider has stopped a pod; 0 means never. The provider counts
// from the last sign of life, which is earlier than that, and the pod has its grace period to end in.
func StoppedAfter(pod *corev1.Pod) time.Duration {
	asks, err := Of(pod.Annotations)
	if err != nil || asks.After == 0 {
		return 0
	}
	grace := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
	if asked := pod.DeletionGracePeriodSeconds; asked != nil {
		grace = max(grace, *asked)
	}
	return asks.After + asks.After/drift + time.Duration(grace)*time.Second + margin
}
