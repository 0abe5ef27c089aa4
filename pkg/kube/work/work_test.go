package work

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/slots"
)

// recorded is a queue that notes what is decided about its keys.
type recorded struct {
	Queue
	said []string
}

func (r *recorded) Forget(types.NamespacedName) { r.said = append(r.said, "forget") }

func (r *recorded) AddAfter(_ types.NamespacedName, after time.Duration) {
	r.said = append(r.said, "after "+after.String())
}

func (r *recorded) AddRateLimited(types.NamespacedName) { r.said = append(r.said, "again") }

func TestTheClassOfAnErrorDecidesWhenAKeyIsHandledAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		handle func() error
		want   []string
	}{
		"all is well":    {func() error { return nil }, []string{"forget"}},
		"a call failed":  {func() error { return errors.New("no route") }, []string{"again"}},
		"it waits":       {func() error { return reconcile.Wait("Pending", "waiting", 3*time.Second) }, []string{"forget", "after 3s"}},
		"it is refused":  {func() error { return reconcile.Refuse("Refused", errors.New("no")) }, []string{"forget", "after 1m0s"}},
		"it must change": {func() error { return reconcile.Terminate("Invalid", errors.New("no")) }, []string{"forget"}},
		"it breaks":      {func() error { panic("nil map") }, []string{"again"}},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &recorded{}
			l := Loop{Queue: queue, What: "pod", Handle: func(context.Context, types.NamespacedName) error { return tc.handle() }}
			l.handle(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"})
			if diff := cmp.Diff(tc.want, queue.said); diff != "" {
				t.Errorf("decisions (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhatBreaksIsToldWithItsKey(t *testing.T) {
	l := Loop{What: "pod", Handle: func(context.Context, types.NamespacedName) error { panic("nil map") }}
	err := l.isolated(t.Context(), types.NamespacedName{Namespace: "shop", Name: "web"})
	if err == nil || !strings.Contains(err.Error(), "handling pod shop/web broke the program: nil map") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsHandledOnceTheContextEnded(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	queue, first := NewQueue("test", time.Millisecond, time.Second), make(chan struct{})
	handled := 0
	l := Loop{Queue: queue, Workers: slots.New(1), What: "pod", Handle: func(context.Context, types.NamespacedName) error {
		handled++
		cancel()
		close(first)
		return nil
	}}
	queue.Add(types.NamespacedName{Name: "a"})
	queue.Add(types.NamespacedName{Name: "b"})
	go func() {
		<-first
		queue.ShutDown()
	}()
	l.Run(ctx)
	if handled != 1 {
		t.Errorf("%d keys were handled, want 1", handled)
	}
}
