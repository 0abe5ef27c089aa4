package pod

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	clocktesting "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/kube/reconcile"
)

// The API server removes a pod in two steps, each an event: the removal is asked for once.
func TestARemovalInTwoStepsIsAskedForOnce(t *testing.T) {
	now := metav1.NewTime(time.Unix(1000, 0))
	local := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p", UID: "u", ResourceVersion: "1",
		DeletionTimestamp: &now, DeletionGracePeriodSeconds: ptr.To[int64](30)}}
	client, clock := fake.NewClientset(), clocktesting.NewFakeClock(now.Time)
	r := &Reconciler{options: Options{Local: client, Clock: clock}, memory: newMemory()}
	deletions := func(want int, when string) {
		t.Helper()
		n := 0
		for _, action := range client.Actions() {
			if action.GetVerb() == "delete" {
				n++
			}
		}
		if n != want {
			t.Errorf("%s: %d deletions, want %d", when, n, want)
		}
	}
	if err := r.deleteLocal(context.Background(), local); err != nil {
		t.Fatal(err)
	}
	deletions(1, "at first")
	shortened := local.DeepCopy()
	shortened.ResourceVersion, shortened.DeletionGracePeriodSeconds = "2", ptr.To[int64](0)
	if err := r.deleteLocal(context.Background(), shortened); reconcile.Classify(err) != reconcile.Waiting {
		t.Errorf("error %v, want to wait for the second step", err)
	}
	deletions(1, "after the first step")
	clock.Step(removalSeen + time.Second)
	if err := r.deleteLocal(context.Background(), shortened); err != nil {
		t.Fatal(err)
	}
	deletions(2, "when the second step does not come")
}
