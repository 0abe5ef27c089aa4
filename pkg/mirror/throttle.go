package mirror

import (
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
)

// throttle takes note of a provider that asks for patience: nothing at all is asked of it until then. It can ask for a
// minute at most, and then again.
func (e *Engine) throttle(err error) {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if !asked || !apierrors.IsTooManyRequests(err) {
		return
	}
	until := e.options.Clock.Now().Add(min(time.Duration(max(0, seconds))*time.Second, maxBackOff))
	e.throttled.Change(func(before *time.Time) {
		if until.After(*before) {
			*before = until
		}
	})
}

// errThrottled puts an object off until the provider may be asked again.
var errThrottled = errors.New("the provider asked for patience")

// throttling is how long the provider is to be left alone still.
func (e *Engine) throttling() time.Duration {
	return max(0, e.throttled.Get().Sub(e.options.Clock.Now()))
}

// putOff looks at an object again when the provider may be asked again, and not at all objects at the same moment. It is no
// failure of the object: nobody is told.
func (r *runner) putOff(key types.NamespacedName) {
	r.queue.Forget(key)
	r.queue.AddAfter(key, r.engine.throttling()+wait.Jitter(time.Second/2, 1))
}
