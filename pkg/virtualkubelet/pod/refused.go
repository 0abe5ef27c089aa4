package pod

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

// showsAny tells whether the pod shows a condition of a type.
func showsAny(local *corev1.Pod, conditionType corev1.PodConditionType) bool {
	return slices.ContainsFunc(local.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == conditionType })
}

// shows tells whether the pod shows a refusal already, from before a restart.
func shows(local *corev1.Pod, why refusal) bool {
	shown := why.pending()
	if shown == nil {
		shown = why.condition()
	}
	return !why.resize && local.Status.Reason == why.reason || slices.ContainsFunc(local.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == shown.Type && c.Message == shown.Message
	})
}

// refuse remembers why the pod cannot run, shows it, and tells it once.
func (r *Reconciler) refuse(local *corev1.Pod, why refusal) {
	r.errors.WithLabelValues(local.Namespace, "pod", why.reason).Inc()
	if !r.show(local, why) {
		return
	}
	if r.options.Recorder != nil && !shows(local, why) {
		event := offloadingv1beta1.ReasonFailedReflection
		if why.rejects {
			event = why.reason // as a kubelet tells it
		}
		r.options.Recorder.Event(local, corev1.EventTypeWarning, event, why.message)
	}
}

// show remembers why the pod cannot run, and shows it; it tells whether that is news.
func (r *Reconciler) show(local *corev1.Pod, why refusal) (news bool) {
	r.mu.Lock()
	news = r.memory.refuse(local.UID, why)
	r.mu.Unlock()
	if news {
		r.status.Add(keyOf(local))
	}
	return news
}

// refusalOf tells the user what the provider said.
func refusalOf(err error, cluster string) refusal {
	message := err.Error()
	if status := apierrors.APIStatus(nil); errors.As(err, &status) {
		message = status.Status().Message
	}
	reason := offloadingv1beta1.ReasonPodRefused
	switch {
	case strings.Contains(message, offloadingv1beta1.ReasonTooManyEndedPods):
		reason = offloadingv1beta1.ReasonTooManyEndedPods
	case strings.Contains(strings.ToLower(message), "quota"):
		reason = offloadingv1beta1.ReasonQuotaExceeded
	}
	return refusal{reason: reason, message: fmt.Sprintf("cluster %q refused the pod: %s", cluster, message)}
}

// whyRefused puts the provider's refusal of a pod into words, with the way out.
func (r *Reconciler) whyRefused(local *corev1.Pod, err error) refusal {
	why := refusalOf(err, r.options.Remote)
	if why.reason != offloadingv1beta1.ReasonPodRefused {
		return why
	}
	why.message = reflection.NeverOffloadedMessage(local, why.message)
	if message := reflection.StrayDaemonMessage(local, r.options.Remote, why.message); message != "" {
		return refusal{reason: offloadingv1beta1.ReasonOffloadingBackOff, message: message}
	}
	return why
}

// accept forgets every refusal.
func (r *Reconciler) accept(local *corev1.Pod) {
	r.mu.Lock()
	s := r.memory.of(local.UID)
	news := !s.taken
	s.refused, s.taken = refusal{}, true
	r.mu.Unlock()
	if news && showsAny(local, offloadingv1beta1.ChangeRefusedCondition) {
		r.status.Add(keyOf(local))
	}
	r.acceptSize(local)
}

// acceptSize forgets that another size was refused.
func (r *Reconciler) acceptSize(local *corev1.Pod) {
	r.mu.Lock()
	s := r.memory.of(local.UID)
	was, news := s.resize != (refusal{}), !s.sized
	s.resize, s.sized = refusal{}, true
	r.mu.Unlock()
	if was || news && showsAny(local, corev1.PodResizePending) {
		r.status.Add(keyOf(local))
	}
}

// siblingPause is how long to wait between two looks at what another virtual node left: no event tells when it goes.
const siblingPause = 3 * time.Second

// siblings tells whether a ShadowPod is of another virtual node of this cluster for the same provider.
func (r *Reconciler) siblings(shadow *offloadingv1beta1.ShadowPod) bool {
	node := shadow.Labels[offloadingv1beta1.NodeNameLabel]
	return reflection.IsOurs(shadow, r.options.Home, r.options.Remote) && node != "" && node != r.options.Node
}

// awaitSibling waits for the ShadowPod of an earlier pod of the same name, such as a StatefulSet's, that ran on another virtual node:
// that node removes it. The pod says so; it is no failure.
func (r *Reconciler) awaitSibling(local *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) error {
	what := "is to be removed by it"
	if shadow.DeletionTimestamp != nil {
		what = "is ending"
	}
	message := fmt.Sprintf("waiting for the earlier pod of that name: in cluster %q its ShadowPod, of virtual node %q, %s",
		r.options.Remote, shadow.Labels[offloadingv1beta1.NodeNameLabel], what)
	r.show(local, refusal{reason: offloadingv1beta1.ReasonEarlierPod, message: message})
	return reconcile.Wait(offloadingv1beta1.ReasonEarlierPod, message, siblingPause)
}

