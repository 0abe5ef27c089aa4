package pod

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
	"liqo.io/liqo/pkg/virtualkubelet/sign"
)

const (
	// giveBackPause is the least time between two rounds of giving back: what the first one gave back has to show up at the provider.
	giveBackPause = 2 * time.Second
	// giveBackAtMost is how many pods are given back in a round: each is a request.
	giveBackAtMost = 100
)

// remove ends a terminating pod: first its ShadowPod goes, with it the remote pod, and only then the local one.
func (r *Reconciler) remove(ctx context.Context, local *corev1.Pod, v view) error {
	switch {
	case v.offload == notOffloaded:
		return r.removeAlone(ctx, local, v)
	case v.neverAsked():
		return r.deleteLocal(ctx, local)
	case !v.ready:
		if stopped, err := stoppedUnseen(r.Signs, local, v); !stopped {
			return err
		}
		return r.deleteLocal(ctx, local)
	case v.shadow != nil && !standsFor(v.shadow, local):
		return r.abandon(ctx, local, keyOf(local), v)
	case v.shadow != nil:
		own := ptr.Deref(local.Spec.TerminationGracePeriodSeconds, corev1.DefaultTerminationGracePeriodSeconds)
		return r.endShadow(ctx, v, ptr.Deref(local.DeletionGracePeriodSeconds, own), own)
	case v.made != nil:
		return reconcile.Wait("CreationPending", "waiting for the new ShadowPod to show up", time.Second)
	case v.remote != nil && standsFor(v.remote, local):
		// Its end is an event. A pod that terminates without a period of its own is in no hurry.
		if local.DeletionGracePeriodSeconds == nil {
			return nil
		}
		return r.hasten(ctx, v, *local.DeletionGracePeriodSeconds)
	case v.gone:
		return r.deleteLocal(ctx, local)
	}
	if err := confirmGone(ctx, local, v); err != nil {
		return err
	}
	return r.deleteLocal(ctx, local)
}

// neverAsked tells whether the provider was never asked for the pod, and shows none.
func (v view) neverAsked() bool { return v.unasked && v.shadow == nil && v.remote == nil }

// stoppedUnseen tells whether a provider that shows nothing is lost and must have stopped a pod by now.
func stoppedUnseen(signs *sign.Giver, local *corev1.Pod, v view) (bool, error) {
	left, stops := signs.Left(local)
	if !v.lost || !stops {
		return false, nil
	}
	if left > 0 {
		return false, reconcile.Wait(offloadingv1beta1.ReasonRemoteUnavailable, "waiting until the provider must have stopped the pod", left)
	}
	return true, nil
}

// removeAlone ends a pod of a namespace that is not offloaded: the twin namespace is being removed with all that is in it.
func (r *Reconciler) removeAlone(ctx context.Context, local *corev1.Pod, v view) error {
	if !v.unasked {
		if err := r.confirmed(ctx, local.Namespace); err != nil {
			return err
		}
	}
	return r.deleteLocal(ctx, local)
}

// everRemote tells whether the status shows that there was a remote pod. That a pod failed does not: it is also what is shown, before it
// is removed, of one that never ran.
func everRemote(local *corev1.Pod) bool {
	for i := range local.Status.Conditions {
		if c := &local.Status.Conditions[i]; c.Type == offloadingv1beta1.RemotePodCondition && c.Status == corev1.ConditionTrue {
			return true
		}
	}
	if local.Status.Phase == corev1.PodRunning || local.Status.Phase == corev1.PodSucceeded {
		return true
	}
	return slices.ContainsFunc(slices.Concat(local.Status.InitContainerStatuses, local.Status.ContainerStatuses), func(c corev1.ContainerStatus) bool {
		ended := c.State.Terminated
		return c.State.Running != nil || ended != nil && !ended.StartedAt.IsZero() || c.LastTerminationState.Terminated != nil
	})
}

// confirmGone asks the provider itself: nobody saw the remote pod go, so the cache may not have seen it come.
func confirmGone(ctx context.Context, local *corev1.Pod, v view) error {
	remote, err := v.clients.Kube.CoreV1().Pods(v.namespace).Get(ctx, local.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("asking the provider whether pod %s/%s is gone: %w", v.namespace, local.Name, err)
	case standsFor(remote, local):
		return reconcile.Wait("RemotePodTerminating", "waiting for the remote pod to end", 2*time.Second)
	default:
		return nil
	}
}

