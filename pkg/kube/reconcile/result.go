package reconcile

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Bounds of the back-off after transient errors.
const (
	minBackOff = 50 * time.Millisecond
	maxBackOff = 60 * time.Second
)

// Result turns what a reconciler ended with into what is done next.
func Result(err error) (reconcile.Result, error) {
	if err == nil {
		return reconcile.Result{}, nil
	}
	switch Classify(err) {
	case Waiting:
		return reconcile.Result{RequeueAfter: after(err)}, nil
	case Refused:
		return reconcile.Result{RequeueAfter: after(err)}, nil
	case Terminal:
		return reconcile.Result{}, reconcile.TerminalError(err)
	default:
		if seconds, ok := apierrors.SuggestsClientDelay(err); ok {
			return reconcile.Result{RequeueAfter: min(time.Duration(seconds)*time.Second, maxBackOff)}, nil
		}
		return reconcile.Result{}, err
	}
}

// after is when a waiting or refused object is looked at again.
func after(err error) time.Duration {
	var c *classified
	if errors.As(err, &c) && c.after > 0 {
		return c.after
	}
	return RefusedRetry
}

// RateLimiter is the back-off of all our controllers: from 50 ms to 60 s.
func RateLimiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackOff, maxBackOff)
}