// claims finds the claims at the provider that stand for those of the pod. It is not ready while one of them is not, or is not
// there at all: then the pod says so, and it is looked again later, because a volume may move.
func (r *Reconciler) claims(ctx context.Context, local *corev1.Pod, in *reflection.PodInput) (ready bool, err error) {
	used := reflection.ClaimsOf(local)
	if len(used) == 0 || r.options.Claims == nil {
		return true, nil
	}
	in.Claims = map[string]string{}
	for _, claim := range used {
		var owner types.UID
		if claim.Ephemeral {
			owner = local.UID
		}
		remote, refused, err := r.options.Claims(ctx, local.Namespace, claim.Name, owner)
		if err != nil {
			return false, err
		}
		if refused != nil {
			r.refuse(local, refusal{reason: refused.Reason, message: refused.Message})
			return false, reconcile.Refuse(refused.Reason, errors.New(refused.Message))
		}
		in.Claims[claim.Name] = remote
	}
	return true, nil
}

// contest is what is remembered of the changes of one ShadowPod.
type contest struct {
	// wanted identifies what the ShadowPod was to hold when it was last looked at; inStep says that it was seen to.
	wanted uint64
	inStep bool
	// written are the times of the latest writes of what is wanted, by part; nil if there were none.
	written map[string]*restraint.Writes
	// reverted and contended are when either was last told.
	reverted, contended time.Time
}

// contest returns what is remembered about a pod that is to have this ShadowPod. The caller locks.
func (m *memory) contest(uid types.UID, wanted uint64) *contest {
	s := m.of(uid)
	if s.contest == nil {
		s.contest = &contest{}
	}
	c := s.contest
	if c.wanted != wanted {
		c.wanted, c.inStep, c.written = wanted, false, nil
	}
	return c
}

// wait is how long a part must not be written; zero lets it be written now.
func (c *contest) wait(part string, now time.Time) time.Duration {
	if writes := c.written[part]; writes != nil {
		return writes.Wait(now)
	}
	return 0
}

func (c *contest) wrote(part string, now time.Time) {
	if c.written == nil {
		c.written = map[string]*restraint.Writes{}
	}
	if c.written[part] == nil {
		c.written[part] = &restraint.Writes{}
	}
	c.written[part].Add(now)
}

// digest identifies what may change of a ShadowPod that is wanted.
func digest(wanted *offloadingv1beta1.ShadowPod) (uint64, error) {
	slim := *wanted
	reflection.SlimShadowPod(&slim)
	held, err := shadowpods.Pack(&slim)
	if err != nil {
		return 0, err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(held.Data()) // it cannot fail
	return sum.Sum64(), nil
}

// settle takes note of whether the ShadowPod holds what is wanted.
func (r *Reconciler) settle(uid types.UID, wanted uint64, inStep bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.memory.contest(uid, wanted); inStep {
		c.inStep = true
	}
}

// writable returns the parts that may be written now. If none is, somebody at the provider keeps undoing them: that is told, and the
// error says when to try again.
func (r *Reconciler) writable(local *corev1.Pod, wanted uint64, parts []part) ([]part, error) {
	now := r.options.Clock.Now()
	r.mu.Lock()
	c := r.memory.contest(local.UID, wanted)
	var free []part
	var first time.Duration
	for _, p := range parts {
		if left := c.wait(p.name, now); left == 0 {
			free = append(free, p)
		} else if first == 0 || left < first {
			first = left
		}
	}
	stuck := len(free) == 0 && first > 0
	tell := stuck && restraint.MayTell(&c.contended, now)
	r.mu.Unlock()
	if !stuck {
		return free, nil
	}
	message := fmt.Sprintf("somebody in cluster %q keeps undoing what the pod's ShadowPod is to hold (field %s); it is set right again at most twice a minute",
		r.options.Remote, parts[0].field())
	if tell && r.options.Recorder != nil {
		r.options.Recorder.Event(local, corev1.EventTypeWarning, offloadingv1beta1.ReasonContended, message)
	}
	return nil, reconcile.Wait(offloadingv1beta1.ReasonContended, message, first)
}

// write changes one part of the ShadowPod. If that puts back what somebody at the provider changed, it is told who did.
func (r *Reconciler) write(ctx context.Context, local *corev1.Pod, v view, live *offloadingv1beta1.ShadowPod, wanted uint64, p part) error {
	r.mu.Lock()
	drifted := r.memory.contest(local.UID, wanted).inStep
	r.mu.Unlock()
	manager := ""
	if drifted {
		// It is asked before the write, because the answer is gone afterwards; that it cannot be had holds up nothing.
		manager = shadowpods.Writer(ctx, v.clients, v.shadow, p.changes[0].Path)
	}
	if err := shadowpods.Change(ctx, v.clients, live, p.changes); err != nil {
		return err
	}
	now := r.options.Clock.Now()
	r.mu.Lock()
	c := r.memory.contest(local.UID, wanted)
	c.wrote(p.name, now)
	tell := drifted && restraint.MayTell(&c.reverted, now)
	r.mu.Unlock()
	if tell && r.options.Recorder != nil {
		by := "somebody"
		if manager != "" {
			by = fmt.Sprintf("field manager %q", manager)
		}
		r.options.Recorder.Event(local, corev1.EventTypeWarning, offloadingv1beta1.ReasonRemoteChangeReverted, fmt.Sprintf(
			"Field %s of ShadowPod %s/%s in cluster %q was changed by %s; it was put back", p.field(), live.Namespace, live.Name, r.options.Remote, by))
	}
	return nil
}

// field is the first that the part changes.
func (p *part) field() string { return strings.Join(p.changes[0].Path, ".") }
