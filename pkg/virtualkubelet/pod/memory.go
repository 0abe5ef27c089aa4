package pod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/packed"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// memory is what the reconciler knows beyond its caches. Losing it costs a few reads, nothing else. Its owner locks.
type memory struct {
	// unasked has a lock of its own.
	unasked *unasked
	// pods is what is known of local pods, by their UID.
	pods map[types.UID]*state
	// removed are ShadowPods, by their own UID, whose deletion was asked for and has not shown up in the cache yet.
	removed map[types.UID]time.Time
	// ending are ShadowPods, by their own UID, whose pod was asked to end, and when.
	ending map[types.UID]time.Time
	// went are the pods that were seen to be deleted while their ShadowPod may be there still.
	went map[types.UID]key
	// hastened is the grace period that the remote pod of a local one, which may be gone, was last asked to end in.
	hastened map[types.UID]int64
	// bucket is what all pods may write of their statuses that wrote lately.
	bucket *rate.Limiter
	told
	// round is the last one of giving back pods that ended to make room.
	round round
}

// state is what is known of one local pod.
type state struct {
	// made is its ShadowPod that was made and has not shown up in the cache yet; nil if there is none.
	made *creation
	// gone is the last that was seen of its remote pod, which was seen to go; nil if it was not.
	gone *packed.Pod
	// starting is when the remote pod was first seen.
	starting time.Time
	// refused says why the provider, or we, refuse to run it, resize why the provider refuses it another size while it runs.
	refused, resize refusal
	// taken says that the provider took all its changes while it runs, sized that it was asked about the size.
	taken, sized bool
	// awaited says that it had not started when it was first seen, and has not been ready yet.
	awaited bool
	// patched is the version of the pod that the last status was written to: until the cache moves on, it shows the past.
	patched *string
	// written is when its status was last written.
	written time.Time
	// shown is what was known when its status said all of it; nil if it does not.
	shown *uint64
	// ended is the version of the pod that was removed for good, and when: until the cache moves on, it shows the past.
	ended *removal
	// doubted says that it was told what was not believable of a remote status.
	doubted bool
	// contest is what is known of changes of its ShadowPod; nil while it was never looked at.
	contest *contest
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
		unasked: &unasked{local: local, clock: now, pods: map[types.UID]bool{}}, pods: map[types.UID]*state{},
		removed: map[types.UID]time.Time{}, ending: map[types.UID]time.Time{}, went: map[types.UID]key{}, hastened: map[types.UID]int64{},
		bucket: rate.NewLimiter(restlessWrites, restlessBurst), told: told{toldOfOne: map[about]time.Time{}, outages: map[string]string{}},
	}
}

// of is what is known of a pod, of which something is to be remembered.
func (m *memory) of(uid types.UID) *state {
	if m.pods[uid] == nil {
		m.pods[uid] = &state{}
	}
	return m.pods[uid]
}

// known is what is known of a pod that may be gone; what is noted there of one of which nothing is known is forgotten.
func (m *memory) known(uid types.UID) *state {
	if s := m.pods[uid]; s != nil {
		return s
	}
	return &state{}
}

func (m *memory) forget(uid types.UID) {
	m.unasked.take(uid)
	delete(m.pods, uid)
}

// tidy forgets a pod of which nothing is remembered: it may have gone before something of it was noted.
func (m *memory) tidy(uid types.UID) {
	if s := m.pods[uid]; s != nil && *s == (state{}) {
		delete(m.pods, uid)
	}
}

// tooSoon is how long the next write of a status has to wait, zero if not at all: then it counts. What waits is written with whatever came since, so the
// last state always arrives. How a pod ends is told at once, and so is that it is ready for the first time.
func (m *memory) tooSoon(local *corev1.Pod, wanted *corev1.PodStatus, now time.Time) time.Duration {
	if reflection.Terminal(wanted.Phase) || apiequality.Semantic.DeepEqual(&local.Status, wanted) {
		return 0
	}
	s := m.of(local.UID)
	if s.patched != nil && *s.patched == local.ResourceVersion {
		return 0 // which writes nothing
	}
	return m.pace(local.UID, now, s.awaited && showsReady(wanted))
}

// made is the ShadowPod of a pod that was made and has to show up first; nil if there is none.
func (m *memory) made(uid types.UID, now time.Time) *creation {
	s := m.known(uid)
	if s.made != nil && !now.Before(s.made.until) {
		s.made = nil
	}
	return s.made
}

