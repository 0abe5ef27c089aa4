package certificate

import (
	"time"

	"golang.org/x/time/rate"
)

// Each consumer has certificates issued as fast as it renews all that it may have, with some to spare: a burst, and then one in ten
// seconds. Whoever asks with one new key after the other waits, and so do its own others.
const (
	burst    = 64
	interval = 10 * time.Second
)

// spend takes a certificate from a consumer's budget. If there is none it returns how long to wait for one.
func (i *Issuer) spend(consumer string) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.budgets == nil {
		i.budgets = map[string]*rate.Limiter{}
	}
	budget := i.budgets[consumer]
	if budget == nil {
		budget = rate.NewLimiter(rate.Every(interval), burst)
		i.budgets[consumer] = budget
	}
	now := i.Clock.Now()
	reserved := budget.ReserveN(now, 1)
	wait := reserved.DelayFrom(now)
	if wait > 0 {
		reserved.CancelAt(now)
	}
	return wait
}
