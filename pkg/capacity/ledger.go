package capacity

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Entry is what one pod takes.
type Entry struct {
	// User that the pod counts for, in whatever form the caller always uses.
	User string
	// Amount as PodRequests gives it; empty for a pod that ended, which is kept all the same.
	Amount corev1.ResourceList
}

// objects is how many pods a user has that are kept, those that ended included: each is an object twice, as large as the user likes.
const objects = corev1.ResourceName("count/shadowpods.offloading.liqo.io")

// kept is an entry's amount and the object that it is.
func kept(amount corev1.ResourceList) corev1.ResourceList {
	sum := maps.Clone(amount)
	if sum == nil {
		sum = corev1.ResourceList{}
	}
	sum[objects] = *resource.NewQuantity(1, resource.DecimalSI)
	return sum
}

type reservation struct {
	Entry
	until time.Time
}

// Ledger keeps what every user has taken. It is told about every live pod by Observe and Forget (an informer's events) and
// bridges the time between an admission and the event that follows it with reservations.
type Ledger struct {
	mu       sync.Mutex
	hold     time.Duration
	observed map[types.NamespacedName]Entry
	reserved map[types.NamespacedName]reservation
	used     map[string]corev1.ResourceList
	// next is when the first reservation ends, so that an admission need not look at all of them.
	next time.Time
}

// NewLedger returns an empty ledger in which reservations are kept for hold.
func NewLedger(hold time.Duration) *Ledger {
	return &Ledger{hold: hold, observed: map[types.NamespacedName]Entry{}, reserved: map[types.NamespacedName]reservation{},
		used: map[string]corev1.ResourceList{}}
}

// Observe records that a pod is there, or what it takes now, and settles its reservation.
func (l *Ledger) Observe(pod types.NamespacedName, entry Entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// One that ended is no answer to a reservation: that belongs to a successor of its name.
	if r, found := l.reserved[pod]; found && len(entry.Amount) > 0 {
		l.take(r.Entry, subtract)
		delete(l.reserved, pod)
	}
	if old, found := l.observed[pod]; found {
		l.take(old, subtract)
	}
	entry.Amount = kept(entry.Amount)
	l.observed[pod] = entry
	l.take(entry, add)
}

// Forget records that a pod is gone. A reservation of its name stays: it belongs to a successor.
func (l *Ledger) Forget(pod types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if old, found := l.observed[pod]; found {
		l.take(old, subtract)
		delete(l.observed, pod)
	}
}

// Admit checks a new pod of a user against its grant. It is refused, or its amount is reserved; with dryRun it is only
// checked. A pod whose name is reserved for the same user already replaces that reservation.
func (l *Ledger) Admit(pod types.NamespacedName, user string, grant *offloadingv1beta1.QuotaSpec, spec *corev1.PodSpec, now time.Time, dryRun bool) *Refusal {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	old, again := l.reserved[pod]
	if again && old.User == user {
		l.take(old.Entry, subtract)
	}
	refusal := Check(grant, spec, l.used[user])
	if refusal == nil {
		refusal = checkKept(grant, l.used[user])
	}
	if refusal != nil || dryRun {
		if again && old.User == user {
			l.take(old.Entry, add)
		}
		return refusal
	}
	if again && old.User != user {
		l.take(old.Entry, subtract)
	}
	entry := Entry{User: user, Amount: kept(PodRequests(spec))}
	l.reserve(pod, entry, now)
	l.take(entry, add)
	return nil
}

// Change checks what a pod that is there asks for from now on, given the grant of its user. What grows is refused, or reserved;
// with dryRun it is only checked. What shrinks is free once Observe says so. A grant that became smaller takes nothing away, and
// neither does a cordon.
func (l *Ledger) Change(pod types.NamespacedName, user string, grant *offloadingv1beta1.QuotaSpec, spec *corev1.PodSpec, now time.Time, dryRun bool) *Refusal {
	if refusal := checkSigns(spec); refusal != nil {
		return refusal
	}
	if refusal := checkDeclared(grant, spec); refusal != nil {
		return refusal
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	more := PodRequests(spec)
	if has, found := l.observed[pod]; found && has.User == user {
		subtract(more, has.Amount)
	}
	held, again := l.reserved[pod]
	if again && held.User != user {
		held, again = reservation{}, false
	}
	subtract(more, held.Amount)
	if len(more) == 0 {
		return nil
	}
	if refusal := CheckGrowth(grant); refusal != nil {
		return refusal
	}
	if refusal := fits(grant.Resources, l.used[user], more); refusal != nil || dryRun {
		return refusal
	}
	l.take(Entry{User: user, Amount: more}, add)
	if again {
		add(more, held.Amount)
	}
	l.reserve(pod, Entry{User: user, Amount: more}, now)
	return nil
}

// reserve notes what an admitted pod takes until Observe tells.
func (l *Ledger) reserve(pod types.NamespacedName, entry Entry, now time.Time) {
	until := now.Add(l.hold)
	if l.next.IsZero() || until.Before(l.next) {
		l.next = until
	}
	l.reserved[pod] = reservation{Entry: entry, until: until}
}

// Used returns what a user has taken of its grant, reservations included.
func (l *Ledger) Used(user string, now time.Time) corev1.ResourceList {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.expire(now)
	used := l.used[user].DeepCopy()
	delete(used, objects)
	return used
}

// expire drops the reservations whose pod never came.
func (l *Ledger) expire(now time.Time) {
	if l.next.IsZero() || !now.After(l.next) {
		return
	}
	l.next = time.Time{}
	for pod, r := range l.reserved {
		switch {
		case now.After(r.until):
			l.take(r.Entry, subtract)
			delete(l.reserved, pod)
		case l.next.IsZero() || r.until.Before(l.next):
			l.next = r.until
		}
	}
}

// take adds an entry to its user's sum, or subtracts it from it.
func (l *Ledger) take(entry Entry, how func(sum, what corev1.ResourceList)) {
	sum := l.used[entry.User]
	if sum == nil {
		sum = corev1.ResourceList{}
		l.used[entry.User] = sum
	}
	how(sum, entry.Amount)
	if len(sum) == 0 {
		delete(l.used, entry.User)
	}
}
