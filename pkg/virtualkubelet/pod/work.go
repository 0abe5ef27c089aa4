package pod

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/podcache"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

// reconcileWork brings the ShadowPod in step with the local pod, and removes the local pod at the end of its life.
func (r *Reconciler) reconcileWork(ctx context.Context, k key) error {
	ctx, cancel := context.WithTimeout(ctx, 2*localTimeout)
	defer cancel()
	defer r.options.Placed(k)
	local := r.local(k)
	if local == nil {
		return r.orphan(ctx, k, r.look(k, ""))
	}
	v := r.look(k, local.UID)
	if v.shadow != nil && standsFor(v.shadow, local) {
		r.options.Removals.Settle(podKind, k.Namespace, k.Name)
	}
	switch {
	case local.DeletionTimestamp != nil:
		return r.remove(ctx, local, v)
	case v.lost, v.revoked, v.offload == pending, v.offload == notOffloaded:
		return r.memory.unasked.write(ctx, local) // an event tells when that changes
	case !v.ready:
		return nil // it will be soon, which is an event
	case v.shadow != nil && !standsFor(v.shadow, local):
		return r.abandon(ctx, local, k, v)
	case reflection.Terminal(local.Status.Phase):
		return r.stopAborted(ctx, local, v)
	case v.shadow != nil:
		return r.update(ctx, local, v)
	default:
		return r.create(ctx, k, local, v)
	}
}

// orphan removes a ShadowPod whose local pod is gone.
func (r *Reconciler) orphan(ctx context.Context, k key, v view) error {
	if v.ready && v.shadow == nil {
		r.options.Removals.Settle(podKind, k.Namespace, k.Name)
	}
	if !v.ready || v.shadow == nil {
		return r.hastenForced(ctx, k, v)
	}
	return r.abandon(ctx, nil, k, v)
}

// abandon removes a ShadowPod that stands for no local pod, or for another one than the cache shows, after the local API server
// confirmed that the pod is gone: a cache that was filled from a replica that lags shows the past. A pod of the same name that waits for
// a removal that is held, if there is one, says so.
func (r *Reconciler) abandon(ctx context.Context, waits *corev1.Pod, k key, v view) error {
	if v.shadow.DeletionTimestamp != nil {
		return nil
	}
	if exists, err := r.exists(ctx, k, v.shadow); err != nil {
		return err
	} else if exists {
		return reconcile.Wait("LocalCacheBehind", "waiting for the local cache to show the pod", time.Second)
	}
	may, err := r.mayRemove(ctx, k, v.shadow)
	if err != nil {
		return err
	}
	if may {
		// Its pod was removed by force, which asks for no grace at all.
		return r.endShadow(ctx, v, leastGrace, -1)
	}
	if waits != nil {
		r.show(waits, refusal{reason: offloadingv1beta1.ReasonManyAtOnce, message: fmt.Sprintf(
			"waiting for an earlier pod of that name, which still runs in cluster %q: its removal is held back with many others, "+
				"see %s in the summary of the VirtualNode",
			r.options.Remote, offloadingv1beta1.RemovalsHeldCondition)})
	}
	return nil // its confirmation is an event
}

// exists asks this cluster whether the pod that a remote object stands for is still there.
func (r *Reconciler) exists(ctx context.Context, k key, remote metav1.Object) (bool, error) {
	// A node may not read a pod that is not bound to it, but it may list those that are, by name: an empty list is the proof.
	list, err := r.options.Local.CoreV1().Pods(k.Namespace).List(ctx, metav1.ListOptions{FieldSelector: fields.AndSelectors(
		fields.OneTermEqualSelector(podcache.NodeNameField, r.options.Node),
		fields.OneTermEqualSelector(metav1.ObjectNameField, k.Name)).String()})
	if err != nil {
		return false, fmt.Errorf("asking whether pod %s still exists: %w", k, err)
	}
	for i := range list.Items {
		if list.Items[i].Name == k.Name && standsFor(remote, &list.Items[i]) {
			return true, nil
		}
	}
	return false, nil
}

// stopAborted removes the ShadowPod of a local pod that was ended here while the remote one did not end.
func (r *Reconciler) stopAborted(ctx context.Context, local *corev1.Pod, v view) error {
	if v.shadow == nil || reflection.Terminal(v.shadow.Status.Phase) {
		return nil
	}
	if v.remote != nil && standsFor(v.remote, local) && reflection.Finished(&local.Spec, v.remote) {
		return nil
	}
	return r.deleteShadow(ctx, v)
}