// refuse records a refusal and tells whether it is news.
func (m *memory) refuse(uid types.UID, r refusal) (news bool) {
	s := m.of(uid)
	before := &s.refused
	if r.resize {
		before, s.sized = &s.resize, true
	} else {
		s.taken = false
	}
	news = *before != r
	*before = r
	return news
}

// pace is how long the next write of a pod's status has to wait; zero says that it is written now, which counts. What a provider says is written
// as often as it is of use to somebody, not as often as it changes its mind: a virtual kubelet writes as a node, in the priority level of all nodes.
// What is urgent does not wait for the pod's last write.
func (m *memory) pace(uid types.UID, now time.Time, urgent bool) time.Duration {
	s := m.of(uid)
	lately := !s.written.IsZero() && now.Sub(s.written) < restless
	if left := s.written.Add(statusPace).Sub(now); lately && !urgent && left > 0 {
		return left
	}
	if lately && !m.bucket.AllowN(now, 1) {
		return statusPace
	}
	s.written = now
	return 0
}

// unasked knows the pods for which the provider was surely never asked, in this life or an earlier one.
//
// A pod that is deleted while the provider does not answer may go at once only if it is one of them: a creation whose answer was lost may
// have been made, and then the pod's successor would run beside it. It is known of pods that came while this process watched, because no
// other one works for this node meanwhile, and is written down for the next process before this one can end: in the pod's status, whenever
// the pod has to wait. What is written is taken back before the provider is asked.
type unasked struct {
	local kubernetes.Interface
	clock clock.PassiveClock

	mu sync.Mutex
	// pods, and whether it was written down in this life.
	pods map[types.UID]bool
}

// errCacheBehind waits for what was written to the pod.
var errCacheBehind = reconcile.Wait("LocalCacheBehind", "waiting for the local cache to show the pod", time.Second)

// came takes note of a pod that comes to the node. Of those that a first list showed an earlier process may have asked for.
func (u *unasked) came(pod *corev1.Pod, listed bool) {
	if listed && !reflection.NotRequested(&pod.Status) || everRemote(pod) {
		return
	}
	u.put(pod.UID, false)
}

func (u *unasked) put(uid types.UID, written bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pods[uid] = written
}

func (u *unasked) has(uid types.UID) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, has := u.pods[uid]
	return has
}

// take forgets a pod, and tells whether it was known and written down.
func (u *unasked) take(uid types.UID) (known, written bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	written, known = u.pods[uid]
	delete(u.pods, uid)
	return known, written
}

// write writes down that the provider was never asked for a pod that has to wait. It is the work of those who ask, of whom there is one at
// a time for each pod.
func (u *unasked) write(ctx context.Context, pod *corev1.Pod) error {
	if !u.has(pod.UID) || reflection.NotRequested(&pod.Status) || reflection.Terminal(pod.Status.Phase) {
		return nil
	}
	// Noted before the call, whose answer may be lost.
	u.put(pod.UID, true)
	wanted := reflection.WithRequest(&pod.Status, false, u.clock.Now())
	if _, err := writeStatus(ctx, u.local, pod, &wanted, nil); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("writing down that nothing was asked for pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}

// ask asks the provider for a pod, after it was taken back that it was never asked. What it declined it was not asked for.
func (u *unasked) ask(ctx context.Context, pod *corev1.Pod, create func() (types.UID, error)) (types.UID, error) {
	first, written := u.take(pod.UID)
	if written {
		// The cache may not show yet what was written, if it was.
		live, err := u.live(ctx, pod)
		if err != nil {
			u.put(pod.UID, true)
			return "", err
		}
		pod = live
	}
	if reflection.NotRequested(&pod.Status) {
		wanted := reflection.WithRequest(&pod.Status, true, u.clock.Now())
		_, err := writeStatus(ctx, u.local, pod, &wanted, nil)
		if err != nil && first {
			u.put(pod.UID, written)
		}
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return "", errCacheBehind
		case err != nil:
			return "", fmt.Errorf("writing down that pod %s/%s is asked for: %w", pod.Namespace, pod.Name, err)
		}
	}
	uid, err := create()
	if first && declined(err) {
		u.put(pod.UID, false)
	}
	return uid, err
}

// live reads the pod from this cluster's API server.
func (u *unasked) live(ctx context.Context, pod *corev1.Pod) (*corev1.Pod, error) {
	live, err := u.local.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err), err == nil && live.UID != pod.UID:
		return nil, errCacheBehind
	case err != nil:
		return nil, fmt.Errorf("reading pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return live, nil
}

// declined tells whether an error is the answer of a server that did not do what it was asked.
func declined(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return false
	}
	code := status.Status().Code
	return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusConflict && code != http.StatusRequestTimeout
}
