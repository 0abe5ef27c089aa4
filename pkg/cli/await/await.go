package await

import (
	"context"
	"errors"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

const (
	firstPause = 100 * time.Millisecond
	longPause  = time.Second
	callLimit  = 15 * time.Second
)

// Check looks once: whether the state is reached, else what is still missing. An error ends the waiting unless it is one that
// a later try may not meet.
type Check func(ctx context.Context) (done bool, missing string, err error)

// Until calls check until it is done; what is missing is told to the task. what names the state in errors. The pauses grow slowly: what is there
// after some seconds is noticed within a fourth of that time.
func Until(ctx context.Context, task progress.Task, what string, check Check) error {
	missing := "no answer yet"
	pause := firstPause
	for {
		if ctx.Err() != nil {
			return ended(ctx, what, missing)
		}
		done, now, err := once(ctx, check)
		switch {
		case err != nil && ctx.Err() == nil && !passing(err):
			return err
		case err != nil && ctx.Err() == nil:
			now = err.Error()
		case done:
			return nil
		}
		if now != "" && ctx.Err() == nil {
			missing = now
			task.Waiting(missing)
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return ended(ctx, what, missing)
		case <-timer.C:
		}
		pause = min(pause*5/4, longPause)
	}
}

// once bounds a single look, so that a server that does not answer cannot use up the whole time in silence.
func once(ctx context.Context, check Check) (done bool, missing string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	return check(ctx)
}

func ended(ctx context.Context, what, missing string) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return failure.New(failure.Interrupted, "run the same command again to continue", "waiting for %s: interrupted: %w", what, ctx.Err())
	}
	return failure.New(failure.Timeout, next(missing), "timed out waiting for %s: %s", what, missing)
}

// next is the way out of what was still missing when the time was over. An image that cannot be pulled comes with no patience.
func next(missing string) string {
	for _, reason := range []string{"ImagePullBackOff", "ErrImagePull", "ErrImageNeverPull", "InvalidImageName"} {
		if strings.Contains(missing, reason) {
			return "make the image available to the nodes, or name one that is (docs/reference/values.md), and run the same command again"
		}
	}
	return "run the same command again to continue, with a longer --timeout if it needs one"
}

// passing tells whether a later try may go better.
func passing(err error) bool {
	var failed *failure.Error
	if errors.As(err, &failed) {
		return false
	}
	switch {
	case apierrors.IsForbidden(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		return false
	case meta.IsNoMatchError(err):
		return true
	}
	return true
}