// update changes what may change of a running pod.
func (r *Reconciler) update(ctx context.Context, local *corev1.Pod, v view) error {
	if v.shadow.DeletionTimestamp != nil {
		return nil
	}
	in := r.input(v)
	in.Runs = true
	wanted, refused := reflection.ShadowPod(local, in)
	parts := partsOf(v.shadow, wanted)
	sum, err := digest(wanted)
	if err != nil {
		return err
	}
	r.settle(local.UID, sum, len(parts) == 0)
	if len(parts) == 0 && refused == nil {
		r.accept(local)
	}
	if len(parts) == 0 || !parts[len(parts)-1].resize {
		r.acceptSize(local)
	}
	if len(parts) > 0 {
		if _, err := r.writable(local, sum, parts); err != nil {
			return err
		}
		if err := r.bring(ctx, local, v, wanted, sum); err != nil {
			return err
		}
	}
	if refused != nil {
		r.refuse(local, refusal{reason: refused.Reason, message: refused.Message + "; the pod runs on as it was made"})
	}
	return nil
}

// bring changes the ShadowPod, as far as the provider lets it, into the wanted one.
func (r *Reconciler) bring(ctx context.Context, local *corev1.Pod, v view, wanted *offloadingv1beta1.ShadowPod, sum uint64) error {
	// It is read first: of its specification the cache holds a part.
	live, err := shadowpods.Get(ctx, v.clients, v.shadow.Namespace, v.shadow.Name)
	if apierrors.IsNotFound(err) || err == nil && live.UID != v.shadow.UID {
		return nil // its end is an event
	}
	if err != nil {
		return err
	}
	parts, err := r.writable(local, sum, partsOf(live, wanted))
	if err != nil {
		return err
	}
	return r.change(local, parts, func(p part) error { return r.write(ctx, local, v, live, sum, p) })
}

// change makes the first of the changes that the provider does not refuse; what the cache does not show yet is an event, and
// then it is the turn of the next one. A refused one is tried again later, and holds up none of the others.
func (r *Reconciler) change(local *corev1.Pod, parts []part, write func(part) error) error {
	var refusal error
	for _, part := range parts {
		err := write(part)
		if err == nil {
			if part.resize {
				r.acceptSize(local)
			}
			return refusal
		}
		if class := reconcile.Classify(err); class != reconcile.Refused && class != reconcile.Terminal {
			return err
		}
		why := refusalOf(err, r.options.Remote)
		if part.resize {
			why.resize, why.generation = true, local.Generation
		}
		if refusal == nil || part.resize {
			// The pod runs on as it is. Whoever changed it wants to know why nothing came of that.
			r.refuse(local, why)
		}
		if refusal == nil {
			// What the provider finds wrong today it may accept tomorrow.
			refusal = reconcile.Refuse(offloadingv1beta1.ReasonPodRefused, err)
		}
	}
	return refusal
}

// part is what changes of a running pod by one request, because the provider may refuse it and take the rest.
type part struct {
	// name tells it from the others.
	name    string
	changes []reflection.Change
	resize  bool
}

// partsOf lists what has to change of the ShadowPod; its size comes last.
func partsOf(live, wanted *offloadingv1beta1.ShadowPod) []part {
	var all []part
	if changes := reflection.ShadowPodChanges(live, wanted); len(changes) > 0 {
		all = append(all, part{name: "fields", changes: changes})
	}
	if changes := reflection.ShadowPodTolerations(live, wanted); len(changes) > 0 {
		all = append(all, part{name: "tolerations", changes: changes})
	}
	for _, change := range reflection.ShadowPodDebuggers(live, wanted) {
		name := "debugger"
		if list, ok := change.Value.([]corev1.EphemeralContainer); ok && len(list) > 0 {
			name += " " + list[len(list)-1].Name
		}
		all = append(all, part{name: name, changes: []reflection.Change{change}})
	}
	if changes := reflection.ShadowPodResize(live, wanted); len(changes) > 0 {
		all = append(all, part{name: "size", changes: changes, resize: true})
	}
	return all
}

func (r *Reconciler) input(v view) reflection.PodInput {
	return reflection.PodInput{
		Home: r.options.Home, Remote: r.options.Remote, Node: r.options.Node, NodeIP: r.options.NodeIP, Namespace: v.namespace,
		Patch: v.settings.Patch, NotReflected: v.settings.NotReflected, API: r.options.API(),
	}
}

