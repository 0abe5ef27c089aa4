package world

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// Obstacle is something at the provider because of which a pod cannot run there.
type Obstacle struct {
	// Raise makes it in a twin, and returns how to take it away; nil if only a change of the pod helps.
	Raise func(t *testing.T, namespace string) (lift func())
	// Change of the pod; nil for none.
	Change func(*corev1.Pod)
	// Words of the provider, and the Reason that the pod shows.
	Words, Reason string
}

// RefusedPod is a pod that meets an Obstacle.
type RefusedPod struct {
	Obstacle
	*corev1.Pod
	// Lift takes the obstacle away; nil if only a change of the pod helps.
	Lift func()
	// Start and Began are when the pod was made.
	Start fixture.Moment
	Began time.Time

	at *Shared
}

// Meet makes the Obstacle and a pod that it is in the way of.
func (o Obstacle) Meet(t *testing.T, s *Shared) *RefusedPod {
	t.Helper()
	namespace := s.Offloaded(t)
	r := &RefusedPod{Obstacle: o, Pod: Pod(namespace, "refused"), at: s}
	if o.Raise != nil {
		r.Lift = o.Raise(t, namespace)
		fixture.Await(t, fixture.Patience, "the obstacle in "+namespace+" to be effective", func(ctx context.Context) (bool, string) {
			err := s.Milan.Client.Create(ctx, Pod(namespace, "probe"), client.DryRunAll)
			return err != nil && strings.Contains(err.Error(), o.Words), fmt.Sprint(err)
		})
	}
	if o.Change != nil {
		o.Change(r.Pod)
	}
	r.Start, r.Began = s.Milan.Recorder.Now(t), time.Now()
	fixture.Must(t, "creating a pod", s.Rome.Client.Create(t.Context(), r.Pod))
	return r
}

// Says waits until the pod is pending with the provider's words.
func (r *RefusedPod) Says(t *testing.T) {
	t.Helper()
	fixture.Await(t, fixture.Patience, "the pod in "+r.Namespace+" to say why it is pending", func(ctx context.Context) (bool, string) {
		err := r.at.Rome.Client.Get(ctx, client.ObjectKeyFromObject(r.Pod), r.Pod)
		return err == nil && r.Status.Phase == corev1.PodPending && r.Status.Reason == r.Reason && strings.Contains(r.Status.Message, r.Words),
			fmt.Sprintf("%+v %v", r.Status, err)
	})
	fixture.Await(t, fixture.Patience, "an Event about the pod in "+r.Namespace, func(ctx context.Context) (bool, string) {
		told, all := r.Told(ctx)
		return told > 0, all
	})
}

// Told counts how often Events about the pod said the provider's words.
func (r *RefusedPod) Told(ctx context.Context) (times int, all string) {
	list := &corev1.EventList{}
	if err := r.at.Rome.Client.List(ctx, list, client.InNamespace(r.Namespace)); err != nil {
		return 0, err.Error()
	}
	for _, e := range list.Items {
		all += fmt.Sprintf("%s %s of %s, %d times: %s\n", e.Type, e.Reason, e.InvolvedObject.Name, e.Count, e.Message)
		if e.InvolvedObject.UID == r.UID && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, r.Words) {
			times += max(1, int(e.Count))
		}
	}
	return times, all
}
