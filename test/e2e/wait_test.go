package e2e

import (
	"context"
	"fmt"
	"slices"
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

// look looks once, as check does; an error is why nothing could be seen.
type look func(ctx context.Context) (ok bool, seen string, err error)

// check is the look for who waits: what cannot be seen is not so yet.
func (l look) check(ctx context.Context) (ok bool, seen string) {
	ok, seen, err := l(ctx)
	if err != nil {
		return false, err.Error()
	}
	return ok, seen
}

// eventually waits until a check holds.
func eventually(t *testing.T, within time.Duration, what string, holds check) {
	t.Helper()
	begin := time.Now()
	if seen, ok := poll(context.WithoutCancel(t.Context()), within, holds); !ok {
		t.Fatalf("waited %s for %s; last seen: %s", time.Since(begin).Round(time.Second), what, seen)
	}
}

// throughout requires that something is so all the time. A look that fails proves nothing, so there is one at the end that does not.
func throughout(t *testing.T, during time.Duration, what string, holds look) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), during+soon)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		over := time.Since(begin) >= during
		ok, seen, err := holds(ctx)
		switch {
		case ctx.Err() != nil:
			t.Fatalf("%s could not be seen at the end of %s: %s, error %v", what, during, seen, err)
		case err == nil && !ok:
			t.Fatalf("%s did not last: after %s there is %s", what, time.Since(begin).Round(time.Second), seen)
		case err == nil && over:
			return
		}
		<-ticker.C
	}
}

// poll looks again and again until the check holds, or the time is over.
func poll(ctx context.Context, within time.Duration, look check) (seen string, found bool) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		ok, now := look(ctx)
		if ctx.Err() == nil || seen == "" {
			seen = now
		}
		if ok && ctx.Err() == nil {
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
func (s *suite) nodeIs(ready bool) check { return s.nodeSeen(ready).check }

// nodeSeen looks at the readiness of rome's virtual node.
func (s *suite) nodeSeen(ready bool) look {
	return func(ctx context.Context) (bool, string, error) {
		node := &corev1.Node{}
		if there, err := s.rome.finds(ctx, client.ObjectKey{Name: virtualNode}, node); !there {
			return false, "no such node", err
		}
		condition, seen := readyCondition(node)
		if !ready {
			return condition != nil && condition.Status != corev1.ConditionTrue, seen, nil
		}
		return takesPods(node), seen, nil
	}
}

// readyCondition is a node's condition Ready, nil if it has none, and what is to be said about it.
func readyCondition(node *corev1.Node) (condition *corev1.NodeCondition, seen string) {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c, fmt.Sprintf("%s: Ready=%s (%s: %s), taints %v", node.Name, c.Status, c.Reason, c.Message, node.Spec.Taints)
		}
	}
	return nil, node.Name + ": no condition Ready"
}

// takesPods is whether a node is ready for the scheduler, too: Kubernetes takes its taints away some time after it sees the condition.
func takesPods(node *corev1.Node) bool {
	condition, _ := readyCondition(node)
	return condition != nil && condition.Status == corev1.ConditionTrue && !slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == corev1.TaintNodeNotReady || taint.Key == corev1.TaintNodeUnreachable
	})
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
	c.missesWithin(t, patience, object, what)
}

func (c *side) missesWithin(t *testing.T, within time.Duration, object client.Object, what string) {
	t.Helper()
	eventually(t, within, fmt.Sprintf("%s %s to be gone at %s", what, client.ObjectKeyFromObject(object), c.name), c.gone(object))
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