// end shows how a terminating pod ended, as a kubelet does before it removes one for good, and tells whether that is shown: until then
// somebody waits for it who counts exit codes. A restart comes back here; what was not seen before it is shown as not known.
func (r *Reconciler) end(ctx context.Context, local *corev1.Pod) (bool, error) {
	if reflection.Terminal(local.Status.Phase) {
		return true, nil
	}
	known, doubts := decide(&r.options, local, r.look(keyOf(local), local.UID)).status()
	ended := reflection.TerminatedStatus(local, known, r.options.Clock.Now())
	reflection.Observe(local, &ended, local.Generation)
	r.tellDoubts(local, doubts)
	err := r.patchStatus(ctx, local, &ended, 0)
	if class := reconcile.Classify(err); err != nil && (class == reconcile.Refused || class == reconcile.Terminal) {
		return true, nil // a status that this cluster does not take keeps no pod
	}
	if err != nil {
		return false, err
	}
	// What was written, by us or by who shows the status of pods, is an event.
	return false, reconcile.Wait("EndPending", "waiting for the end of the pod to be shown", time.Second)
}

// room has the provider make room for a pod that it refused because it keeps too many that ended, as a kubelet removes dead containers.
// It returns nil if nothing can be done about the refusal, and else when the pod is tried again.
func room(ctx context.Context, r *Reconciler, refusal error) error {
	if !strings.Contains(refusal.Error(), offloadingv1beta1.ReasonTooManyEndedPods) {
		return nil
	}
	again := reconcile.Wait(offloadingv1beta1.ReasonTooManyEndedPods, "waiting for the provider to remove pods that ended", giveBackPause)
	now := r.options.Clock.Now()
	r.mu.Lock()
	last := r.memory.round
	if now.Sub(last.at) >= giveBackPause {
		r.memory.round.at = now
	}
	r.mu.Unlock()
	if now.Sub(last.at) < giveBackPause {
		if last.vain {
			return nil
		}
		return again
	}
	given, err := giveBack(ctx, r)
	r.mu.Lock()
	r.memory.round.vain = given == 0
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if given == 0 {
		return nil
	}
	klog.FromContext(ctx).Info("The provider removes pods that ended, so that it has room for new ones", "pods", given)
	return again
}

// giveBack removes the ShadowPods of half of the pods that ended, those that ended first. The pods stay here with all that is known of how they ended; only
// their logs are gone.
func giveBack(ctx context.Context, r *Reconciler) (given int, err error) {
	type candidate struct {
		view
		at time.Time
	}
	var all []candidate
	for _, held := range r.All("") {
		if held.Leaving || !held.Ended() {
			continue
		}
		v := r.look(held.Key(), held.UID)
		if local := held.Unpack(); local != nil && v.givesBack(local) {
			all = append(all, candidate{v, endOf(local)})
		}
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.shadow.Name, b.shadow.Name)) })
	var errs []error
	for _, c := range all[:min((len(all)+1)/2, giveBackAtMost)] {
		if err := r.deleteShadow(ctx, c.view); err != nil {
			errs = append(errs, err)
			continue
		}
		given++
	}
	if given == 0 && len(errs) > 0 {
		return 0, fmt.Errorf("making room for a pod: %w", errors.Join(errs...))
	}
	return given, nil
}

// givesBack tells whether a pod that ended here ended at the provider, too, and is still kept there.
func (v view) givesBack(local *corev1.Pod) bool {
	return v.ready && v.shadow != nil && standsFor(v.shadow, local) && v.shadow.DeletionTimestamp == nil && reflection.Terminal(v.shadow.Status.Phase) &&
		(v.remote == nil || reflection.Terminal(v.remote.Status.Phase))
}

// endOf is when the last container of a pod ended, or when the pod was made if none tells.
func endOf(pod *corev1.Pod) time.Time {
	at := pod.CreationTimestamp.Time
	for i := range pod.Status.ContainerStatuses {
		if ended := pod.Status.ContainerStatuses[i].State.Terminated; ended != nil && ended.FinishedAt.After(at) {
			at = ended.FinishedAt.Time
		}
	}
	return at
}

// leastGrace is the shortest grace period that is passed on, in seconds: with 0 the remote pod would be taken for gone before
// its kubelet says so.
const leastGrace = 1

