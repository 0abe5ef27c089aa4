package pod

import (
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// memory is what the reconciler knows beyond its caches. Losing it costs a few reads, nothing else. The UIDs that it is
// keyed by are those of local pods. Its owner locks.
type memory struct {
	// unasked has a lock of its own.
	unasked *unasked
	// created are ShadowPods that were made and have not shown up in the cache yet.
	created map[types.UID]creation
	// removed are ShadowPods, by their own UID, whose deletion was asked for and has not shown up in the cache yet.
	removed map[types.UID]time.Time
	// ending are ShadowPods, by their own UID, whose pod was asked to end, and when.
	ending map[types.UID]time.Time
	// gone are the pods whose remote pod was seen to go, with the last that was seen of it.
	gone map[types.UID]*packed
	// went are the pods that were seen to be deleted while their ShadowPod may be there still.
	went map[types.UID]key
	// starting is when the remote pod was first seen.
	starting map[types.UID]time.Time
	// refused are the pods that the provider, or we, refuse to run.
	refused map[types.UID]refusal
	// taken are the pods that run and that the provider took all changes of.
	taken map[types.UID]bool
	// resizes are the pods that run and that the provider refuses another size.
	resizes map[types.UID]refusal
	// sized are the pods that run and that the provider was asked about the size of.
	sized map[types.UID]bool
	pace
	// shown are the pods whose status says all that is known, with what was known.
	shown map[types.UID]uint64
	// ended is the version of the pod that was removed for good, and when: until the cache moves on, it shows the past.
	ended map[types.UID]removal
	// hastened is the grace period that the remote pod was last asked to end in.
	hastened map[types.UID]int64
	// doubted is what was last reported as not believable of a remote status.
	doubted map[types.UID]string
	told
	// awaited are the pods that had not started when they were first seen, and have not been ready yet.
	awaited map[types.UID]bool
	// round is the last one of giving back pods that ended to make room.
	round round
	// contests are the pods that run, with what is known of changes of their ShadowPods.
	contests map[types.UID]*contest
}

// told is what the users of namespaces were told.
type told struct {
	// toldOfOne is when they were last told what their pods do without.
	toldOfOne map[about]time.Time
	// outages are the namespaces of which they were told that nothing is known of their pods, and why.
	outages map[string]string
}

// round is one of giving back.
type round struct {
	at time.Time
	// vain says that nothing was given back.
	vain bool
}

type creation struct {
	shadow types.UID
	until  time.Time
}

type removal struct {
	version string
	at      time.Time
}

type refusal struct {
	reason, message string
	// resize says that it is about the size of a pod that runs, which it has since that generation.
	resize     bool
	generation int64
	// rejects says that the node does not take the pod, now or ever.
	rejects bool
}

// pending is the condition of a pod whose new size was refused; nil if that is not what was refused.
func (r refusal) pending() *corev1.PodCondition {
	if !r.resize {
		return nil
	}
	return &corev1.PodCondition{Type: corev1.PodResizePending, Status: corev1.ConditionTrue,
		Reason: reflection.WhyResizePending(r.reason, r.message), Message: corev1beta1.BoundMessage(r.message)}
}

// condition is that of a pod that runs on without a change; nil if that is not what was refused.
func (r refusal) condition() *corev1.PodCondition {
	if r.resize || r == (refusal{}) {
		return nil
	}
	return &corev1.PodCondition{Type: offloadingv1beta1.ChangeRefusedCondition, Status: corev1.ConditionTrue, Reason: r.reason,
		Message: corev1beta1.BoundMessage(r.message)}
}

func newMemory(local kubernetes.Interface, now clock.PassiveClock) memory {
	return memory{
		told: told{toldOfOne: map[about]time.Time{}, outages: map[string]string{}}, unasked: &unasked{local: local, clock: now, pods: map[types.UID]bool{}},
		went: map[types.UID]key{}, awaited: map[types.UID]bool{}, contests: map[types.UID]*contest{}, shown: map[types.UID]uint64{},
		taken: map[types.UID]bool{}, sized: map[types.UID]bool{},
		created: map[types.UID]creation{},
		removed: map[types.UID]time.Time{}, ending: map[types.UID]time.Time{}, gone: map[types.UID]*packed{}, starting: map[types.UID]time.Time{},
		refused: map[types.UID]refusal{}, resizes: map[types.UID]refusal{}, doubted: map[types.UID]string{},
		hastened: map[types.UID]int64{}, pace: newPace(), ended: map[types.UID]removal{},
	}
}

func (m *memory) forget(uid types.UID) {
	m.unasked.take(uid)
	delete(m.awaited, uid)
	delete(m.contests, uid)
	delete(m.shown, uid)
	delete(m.created, uid)
	delete(m.gone, uid)
	delete(m.starting, uid)
	delete(m.refused, uid)
	delete(m.taken, uid)
	delete(m.sized, uid)
	delete(m.resizes, uid)
	delete(m.doubted, uid)
	delete(m.patched, uid)
	delete(m.written, uid)
	delete(m.ended, uid)
}

// tooSoon is how long the next write of a status has to wait, zero if not at all: then it counts. What waits is written with whatever came since, so the
// last state always arrives. How a pod ends is told at once, and so is that it is ready for the first time.
func (m *memory) tooSoon(local *corev1.Pod, wanted *corev1.PodStatus, now time.Time) time.Duration {
	if reflection.Terminal(wanted.Phase) || apiequality.Semantic.DeepEqual(&local.Status, wanted) {
		return 0
	}
	if version, noted := m.patched[local.UID]; noted && version == local.ResourceVersion {
		return 0 // which writes nothing
	}
	return m.wait(local.UID, now, m.awaited[local.UID] && showsReady(&corev1.Pod{Status: *wanted}))
}

// pending tells whether a creation has to show up first, and how long that may still take.
func (m *memory) pending(uid types.UID, now time.Time) (time.Duration, bool) {
	c, ok := m.created[uid]
	if !ok {
		return 0, false
	}
	if left := c.until.Sub(now); left > 0 {
		return left, true
	}
	delete(m.created, uid)
	return 0, false
}

// refuse records a refusal and tells whether it is news.
func (m *memory) refuse(uid types.UID, r refusal) bool {
	refusals := m.refused
	if r.resize {
		refusals, m.sized[uid] = m.resizes, true
	} else {
		delete(m.taken, uid)
	}
	if refusals[uid] == r {
		return false
	}
	refusals[uid] = r
	return true
}

// pace is how often the statuses of pods are written: what a provider says is written as often as it is of use to somebody, not as often as it changes
// its mind. A virtual kubelet writes as a node, in the priority level of all nodes. Its owner locks.
type pace struct {
	// patched is the version of the pod that the last status was written to: until the cache moves on, it shows the past.
	patched map[types.UID]string
	// written is when the status of a pod, by its UID, was last written.
	written map[types.UID]time.Time
	// bucket is what all pods may write that wrote lately.
	bucket *rate.Limiter
}

func newPace() pace {
	return pace{patched: map[types.UID]string{}, written: map[types.UID]time.Time{}, bucket: rate.NewLimiter(restlessWrites, restlessBurst)}
}

// wait is how long the next write of a pod's status has to wait; zero says that it is written now. urgent does not wait for the pod's last one.
func (p *pace) wait(uid types.UID, now time.Time, urgent bool) time.Duration {
	last, written := p.written[uid]
	lately := written && now.Sub(last) < restless
	if left := last.Add(statusPace).Sub(now); lately && !urgent && left > 0 {
		return left
	}
	if lately && !p.bucket.AllowN(now, 1) {
		return statusPace
	}
	p.written[uid] = now
	return 0
}
