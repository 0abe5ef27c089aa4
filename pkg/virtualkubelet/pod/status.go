package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"liqo.io/liqo/pkg/addressing"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// reconcileStatus shows on the local pod what is known of the remote one.
func (r *Reconciler) reconcileStatus(ctx context.Context, k key) error {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	held := r.heldLocal(k)
	if held == nil {
		return nil
	}
	v, shadow, remote := r.glance(k, held.uid)
	knows := knowledge(held, shadow, remote, v)
	if !held.leaving && nothingYet(v, shadow) || r.showsAll(held.uid, knows) {
		return nil // without decoding anything
	}
	local := held.pod()
	if local == nil || reflection.Terminal(local.Status.Phase) {
		return nil
	}
	v = r.see(v, shadow, remote)
	if v.offload == notOffloaded && reflection.Started(local) {
		if err := r.confirmed(ctx, k.Namespace); err != nil {
			return err
		}
	}
	wanted, doubts := r.statusOf(local, v)
	if wanted == nil {
		return nil
	}
	if local.DeletionTimestamp != nil && !ofInterest(local, wanted, v) {
		return nil
	}
	if left := r.stillStarting(local, v.remote, wanted); left > 0 {
		return reconcile.Wait("RemotePodStarting", "waiting for the remote pod to start", left)
	}
	reflection.Observe(local, wanted, observedGeneration(local, v, wanted))
	r.tellDoubts(local, doubts)
	return r.patchStatus(ctx, local, wanted, knows)
}

// observedGeneration is the generation of a pod that is to be shown as observed in a status.
func observedGeneration(local *corev1.Pod, v view, wanted *corev1.PodStatus) int64 {
	shadow, remote := v.shadow, v.remote
	if shadow != nil && !standsFor(shadow, local) {
		shadow = nil
	}
	if remote != nil && !standsFor(remote, local) {
		remote = nil
	}
	refused := v.resize.resize && v.resize.generation == local.Generation
	return reflection.ObservedGeneration(local, shadow, remote, refused || reflection.Terminal(wanted.Phase))
}

// ofInterest tells whether a status of a terminating pod is shown: only its end is of interest, and how it gets there.
func ofInterest(local *corev1.Pod, wanted *corev1.PodStatus, v view) bool {
	return reflection.Terminal(wanted.Phase) || reflection.Started(local) && (v.remote != nil || v.lost)
}

