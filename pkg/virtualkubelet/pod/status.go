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
	"k8s.io/client-go/kubernetes"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// reconcileStatus shows on the local pod what is known of the remote one.
func (r *Reconciler) reconcileStatus(ctx context.Context, k key) error {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	held := r.Held(k)
	if held == nil {
		return nil
	}
	v, shadow, remote := r.glance(k, held.UID)
	knows := knowledge(held, shadow, remote, v)
	if !held.Leaving && nothingYet(v, shadow) || r.showsAll(held.UID, knows) {
		return nil // without decoding anything
	}
	local := held.Unpack()
	if local == nil || reflection.Terminal(local.Status.Phase) {
		return nil
	}
	v = r.see(v, shadow, remote)
	if v.offload == notOffloaded && reflection.Started(local) {
		if err := r.confirmed(ctx, k.Namespace); err != nil {
			return err
		}
	}
	d := decide(&r.options, local, v)
	wanted, doubts := d.status()
	if wanted == nil {
		return nil
	}
	if local.DeletionTimestamp != nil && !d.ofInterest(wanted) {
		return nil
	}
	if left := r.stillStarting(local, v.remote, wanted); left > 0 {
		return reconcile.Wait("RemotePodStarting", "waiting for the remote pod to start", left)
	}
	reflection.Observe(local, wanted, d.observedGeneration(wanted))
	r.mu.Lock()
	left := r.memory.tooSoon(local, wanted, r.options.Clock.Now())
	r.mu.Unlock()
	if left > 0 {
		return reconcile.Wait("StatusJustWritten", "waiting for the next write of the status", left)
	}
	r.tellDoubts(local, doubts)
	return r.patchStatus(ctx, local, wanted, knows)
}

