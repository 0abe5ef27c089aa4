package mirror

import (
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// throttle takes note of a provider that asks for patience: nothing at all is asked of it until then. It can ask for a
// minute at most, and then again.
func (e *Engine) throttle(err error) {
	seconds, asked := apierrors.SuggestsClientDelay(err)
	if !asked || !apierrors.IsTooManyRequests(err) {
		return
	}
	until := e.options.Clock.Now().Add(min(time.Duration(max(0, seconds))*time.Second, maxBackOff))
	e.mu.Lock()
	defer e.mu.Unlock()
	if until.After(e.throttled) {
		e.throttled = until
	}
}

// throttling is the provider's own answer once more, while it is to be left alone.
func (e *Engine) throttling() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := e.throttled.Sub(e.options.Clock.Now())
	if wait <= 0 {
		return nil
	}
	return apierrors.NewTooManyRequests(fmt.Sprintf("cluster %q asked for patience", e.options.Remote), int((wait+time.Second-1)/time.Second))
}