// stillStarting is how long to wait for the remote pod to start, whatever brought the local pod up: other news of it is no
// reason to write that it is pending. Zero if it is not starting.
func (r *Reconciler) stillStarting(local, remote *corev1.Pod, wanted *corev1.PodStatus) time.Duration {
	if remote == nil || calm(remote) == 0 || wanted.Phase != corev1.PodPending || everRemote(local) {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seen, ok := r.memory.starting[local.UID]
	if !ok {
		return 0
	}
	return seen.Add(calm(remote)).Sub(r.options.Clock.Now())
}

// confirmed makes sure that a namespace which is not offloaded, as far as the cache knows, really is not.
func (r *Reconciler) confirmed(ctx context.Context, namespace string) error {
	if r.options.Confirm == nil {
		return nil
	}
	offloaded, err := r.options.Confirm(ctx, namespace)
	if err != nil {
		return fmt.Errorf("asking whether namespace %q is still offloaded: %w", namespace, err)
	}
	if offloaded {
		return reconcile.Wait("LocalCacheBehind", "waiting for the cache to show that the namespace is offloaded", time.Second)
	}
	return nil
}

// statusOf decides what the pod shows; nil means that what it shows stays.
func (r *Reconciler) statusOf(local *corev1.Pod, v view) (*corev1.PodStatus, []reflection.Refused) {
	now := r.options.Clock.Now()
	in := reflection.StatusInput{NodeIP: r.options.NodeIP, PodPrefixes: v.settings.PodPrefixes, OwnPrefixes: v.settings.OwnPrefixes,
		Reserved: addressing.Reserved, Addresses: v.settings.Addresses, HideAddresses: r.options.HideAddresses, Now: now}
	started := reflection.Started(local)
	switch {
	case v.offload == notOffloaded:
		return ptrTo(r.homeStatus(local, started)), nil
	case v.revoked && !ending(local, v):
		return ptrTo(r.revokedStatus(local, v, started)), nil
	case v.offload == pending && !started:
		return ptrTo(reflection.WaitingStatus(local, offloadingv1beta1.ReasonOffloadingBackOff, fmt.Sprintf(
			"waiting for cluster %q to accept namespace %q", r.options.Remote, local.Namespace), now)), nil
	case v.offload == pending && v.leaving:
		return ptrTo(reflection.MissingStatus(local, fmt.Sprintf("cluster %q is removing the namespace that the pod runs in", r.options.Remote), now)), nil
	case v.lost && v.offload == offloaded && started:
		return ptrTo(reflection.UnreachableStatus(local, offloadingv1beta1.ReasonRemoteUnavailable, fmt.Sprintf("cluster %q does not answer", r.options.Remote), now)), nil
	case !v.ready:
		return r.unfollowed(local, v, started), nil
	case terminating(local, v) != nil:
		// What is shown of a size or of changes that were refused stays.
		in.SizeUnknown = true
		status, doubts := reflection.LocalStatus(local, terminating(local, v), in)
		return &status, doubts
	case v.shadow == nil || !standsFor(v.shadow, local):
		return r.withoutShadow(local, v, started), nil
	default:
		return r.offloadedStatus(local, v, in)
	}
}

// homeStatus is what a pod shows whose namespace is not offloaded to the provider.
func (r *Reconciler) homeStatus(local *corev1.Pod, started bool) corev1.PodStatus {
	now := r.options.Clock.Now()
	if started {
		return reflection.AbortedStatus(local, fmt.Sprintf("namespace %q is no longer offloaded to cluster %q", local.Namespace, r.options.Remote), now)
	}
	return reflection.WaitingStatus(local, offloadingv1beta1.ReasonOffloadingBackOff, reflection.NotOffloadedMessage(local, r.options.Remote), now)
}

// ending tells whether it is known that the remote pod finished, and how: that is news whatever our rights.
func ending(local *corev1.Pod, v view) bool {
	return v.shadow != nil && standsFor(v.shadow, local) && reflection.Terminal(v.shadow.Status.Phase) ||
		v.remote != nil && standsFor(v.remote, local) && reflection.Finished(v.remote)
}

// revokedStatus is what a pod shows whose provider took our rights back. It failed if its remote pod was seen to go, because no other
// can be made. Otherwise nothing is known of it: it may well run on.
func (r *Reconciler) revokedStatus(local *corev1.Pod, v view, started bool) corev1.PodStatus {
	now, reason := r.options.Clock.Now(), offloadingv1beta1.ReasonRightsRevoked
	gone := v.gone && v.shadow == nil && (v.ready || v.leaving)
	switch {
	case started && gone:
		return reflection.EndedStatus(local, reason, fmt.Sprintf(
			"cluster %q took our rights back and removed the pod", r.options.Remote), now)
	case started:
		return reflection.UnreachableStatus(local, reason, fmt.Sprintf(
			"cluster %q took our rights back; whether the pod still runs there is not known", r.options.Remote), now)
	default:
		return reflection.WaitingStatus(local, reason, fmt.Sprintf(
			"cluster %q took our rights back: the pod cannot be made there", r.options.Remote), now)
	}
}

// withoutShadow is the status of a pod whose ShadowPod is not there. If the provider refuses to have it, one that ran is not ready any
// more.
func (r *Reconciler) withoutShadow(local *corev1.Pod, v view, started bool) *corev1.PodStatus {
	now := r.options.Clock.Now()
	switch {
	case v.shadow != nil || v.refused == (refusal{}):
		return nil
	case v.refused.rejects:
		return ptrTo(reflection.RejectedStatus(local, v.refused.reason, v.refused.message))
	case !started:
		return ptrTo(reflection.WaitingStatus(local, v.refused.reason, v.refused.message, now))
	case v.remote == nil:
		return ptrTo(reflection.MissingStatus(local, v.refused.message, now))
	default:
		return nil
	}
}

// offloadedStatus is what a pod shows that has its ShadowPod.
func (r *Reconciler) offloadedStatus(local *corev1.Pod, v view, in reflection.StatusInput) (*corev1.PodStatus, []reflection.Refused) {
	remote := v.remote
	if remote != nil && !standsFor(remote, local) {
		remote = nil
	}
	in.NoAPIServer = reflection.LacksAPIServer(local, v.shadow)
	switch {
	case reflection.Terminal(v.shadow.Status.Phase):
		status, doubts := reflection.FinishedStatus(local, remote, &v.shadow.Status, in)
		return &status, doubts
	case remote != nil:
		r.refusals(local, v, &in)
		status, doubts := reflection.LocalStatus(local, remote, in)
		return &status, doubts
	default:
		return r.withoutRemote(local, v, reflection.Started(local)), nil
	}
}

// withoutRemote is the status of a pod whose ShadowPod is there, but has no pod: the provider says why.
func (r *Reconciler) withoutRemote(local *corev1.Pod, v view, started bool) *corev1.PodStatus {
	now := r.options.Clock.Now()
	reason, message := offloadingv1beta1.ReasonRemotePodMissing, "waiting for the provider to make the pod again"
	known := false
	for i := range v.shadow.Status.Conditions {
		if c := &v.shadow.Status.Conditions[i]; c.Type == string(corev1.PodReady) && c.Status == metav1.ConditionFalse {
			reason, message, known = c.Reason, fmt.Sprintf("cluster %q: %s", r.options.Remote, c.Message), true
		}
	}
	switch {
	case started:
		return ptrTo(reflection.MissingStatus(local, message, now))
	case known:
		return ptrTo(reflection.WaitingStatus(local, reason, message, now))
	default:
		return nil
	}
}

// tellDoubts reports once what of the provider's word was not believed.
func (r *Reconciler) tellDoubts(local *corev1.Pod, doubts []reflection.Refused) {
	if len(doubts) == 0 {
		return
	}
	parts := make([]string, len(doubts))
	for i := range doubts {
		parts[i] = doubts[i].Field + ": " + doubts[i].Message
	}
	text := strings.Join(parts, "; ")
	r.mu.Lock()
	_, told := r.memory.doubted[local.UID]
	r.memory.doubted[local.UID] = text
	r.mu.Unlock()
	for i := range local.Status.Conditions {
		told = told || local.Status.Conditions[i].Type == offloadingv1beta1.InvalidRemoteStatusCondition
	}
	if !told && r.options.Recorder != nil {
		r.options.Recorder.Event(local, corev1.EventTypeWarning, offloadingv1beta1.ReasonInvalidRemoteStatus, text)
	}
}

// patchStatus writes the difference, if there is one, to this version of this very pod.
func (r *Reconciler) patchStatus(ctx context.Context, local *corev1.Pod, wanted *corev1.PodStatus, knows uint64) error {
	if !r.notePatch(local, !apiequality.Semantic.DeepEqual(&local.Status, wanted), knows) {
		return nil // the answer to the last write is an event
	}
	written, err := r.writeStatus(ctx, local, wanted)
	if written {
		r.tellOutage(local, wanted)
		return nil
	}
	r.mu.Lock()
	delete(r.memory.patched, local.UID)
	r.mu.Unlock()
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // what happened to the pod is an event
	}
	return fmt.Errorf("updating the status of pod %s/%s: %w", local.Namespace, local.Name, err)
}

