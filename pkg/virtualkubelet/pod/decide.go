package pod

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/addressing"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// decision decides what a pod shows, given all that is known of it at one moment. It gathers nothing, and remembers nothing.
type decision struct {
	options *Options
	local   *corev1.Pod
	view
	now time.Time
	// started says that a container of the pod ever ran.
	started bool
}

func decide(o *Options, local *corev1.Pod, v view) decision {
	return decision{options: o, local: local, view: v, now: o.Clock.Now(), started: reflection.Started(local)}
}

// theirs are the ShadowPod and the remote pod that stand for this very pod, nil if they are not there.
func (d decision) theirs() (shadow *offloadingv1beta1.ShadowPod, remote *corev1.Pod) {
	if d.shadow != nil && standsFor(d.shadow, d.local) {
		shadow = d.shadow
	}
	if d.remote != nil && standsFor(d.remote, d.local) {
		remote = d.remote
	}
	return shadow, remote
}

// status is what the pod is to show, and what of the provider's word was not believed; nil means that what it shows stays.
func (d decision) status() (*corev1.PodStatus, []reflection.Refused) {
	in := reflection.StatusInput{NodeIP: d.options.NodeIP, PodPrefixes: d.settings.PodPrefixes, OwnPrefixes: d.settings.OwnPrefixes,
		Reserved: addressing.Reserved, Addresses: d.settings.Addresses, HideAddresses: d.options.HideAddresses,
		NetworkDown: d.settings.NetworkDown, NetworkWatched: d.settings.NetworkWatched, Now: d.now}
	switch {
	case d.offload == notOffloaded:
		return ptr.To(d.home()), nil
	case d.revoked && !d.ending():
		return ptr.To(d.withoutRights()), nil
	case d.offload == pending && !d.started:
		return ptr.To(reflection.WaitingStatus(d.local, offloadingv1beta1.ReasonOffloadingBackOff, fmt.Sprintf(
			"waiting for cluster %q to accept namespace %q", d.options.Remote, d.local.Namespace), d.now)), nil
	case d.offload == pending && d.leaving:
		return ptr.To(reflection.MissingStatus(d.local, fmt.Sprintf("cluster %q is removing the namespace that the pod runs in", d.options.Remote), d.now)), nil
	case d.lost && d.offload == offloaded && d.started:
		return ptr.To(reflection.UnreachableStatus(d.local, offloadingv1beta1.ReasonRemoteUnavailable,
			fmt.Sprintf("cluster %q does not answer", d.options.Remote), d.now)), nil
	case !d.ready:
		return d.unfollowed(), nil
	case d.terminating() != nil:
		// What is shown of a size or of changes that were refused stays.
		in.SizeUnknown = true
		status, doubts := reflection.LocalStatus(d.local, d.terminating(), in)
		return &status, doubts
	case d.shadow == nil || !standsFor(d.shadow, d.local):
		return d.withoutShadow(), nil
	default:
		return d.withShadow(in)
	}
}

// home is what a pod shows whose namespace is not offloaded to the provider.
func (d decision) home() corev1.PodStatus {
	if d.started {
		return reflection.AbortedStatus(d.local, fmt.Sprintf("namespace %q is no longer offloaded to cluster %q", d.local.Namespace, d.options.Remote), d.now)
	}
	return reflection.WaitingStatus(d.local, offloadingv1beta1.ReasonOffloadingBackOff, reflection.NotOffloadedMessage(d.local, d.options.Remote), d.now)
}

// ending tells whether it is known that the remote pod finished, and how: that is news whatever our rights.
func (d decision) ending() bool {
	shadow, remote := d.theirs()
	return shadow != nil && reflection.Terminal(shadow.Status.Phase) || remote != nil && reflection.Finished(&d.local.Spec, remote)
}

// withoutRights is what a pod shows whose provider took our rights back. It failed if its remote pod was seen to go, because no other
// can be made. Otherwise nothing is known of it: it may well run on.
func (d decision) withoutRights() corev1.PodStatus {
	const reason = offloadingv1beta1.ReasonRightsRevoked
	gone := d.gone && d.shadow == nil && (d.ready || d.leaving)
	switch {
	case d.started && gone:
		return reflection.EndedStatus(d.local, reason, fmt.Sprintf(
			"cluster %q took our rights back and removed the pod", d.options.Remote), d.now)
	case d.started:
		return reflection.UnreachableStatus(d.local, reason, fmt.Sprintf(
			"cluster %q took our rights back; whether the pod still runs there is not known", d.options.Remote), d.now)
	default:
		return reflection.WaitingStatus(d.local, reason, fmt.Sprintf(
			"cluster %q took our rights back: the pod cannot be made there", d.options.Remote), d.now)
	}
}

// withoutShadow is the status of a pod whose ShadowPod is not there. If the provider refuses to have it, one that ran is not ready any
// more. That of an earlier pod goes first, which is said if it is kept.
func (d decision) withoutShadow() *corev1.PodStatus {
	switch {
	case d.refused == (refusal{}), d.shadow != nil && d.refused.reason != offloadingv1beta1.ReasonManyAtOnce:
		return nil
	case d.refused.rejects:
		return ptr.To(reflection.RejectedStatus(d.local, d.refused.reason, d.refused.message))
	case !d.started:
		return ptr.To(reflection.WaitingStatus(d.local, d.refused.reason, d.refused.message, d.now))
	case d.remote == nil:
		return ptr.To(reflection.MissingStatus(d.local, d.refused.message, d.now))
	default:
		return nil
	}
}

