package stored

import (
	"slices"
	"sync"
	"time"
)

const (
	// compaction is how long an etcd keeps what was overwritten or deleted, unless its API servers are told otherwise
	// (--etcd-compaction-interval), which stays for another when it is younger than one as they compact.
	compaction = 10 * time.Minute
	// grain is how exactly it is known when something was overwritten.
	grain = 30 * time.Second
)

// account is what is stored of a namespace, or a part of that.
type account struct {
	// consumer that the namespace is, or was, a twin of; empty for others.
	consumer string
	// held are the bytes of what is there.
	held int64
	// past are the bytes of what was there, oldest first.
	past []written
	// closed says that nothing more is to be heard of what is held.
	closed bool
}

type written struct {
	since time.Time
	bytes int64
}

// tally sums up what is stored, by namespace.
type tally struct {
	mu       sync.Mutex
	accounts map[string]*account
}

func newTally() *tally { return &tally{accounts: map[string]*account{}} }

// of returns the account of a namespace. The caller locks.
func (t *tally) of(namespace string) *account {
	a := t.accounts[namespace]
	if a == nil {
		a = &account{}
		t.accounts[namespace] = a
	}
	return a
}

// belongs notes whose twin a namespace is.
func (t *tally) belongs(namespace, consumer string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.of(namespace).consumer = consumer
}

// change notes that an object of so many bytes, zero if there was none, has another number of them now, zero if it is gone.
func (t *tally) change(namespace string, before, after int64, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of(namespace)
	if a.closed {
		return
	}
	a.held += after - before
	if before != 0 {
		a.overwrite(before, now)
	}
}

// close notes that nothing more is heard of what an account holds, which is deleted.
func (t *tally) close(namespace string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.of(namespace)
	a.overwrite(a.held, now)
	a.held, a.closed = 0, true
}

// overwrite notes that so many bytes are of the past.
func (a *account) overwrite(before int64, now time.Time) {
	if last := len(a.past) - 1; last >= 0 && now.Sub(a.past[last].since) < grain {
		a.past[last].bytes += before
		return
	}
	a.past = append(a.past, written{since: now, bytes: before})
}

// sum is what is stored for a consumer.
type sum struct{ held, past int64 }

// sums are those of all consumers. What nobody stores any more is forgotten.
func (t *tally) sums(now time.Time) map[string]sum {
	t.mu.Lock()
	defer t.mu.Unlock()
	sums := map[string]sum{}
	for namespace, a := range t.accounts {
		a.past = slices.DeleteFunc(a.past, func(w written) bool { return now.Sub(w.since) > compaction+grain })
		if a.held == 0 && len(a.past) == 0 {
			delete(t.accounts, namespace)
			continue
		}
		if a.consumer == "" {
			continue
		}
		s := sums[a.consumer]
		s.held += a.held
		for _, w := range a.past {
			s.past += w.bytes
		}
		sums[a.consumer] = s
	}
	return sums
}