// stillStarting is how long to wait for the remote pod to start, whatever brought the local pod up: other news of it is no
// reason to write that it is pending. Zero if it is not starting.
func (r *Reconciler) stillStarting(local, remote *corev1.Pod, wanted *corev1.PodStatus) time.Duration {
	if remote == nil || calm(remote) == 0 || wanted.Phase != corev1.PodPending || everRemote(local) {
		return 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.memory.known(local.UID).starting
	if seen.IsZero() {
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
	s := r.memory.of(local.UID)
	told := s.doubted
	s.doubted = true
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
	labels := r.options.Account != nil && r.options.Wanted.Get().Mapping.offload(local.Namespace) == offloaded // it has rights nowhere else
	written, err := writeLabelled(ctx, &r.options, local, wanted, labels)
	if written {
		r.tellOutage(local, wanted)
		return nil
	}
	r.mu.Lock()
	r.memory.known(local.UID).patched = nil
	r.memory.tidy(local.UID)
	r.mu.Unlock()
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // what happened to the pod is an event
	}
	return fmt.Errorf("updating the status of pod %s/%s: %w", local.Namespace, local.Name, err)
}

// writeLabelled writes the status, and in the same request the label of pods on virtual nodes that the API server did not give the pod as
// it was bound: before Kubernetes 1.36 none does. A node may not label its pods, so the account does it; where that may not either, the
// node writes the status alone.
func writeLabelled(ctx context.Context, o *Options, local *corev1.Pod, wanted *corev1.PodStatus, labels bool) (bool, error) {
	if labels && local.Labels[offloadingv1beta1.LocalPodLabel] != "true" {
		label := map[string]string{offloadingv1beta1.LocalPodLabel: "true"}
		if written, err := writeStatus(ctx, o.Account, local, wanted, label); !apierrors.IsForbidden(err) {
			return written, err
		}
	}
	return writeStatus(ctx, o.Local, local, wanted, nil)
}

// writeStatus tells whether the write made a new version of the pod, which is an event: an API server that drops what it does
// not know answers with the same version.
func writeStatus(ctx context.Context, client kubernetes.Interface, local *corev1.Pod, wanted *corev1.PodStatus, labels map[string]string) (bool, error) {
	patch, err := statusPatch(local, wanted, labels)
	if err != nil {
		return false, err
	}
	written, err := client.CoreV1().Pods(local.Namespace).Patch(ctx, local.Name, types.StrategicMergePatchType, patch,
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
	s := r.memory.of(local.UID)
	if s.patched != nil && *s.patched == local.ResourceVersion {
		return false
	}
	if !differs {
		s.patched, s.shown = nil, &knows
		return false
	}
	version := local.ResourceVersion // the pod itself is not to be held
	s.patched = &version
	return true
}

// statusPatch is the strategic merge patch between two statuses, which adds labels. UID and resource version make it fail on any other
// pod or version than the one that it was computed from.
func statusPatch(local *corev1.Pod, wanted *corev1.PodStatus, labels map[string]string) ([]byte, error) {
	before, err := json.Marshal(corev1.Pod{Status: local.Status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	after, err := json.Marshal(corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: local.UID, ResourceVersion: local.ResourceVersion, Labels: labels}, Status: *wanted,
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

// about is something that is told of one pod of a namespace, because it is so for all alike.
type about struct{ namespace, reason string }

// tellMade tells what a pod that was sent to the provider does without there.
func (r *Reconciler) tellMade(local *corev1.Pod) {
	r.tellOfOne(local, offloadingv1beta1.ReasonNoAPIServerAddress, offloadingv1beta1.APIServerReachableCondition,
		reflection.WhyNoAPIServer(local, r.options.API(), r.options.Remote))
	r.tellOfOne(local, offloadingv1beta1.ReasonHostNamespacesOff, offloadingv1beta1.HostNamespacesCondition,
		reflection.HostNamespacesMessage(&local.Spec))
	r.tellOfOne(local, offloadingv1beta1.ReasonPriorityNotKept, offloadingv1beta1.PriorityCondition, reflection.PriorityMessage(&local.Spec))
}

// tellOfOne tells the users of a namespace what its new pods do without, of one of them in the time that an Event lasts; each shows
// it in a condition, which costs no write of its own. Nothing is told if the message is empty.
func (r *Reconciler) tellOfOne(local *corev1.Pod, reason, condition, message string) {
	if message == "" || r.options.Recorder == nil {
		return
	}
	topic, now := about{local.Namespace, reason}, r.options.Clock.Now()
	r.mu.Lock()
	last, told := r.memory.toldOfOne[topic]
	news := !told || now.Sub(last) >= eventLife
	if news {
		r.memory.toldOfOne[topic] = now
	}
	r.mu.Unlock()
	if news {
		r.options.Recorder.Event(local, corev1.EventTypeWarning, reason,
			fmt.Sprintf("%s; this is told of one pod of the namespace in an hour, condition %s shows it on each", message, condition))
	}
}

// tellOutage tells the users of a namespace, of one of its pods, that nothing is known of them or comes to them any more, and that it is again. Pods that
// show it already were told of before, by an earlier process too. An outage whose pods all failed ends with the first other one that is
// ready. A node of the provider that is not reached is told by itself: pods on others are.
func (r *Reconciler) tellOutage(local *corev1.Pod, wanted *corev1.PodStatus) {
	if _, message := verdict(wanted); message == reflection.NodeCutOff && readiness(&local.Status).Message != message {
		r.tellOfOne(local, offloadingv1beta1.ReasonNetworkUnavailable, string(corev1.PodReady), message)
	}
	was, is := outage(&local.Status), outage(wanted)
	if r.options.Recorder == nil || was == is && (is != "" || !showsReady(wanted)) {
		return
	}
	r.mu.Lock()
	told, known := r.memory.outages[local.Namespace]
	if is == "" {
		delete(r.memory.outages, local.Namespace)
	} else {
		r.memory.outages[local.Namespace] = is
	}
	r.mu.Unlock()
	switch {
	case is != "" && told != is:
		_, message := verdict(wanted)
		r.options.Recorder.Event(local, corev1.EventTypeWarning, is, message+"; this is told of one pod of the namespace")
	case is == "" && known && !reflection.Terminal(wanted.Phase):
		over := "answers"
		if told == offloadingv1beta1.ReasonNetworkUnavailable {
			over = "is reached"
		}
		r.options.Recorder.Event(local, corev1.EventTypeNormal, offloadingv1beta1.ReasonRemotePodExists,
			fmt.Sprintf("cluster %q %s again; this is told of one pod of the namespace", r.options.Remote, over))
	}
}

// outage is why nothing is known of a pod or comes to it, by what it shows; empty if neither is so.
func outage(status *corev1.PodStatus) string {
	reason, message := verdict(status)
	switch reason {
	case offloadingv1beta1.ReasonRemoteUnavailable, offloadingv1beta1.ReasonRightsRevoked:
		return reason
	case offloadingv1beta1.ReasonNetworkUnavailable:
		if message != reflection.NodeCutOff {
			return reason
		}
	}
	return ""
}

// verdict is why a pod failed, or else why it is not ready: one that was not ready before keeps the reason of that.
func verdict(status *corev1.PodStatus) (reason, message string) {
	if status.Phase == corev1.PodFailed {
		return status.Reason, status.Message
	}
	ready := readiness(status)
	return ready.Reason, ready.Message
}

func showsReady(status *corev1.PodStatus) bool {
	return readiness(status).Status == corev1.ConditionTrue
}

// readiness is the condition of the pod's readiness; empty if there is none.
func readiness(status *corev1.PodStatus) corev1.PodCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.PodReady {
			return status.Conditions[i]
		}
	}
	return corev1.PodCondition{}
}