// writeStatus tells whether the write made a new version of the pod, which is an event: an API server that drops what it does
// not know answers with the same version.
func (r *Reconciler) writeStatus(ctx context.Context, local *corev1.Pod, wanted *corev1.PodStatus) (bool, error) {
	patch, err := statusPatch(local, wanted)
	if err != nil {
		return false, err
	}
	written, err := r.options.Local.CoreV1().Pods(local.Namespace).Patch(ctx, local.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil {
		return false, err
	}
	return written.ResourceVersion == "" || written.ResourceVersion != local.ResourceVersion, nil
}

// notePatch tells whether there is something to write to this version of the pod, and nothing was yet, and notes that it is. It is
// noted before the call: the event that clears it may come before the answer. If the pod went before, the call fails.
func (r *Reconciler) notePatch(local *corev1.Pod, differs bool, knows uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if version, noted := r.memory.patched[local.UID]; noted && version == local.ResourceVersion {
		return false
	}
	if !differs {
		delete(r.memory.patched, local.UID)
		r.memory.shown[local.UID] = knows
		return false
	}
	r.memory.patched[local.UID] = local.ResourceVersion
	return true
}

// statusPatch is the strategic merge patch between two statuses. UID and resource version make it fail on any other pod or
// version than the one that it was computed from.
func statusPatch(local *corev1.Pod, wanted *corev1.PodStatus) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: local.Status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	after, err := json.Marshal(corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: local.UID, ResourceVersion: local.ResourceVersion}, Status: *wanted,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Pod{})
	if err != nil {
		return nil, fmt.Errorf("comparing the status: %w", err)
	}
	return patch, nil
}

func ptrTo[T any](v T) *T { return &v }
