// Package work handles the keys of a queue, and decides by the class of an error (pkg/kube/reconcile) when a key is handled again. Beside a
// queue of controller-runtime it bounds how many are handled at a time by slots, which change at run time.
package work

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/slots"
)

// Queue holds the keys of objects that are to be handled.
type Queue = workqueue.TypedRateLimitingInterface[types.NamespacedName]

// NewQueue makes a queue, with a name for its metrics and bounds of the wait after failures.
func NewQueue(name string, minBackOff, maxBackOff time.Duration) Queue {
	return workqueue.NewTypedRateLimitingQueueWithConfig(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](minBackOff, maxBackOff),
		workqueue.TypedRateLimitingQueueConfig[types.NamespacedName]{Name: name})
}

// Loop is how the keys of a queue are handled.
type Loop struct {
	Queue Queue
	// Workers bound how many keys are handled at a time.
	Workers *slots.Slots
	// What the keys name, in the log: pod.
	What string
	// Handle handles one key. That it breaks is the failure of that key alone.
	Handle func(context.Context, types.NamespacedName) error
}

// Run handles keys until the queue is shut down, and none once the context ended; it returns when the last worker is done.
func (l Loop) Run(ctx context.Context) {
	slots.Drain(l.Queue, l.Workers, func(k types.NamespacedName) {
		if ctx.Err() == nil {
			l.handle(klog.NewContext(ctx, klog.LoggerWithValues(klog.FromContext(ctx), l.What, klog.KRef(k.Namespace, k.Name))), k)
		}
	})
}

func (l Loop) handle(ctx context.Context, k types.NamespacedName) {
	err := l.isolated(ctx, k)
	result, retry := reconcile.Result(err)
	class := reconcile.Classify(err)
	switch {
	case result.RequeueAfter > 0:
		l.Queue.Forget(k)
		l.Queue.AddAfter(k, result.RequeueAfter)
	case retry != nil && class != reconcile.Terminal:
		l.Queue.AddRateLimited(k)
	default:
		l.Queue.Forget(k)
	}
	if err != nil && class != reconcile.Waiting {
		klog.FromContext(ctx).V(1).Info("An object could not be brought in step", "class", class.String(), "reason", err.Error())
	}
}

// isolated keeps one object that breaks the program from taking all others down with it.
func (l Loop) isolated(ctx context.Context, k types.NamespacedName) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("handling %s %s broke the program: %v\n%s", l.What, k, broken, debug.Stack())
		}
	}()
	return l.Handle(ctx, k)
}
