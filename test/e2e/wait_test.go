package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// interval of looking again.
	interval = 300 * time.Millisecond
	// soon is enough for anything that only has to cross.
	soon = 30 * time.Second
	// patience is enough for pods to start on a busy machine.
	patience = 90 * time.Second
)

// check looks once: whether it is so, and what there is instead.
type check func(ctx context.Context) (ok bool, seen string)

// eventually waits until a check holds.
func eventually(t *testing.T, within time.Duration, what string, holds check) {
	t.Helper()
	begin := time.Now()
	if seen, ok := poll(t, within, holds, true); !ok {
		t.Fatalf("waited %s for %s; last seen: %s", time.Since(begin).Round(time.Second), what, seen)
	}
}

// throughout requires that a check holds all the time.
func throughout(t *testing.T, during time.Duration, what string, holds check) {
	t.Helper()
	begin := time.Now()
	if seen, broken := poll(t, during, holds, false); broken {
		t.Fatalf("%s did not last: after %s there is %s", what, time.Since(begin).Round(time.Second), seen)
	}
}

// poll looks again and again until the check's answer is the wanted one, or the time is over.
func poll(t *testing.T, within time.Duration, look check, wanted bool) (seen string, found bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), within)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		ok, now := look(ctx)
		if ctx.Err() == nil || seen == "" {
			seen = now
		}
		if ok == wanted && ctx.Err() == nil {
			return seen, true
		}
		select {
		case <-ctx.Done():
			return seen, false
		case <-ticker.C:
		}
	}
}

// nodeIs checks the readiness of rome's virtual node.
func (s *suite) nodeIs(ready bool) check {
	return func(ctx context.Context) (bool, string) {
		node := &corev1.Node{}
		if err := s.rome.Get(ctx, client.ObjectKey{Name: virtualNode}, node); err != nil {
			return false, err.Error()
		}
		for _, c := range node.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return (c.Status == corev1.ConditionTrue) == ready, fmt.Sprintf("Ready=%s (%s: %s)", c.Status, c.Reason, c.Message)
			}
		}
		return false, "no condition Ready"
	}
}

// sees waits until an object is there, and reads it.
func (c *side) sees(t *testing.T, object client.Object, what string) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("%s %s at %s", what, client.ObjectKeyFromObject(object), c.name), func(ctx context.Context) (bool, string) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err.Error()
		}
		return true, "it is there"
	})
}

// misses waits until an object is gone.
func (c *side) misses(t *testing.T, object client.Object, what string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%s %s to be gone at %s", what, client.ObjectKeyFromObject(object), c.name), c.gone(object))
}

func (c *side) gone(object client.Object) check {
	return func(ctx context.Context) (bool, string) {
		err := c.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return false, fmt.Sprintf("it is there (deleted: %v, finalizers %v)", object.GetDeletionTimestamp(), object.GetFinalizers())
		}
		return apierrors.IsNotFound(err), err.Error()
	}
}