// withShadow is what a pod shows that has its ShadowPod.
func (d decision) withShadow(in reflection.StatusInput) (*corev1.PodStatus, []reflection.Refused) {
	_, remote := d.theirs()
	in.NoAPIServer = reflection.LacksAPIServer(d.local, d.shadow)
	// The provider records what its pod shows: if we see that pod run, our view of it is behind, and how it ended is an event.
	behind := remote != nil && !reflection.Terminal(remote.Status.Phase)
	switch {
	case reflection.Terminal(d.shadow.Status.Phase) && !behind:
		status, doubts := reflection.FinishedStatus(d.local, remote, &d.shadow.Status, in)
		return &status, doubts
	case remote != nil:
		d.refusals(&in)
		status, doubts := reflection.LocalStatus(d.local, remote, in)
		return &status, doubts
	default:
		return d.withoutRemote(), nil
	}
}

// withoutRemote is the status of a pod whose ShadowPod is there, but has no pod: the provider says why.
func (d decision) withoutRemote() *corev1.PodStatus {
	reason, message := offloadingv1beta1.ReasonRemotePodMissing, "waiting for the provider to make the pod again"
	known := false
	for i := range d.shadow.Status.Conditions {
		if c := &d.shadow.Status.Conditions[i]; c.Type == string(corev1.PodReady) && c.Status == metav1.ConditionFalse {
			reason, message, known = c.Reason, fmt.Sprintf("cluster %q: %s", d.options.Remote, c.Message), true
		}
	}
	switch {
	case d.started:
		return ptr.To(reflection.MissingStatus(d.local, message, d.now))
	case known:
		return ptr.To(reflection.WaitingStatus(d.local, reason, message, d.now))
	default:
		return nil
	}
}

// unfollowed is the status of a pod of whose ShadowPod nothing is known: it stays, unless the pod waits because the provider, which was
// never asked for it, does not answer, or shows more in the twin than is followed.
func (d decision) unfollowed() *corev1.PodStatus {
	if d.lost && d.offload == offloaded && d.unasked {
		return ptr.To(reflection.WaitingStatus(d.local, offloadingv1beta1.ReasonRemoteUnavailable, fmt.Sprintf(
			"cluster %q does not answer: the pod cannot be made there", d.options.Remote), d.now))
	}
	if !d.over || d.started {
		return nil
	}
	return ptr.To(reflection.WaitingStatus(d.local, offloadingv1beta1.ReasonRemoteOverLimit, fmt.Sprintf(
		"cluster %q shows more pods in namespace %q than are followed (%d in a namespace, %d MiB of all together): have those removed there that are not yours",
		d.options.Remote, d.namespace, d.options.MaxRemotePods, d.options.Budget.Limit()>>20), d.now))
}

// refusals gathers which changes of a pod that runs are refused. First comes what we were answered when we asked for them; of what the
// provider took then, its controller says in the ShadowPod what it refused nevertheless. Until we asked, which a restart begins with,
// what the pod shows stays.
func (d decision) refusals(in *reflection.StatusInput) {
	in.ResizePending, in.SizeUnknown = d.resize.pending(), !d.sized
	if in.ResizePending == nil && (d.sized || !showsAny(d.local, corev1.PodResizePending)) {
		in.ResizePending = reflection.ResizePendingOf(d.shadow, d.options.Remote)
	}
	in.ChangeRefused, in.ChangesTaken = d.refused.condition(), d.taken
	if in.ChangeRefused == nil && (d.taken || !showsAny(d.local, offloadingv1beta1.ChangeRefusedCondition)) {
		in.ChangeRefused = reflection.ChangeRefusedOf(d.shadow, d.options.Remote)
	}
}

// terminating returns the remote pod of a local pod that is being deleted, as it is or as it was seen last; nil if there is none, or if
// its ShadowPod is there still, which knows more. The ShadowPod goes first.
func (d decision) terminating() *corev1.Pod {
	if d.local.DeletionTimestamp == nil || d.shadow != nil {
		return nil
	}
	for _, remote := range []*corev1.Pod{d.remote, d.last.Unpack()} {
		if remote != nil && standsFor(remote, d.local) {
			return remote
		}
	}
	return nil
}

// ofInterest tells whether a status of a terminating pod is shown: only its end is of interest, and how it gets there.
func (d decision) ofInterest(wanted *corev1.PodStatus) bool {
	return reflection.Terminal(wanted.Phase) || d.started && (d.remote != nil || d.lost)
}

// observedGeneration is the generation of the pod that is to be shown as observed in a status.
func (d decision) observedGeneration(wanted *corev1.PodStatus) int64 {
	shadow, remote := d.theirs()
	refused := d.resize.resize && d.resize.generation == d.local.Generation
	return reflection.ObservedGeneration(d.local, shadow, remote, refused || reflection.Terminal(wanted.Phase))
}