// create makes the ShadowPod, unless something of an earlier pod of that name is still there.
func (r *Reconciler) create(ctx context.Context, k key, local *corev1.Pod, v view) error {
	if v.made != nil {
		return reconcile.Wait("CreationPending", "waiting for the new ShadowPod to show up", creationSeen/4)
	}
	if v.remote != nil && !standsFor(v.remote, local) {
		r.show(local, refusal{reason: offloadingv1beta1.ReasonEarlierPod, message: fmt.Sprintf(
			"waiting for an earlier pod of that name, which was removed here, to end in cluster %q", r.options.Remote)})
		return nil // its end is an event
	}
	if reason, message := reflection.WhyRejected(local, r.options.Host()); reason != "" && !reflection.Started(local) {
		r.refuse(local, refusal{reason: reason, message: message, rejects: true})
		return nil
	}
	in := r.input(v)
	if ready, err := r.claims(ctx, local, &in); !ready {
		return err
	}
	wanted, refused := reflection.ShadowPod(local, in)
	if refused != nil {
		r.refuse(local, refusal{reason: refused.Reason, message: reflection.NeverOffloadedMessage(local, refused.Message)})
		return nil // until the pod changes
	}
	uid, err := r.memory.unasked.ask(ctx, local, func() (types.UID, error) { return shadowpods.Create(ctx, v.clients, wanted) })
	switch {
	case err == nil:
		r.accept(local)
		r.expect(local, uid)
		r.tellMade(local)
		return nil
	case apierrors.IsAlreadyExists(err):
		return r.adopt(ctx, local, v)
	case apierrors.IsNotFound(err):
		return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, "waiting for the provider to make the namespace", 10*time.Second)
	}
	if class := reconcile.Classify(err); class == reconcile.Refused || class == reconcile.Terminal {
		if again := room(ctx, r, err); again != nil {
			return again
		}
		r.refuse(local, r.whyRefused(local, err))
		// What the provider finds wrong today it may accept tomorrow: its rules change without us being told.
		return reconcile.Refuse(offloadingv1beta1.ReasonPodRefused, err)
	}
	if r.work.NumRequeues(k) >= patience {
		r.refuse(local, refusalOf(err, r.options.Remote))
	}
	return err
}

// adopt finds out what stands in the way of a creation: our own earlier attempt, a remnant, or somebody else's object.
func (r *Reconciler) adopt(ctx context.Context, local *corev1.Pod, v view) error {
	shadow, err := shadowpods.Get(ctx, v.clients, v.namespace, local.Name)
	switch {
	case apierrors.IsNotFound(err):
		return err // it has just gone: try again
	case err != nil:
		return err
	case !r.owned(shadow) && r.siblings(shadow) && !standsFor(shadow, local):
		return r.awaitSibling(local, shadow)
	case !r.owned(shadow):
		taken := reconcile.NotOursAt(r.options.Remote, offloadingv1beta1.ReasonNameConflict, "ShadowPod",
			types.NamespacedName{Namespace: v.namespace, Name: local.Name})
		r.refuse(local, refusal{reason: offloadingv1beta1.ReasonNameConflict, message: taken.Error()})
		return taken
	case standsFor(shadow, local):
		r.accept(local)
		r.expect(local, shadow.UID)
		return nil
	default:
		v.shadow = shadow
		if err := r.abandon(ctx, local, keyOf(local), v); err != nil {
			return err
		}
		return reconcile.Wait(offloadingv1beta1.ReasonEarlierPod, "waiting for the earlier pod of that name to go", time.Second)
	}
}

// expect keeps the pod from being made again before the cache shows it.
func (r *Reconciler) expect(local *corev1.Pod, c types.UID) {
	k := keyOf(local)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link != nil {
		if t := r.link.twins[k.Namespace]; t != nil {
			if shadow := t.shadow(k.Name); shadow != nil && shadow.UID == c {
				return
			}
		}
	}
	r.memory.of(local.UID).made = &creation{shadow: c, until: r.options.Clock.Now().Add(creationSeen)}
}

// deleteLocal removes the local pod for good, as a kubelet does when its containers are gone.
func (r *Reconciler) deleteLocal(ctx context.Context, local *corev1.Pod) error {
	if shown, err := r.end(ctx, local); !shown {
		return err
	}
	if ptr.Deref(local.DeletionGracePeriodSeconds, 1) == 0 && len(local.Finalizers) > 0 {
		return nil // done already; somebody else's finalizer holds it
	}
	now := r.options.Clock.Now()
	r.mu.Lock()
	s := r.memory.of(local.UID)
	before := s.ended
	if before != nil && before.version == local.ResourceVersion {
		r.mu.Unlock()
		return nil // done already; its end is an event
	}
	// The API server first shortens the grace period, which is an event, and then removes the pod, which is the next one.
	if before != nil && ptr.Deref(local.DeletionGracePeriodSeconds, 1) == 0 {
		if left := before.at.Add(removalSeen).Sub(now); left > 0 {
			r.mu.Unlock()
			return reconcile.Wait("Removed", "waiting for the API server to remove the pod", left)
		}
	}
	// Noted before the call: the event that clears it may come before the answer.
	s.ended = &removal{version: local.ResourceVersion, at: now}
	r.mu.Unlock()
	err := r.options.Local.CoreV1().Pods(local.Namespace).Delete(ctx, local.Name, metav1.DeleteOptions{
		GracePeriodSeconds: ptr.To[int64](0), Preconditions: &metav1.Preconditions{UID: &local.UID},
	})
	if err == nil {
		return nil
	}
	// If the pod is gone, the event that clears the note may have come before the note.
	r.mu.Lock()
	s.ended = nil
	r.memory.tidy(local.UID)
	r.mu.Unlock()
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("removing pod %s/%s: %w", local.Namespace, local.Name, err)
}
