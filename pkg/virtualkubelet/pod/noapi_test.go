package pod

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// Without an address of this cluster's API server a burst of pods costs one Event, and each of them says why.
func TestManyPodsWithoutTheAPIServerCostOneEvent(t *testing.T) {
	w := newWorld(t)
	w.api = reflection.HomeAPI{Enabled: true}
	w.provider()
	const count = 10
	for i := range count {
		w.add(newPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("uid-", i)), tokenUser))
	}
	w.start()
	w.offload()
	for i := range count {
		w.eventually("the pod says that it has no API server", func() bool {
			return slices.ContainsFunc(w.pod(fmt.Sprint("p", i)).Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == offloadingv1beta1.APIServerReachableCondition && c.Status == corev1.ConditionFalse && c.Message != ""
			})
		})
	}
	w.calm()
	told := slices.DeleteFunc(w.events.all(), func(e string) bool { return !strings.HasPrefix(e, offloadingv1beta1.ReasonNoAPIServerAddress) })
	if len(told) != 1 {
		t.Errorf("%d pods cost the Events %v", count, told)
	}
}

// Each namespace is told for itself, and again once the Event is gone.
func TestMissingAPIServerIsToldPerNamespaceAndHour(t *testing.T) {
	clock, log := testclock.NewFakeClock(time.Unix(1000, 0)), &eventLog{}
	r := &Reconciler{memory: newMemory(nil, nil), options: Options{Clock: clock, Recorder: log, Remote: "milan", API: func() reflection.HomeAPI { return reflection.HomeAPI{Enabled: true} }}}
	tell := func(namespace string) {
		p := newPod("p", "u", tokenUser)
		p.Namespace = namespace
		r.tellMade(p)
	}
	for _, step := range []struct {
		after     time.Duration
		namespace string
		want      int
	}{
		{0, "shop", 1}, {time.Minute, "shop", 1}, {0, "bank", 2}, {58 * time.Minute, "shop", 2}, {time.Minute, "shop", 3}, {0, "shop", 3}, {time.Minute, "bank", 4},
	} {
		clock.Step(step.after)
		tell(step.namespace)
		if got := len(log.all()); got != step.want {
			t.Errorf("at %s in %s: %d Events, want %d", clock.Now(), step.namespace, got, step.want)
		}
	}
}
