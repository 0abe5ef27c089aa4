package pod

import (
	"context"
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/kube/writers"
	"liqo.io/liqo/pkg/reflection"
)

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
	c := m.contests[uid]
	if c == nil {
		c = &contest{}
		m.contests[uid] = c
	}
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
	held, err := packShadow(&slim)
	if err != nil {
		return 0, err
	}
	sum := fnv.New64a()
	_, _ = sum.Write(held.data) // it cannot fail
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
		manager = meddler(ctx, v, p.changes[0].Path)
	}
	if err := patchShadow(ctx, v.clients, live, p.changes); err != nil {
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

// meddler is who changed a field of the ShadowPod last, other than us; empty if that is not known.
func meddler(ctx context.Context, v view, path []string) string {
	raw, err := v.clients.Dynamic.Resource(shadowPods).Namespace(v.shadow.Namespace).Get(ctx, v.shadow.Name, metav1.GetOptions{})
	if err != nil || raw.GetUID() != v.shadow.UID {
		return ""
	}
	return writers.Last(raw.GetManagedFields(), path, fieldManager)
}
