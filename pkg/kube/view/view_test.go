package view

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"liqo.io/liqo/pkg/kube/replica"
)

// told is what a view says of its failures.
type told struct {
	mu   sync.Mutex
	said []string
}

func (t *told) failed(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	what := "over"
	if err != nil {
		what = err.Error()
	}
	t.said = append(t.said, what)
}

func (t *told) all() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]string{}, t.said...)
}

// cluster does not answer until it is up. Its lists cannot be streamed.
type cluster struct {
	client.WithWatch
	up *atomic.Bool
}

func (c *cluster) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if !c.up.Load() {
		return errors.New("no route")
	}
	return c.WithWatch.List(ctx, list, options...)
}

func (c *cluster) IsWatchListSemanticsUnSupported() bool { return true }

func TestAViewSaysWhyItIsNotFollowedAndUntilWhen(t *testing.T) {
	for name, tc := range map[string]struct {
		bounded bool
		want    string
	}{
		"what is trusted":   {false, "no route"},
		"what a peer shows": {true, `listing *v1.ConfigMap in remote namespace "shop": no route`},
	} {
		t.Run(name, func(t *testing.T) {
			var up atomic.Bool
			var failures told
			c := &cluster{up: &up, WithWatch: fake.NewClientBuilder().WithObjects(
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "a"}},
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "other", Name: "b"}}).Build()}
			v := New(Source{
				Client:    func() (client.WithWatch, error) { return c, nil },
				NewObject: func() runtime.Object { return &corev1.ConfigMap{} }, NewList: func() client.ObjectList { return &corev1.ConfigMapList{} },
				Namespace: "shop", Bounded: tc.bounded, Failed: failures.failed,
			}, replica.Options[*corev1.ConfigMap]{
				Limit: 10, Event: func(_, _ *corev1.ConfigMap, _ bool) {}, Synced: func() {}, Over: func() { t.Error("there was too much") },
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			v.Start(ctx)
			eventually(t, "the failure is told", func() bool { return len(failures.all()) > 0 })
			if why, failing := v.Failure(); !failing || why != tc.want {
				t.Errorf("failing %v: %q", failing, why)
			}
			up.Store(true)
			eventually(t, "the object is there", func() bool { return v.Synced() && v.Of("a") != nil })
			eventually(t, "the failure is over", func() bool { _, failing := v.Failure(); return !failing })
			said := failures.all()
			if said[0] != tc.want || said[len(said)-1] != "over" {
				t.Errorf("told: %q", said)
			}
			if diff := cmp.Diff([]string{"a"}, v.Names()); diff != "" {
				t.Errorf("names (-want +got):\n%s", diff)
			}
			v.Stop()
			v.Wait()
			if !v.Ended() {
				t.Error("it has not ended")
			}
		})
	}
}

func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(time.Minute)
	for !is() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("waited a minute for: %s", what)
		}
	}
}