// endShadow removes a ShadowPod whose pod has that long to end, in seconds; own is how long it has by itself. A kubelet that stops a pod
// goes by what it was told first, and the deletion of a ShadowPod says nothing: the provider is asked before it.
func (r *Reconciler) endShadow(ctx context.Context, v view, grace, own int64) error {
	grace = max(grace, leastGrace)
	switch {
	case grace == own, v.shadow.DeletionTimestamp != nil, v.remote == nil, reflection.OriginUID(v.remote) != reflection.OriginUID(v.shadow),
		v.remote.DeletionTimestamp != nil, reflection.Terminal(v.remote.Status.Phase):
		return r.deleteShadow(ctx, v)
	}
	now := r.options.Clock.Now()
	r.mu.Lock()
	asked, was := r.memory.ending[v.shadow.UID]
	if !was {
		r.memory.ending[v.shadow.UID] = now
	}
	r.mu.Unlock()
	left := endingSeen
	if was {
		left -= now.Sub(asked)
	}
	if left <= 0 {
		return r.deleteShadow(ctx, v)
	}
	if !was {
		err := shadowpods.Annotate(ctx, v.clients, v.shadow, offloadingv1beta1.EndsInAnnotation, strconv.FormatInt(grace, 10))
		switch class := reconcile.Classify(err); {
		case err == nil:
		case apierrors.IsNotFound(err):
			return nil // its end is an event
		case class == reconcile.Refused || class == reconcile.Terminal:
			return r.deleteShadow(ctx, v)
		default:
			r.removed(v.shadow)
			return err
		}
	}
	return reconcile.Wait("EndPending", "waiting for the remote pod to begin to end", left)
}

// hasten has a terminating remote pod end as soon as its local pod is to: a deletion of the local pod may ask for less time
// than the pod's own grace period, at once or later. The ShadowPod, which is gone by then, cannot carry that; an eviction can,
// which for a pod that is being deleted is nothing but another deletion. It is asked for once per period.
func (r *Reconciler) hasten(ctx context.Context, v view, grace int64) error {
	remote := v.remote
	grace = max(grace, leastGrace)
	if remote.DeletionTimestamp == nil || ptr.Deref(remote.DeletionGracePeriodSeconds, 0) <= grace {
		return nil
	}
	origin := types.UID(reflection.OriginUID(remote))
	r.mu.Lock()
	asked, ok := r.memory.hastened[origin]
	if done := ok && asked <= grace; done {
		r.mu.Unlock()
		return nil // its effect is an event
	}
	r.memory.hastened[origin] = grace
	r.mu.Unlock()
	err := v.clients.Kube.PolicyV1().Evictions(remote.Namespace).Evict(ctx, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: remote.Namespace, Name: remote.Name},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: ptr.To(grace), Preconditions: &metav1.Preconditions{UID: &remote.UID},
		},
	})
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	r.mu.Lock()
	delete(r.memory.hastened, origin)
	r.mu.Unlock()
	if apierrors.IsForbidden(err) {
		// The policy that decides may not have seen yet that the pod is being deleted.
		return reconcile.Wait("EvictionPending", "waiting for the provider to let the grace period be shortened: "+err.Error(), time.Second)
	}
	return fmt.Errorf("shortening the grace period of pod %s/%s to %d s: %w", remote.Namespace, remote.Name, grace, err)
}

// hastenForced ends a remote pod that outlives its local pod: that one was removed by force, which asks for no grace at all.
func (r *Reconciler) hastenForced(ctx context.Context, k key, v view) error {
	if !v.ready || v.shadow != nil || v.remote == nil || v.remote.DeletionTimestamp == nil || !r.ours(v.remote) {
		return nil
	}
	if exists, err := r.exists(ctx, k, v.remote); err != nil || exists {
		return err
	}
	return r.hasten(ctx, v, leastGrace)
}

// ours tells whether a remote pod came through this virtual node.
func (r *Reconciler) ours(remote *corev1.Pod) bool {
	return reflection.IsOurs(remote, r.options.Home, r.options.Remote)
}

// deleteShadow removes exactly this ShadowPod, and asks once only. One that is gone or was replaced is no error.
func (r *Reconciler) deleteShadow(ctx context.Context, v view) error {
	if v.shadow.DeletionTimestamp != nil {
		return nil // its end is an event
	}
	now := r.options.Clock.Now()
	r.mu.Lock()
	asked, ok := r.memory.removed[v.shadow.UID]
	if pending := ok && now.Sub(asked) < creationSeen; pending {
		r.mu.Unlock()
		return nil // its end is an event
	}
	r.memory.removed[v.shadow.UID] = now
	r.mu.Unlock()
	gone, err := shadowpods.Delete(ctx, v.clients, v.shadow)
	if gone || err != nil {
		r.removed(v.shadow)
	}
	return err
}

// removed forgets that the ShadowPod's deletion was asked for.
func (r *Reconciler) removed(shadow *offloadingv1beta1.ShadowPod) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memory.removed, shadow.UID)
	delete(r.memory.ending, shadow.UID)
}
