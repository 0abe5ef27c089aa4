package shadowpod

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=quotas,verbs=get;list;watch

// claims are the shares of the grants that ShadowPods with a Pod hold, and Pods whose ShadowPod is gone before them. The webhooks
// count as well, but each replica for itself, so that together they may admit more than was granted. Only one process runs this
// controller: what it does not find room for gets no Pod. Nobody locks them while an API server is asked: that may take its time,
// and they are those of all tenants.
type claims struct {
	mu     sync.Mutex
	loaded bool
	ledger *capacity.Ledger
	// holders are the ShadowPods in the ledger. Whoever looked something up about one without the lock goes on only if it is still
	// the same: each claim makes another one.
	holders map[types.NamespacedName]*holder
	// waiting are the ShadowPods that found no room, by their user; woken receives those that may find some now.
	waiting map[string]map[types.NamespacedName]bool
	woken   chan event.GenericEvent
}

// holder is a ShadowPod with a claim.
type holder struct {
	uid    types.UID
	user   string
	amount corev1.ResourceList
	// accepted is what was asked for last and accepted. The Pod may have less, because the provider's admission or autoscaler took
	// it, and may be given it back at any time.
	accepted corev1.ResourceList
	// making says that a Pod is being made for it just now: that there is none does not mean that none comes.
	making bool
	// pod is the UID of the Pod that this process made for it last, empty if it does not know that; left says that it is gone.
	pod  types.UID
	left bool
}

func newClaims() *claims {
	// Nothing is reserved: what fits is entered at once.
	return &claims{ledger: capacity.NewLedger(0), holders: map[types.NamespacedName]*holder{},
		waiting: map[string]map[types.NamespacedName]bool{}, woken: make(chan event.GenericEvent, queue)}
}

// claim makes sure that a ShadowPod which is about to get a Pod (nil), or another size of the one that it has, has a share of its
// user's grant. Whoever has one keeps it as long as the ShadowPod lives, whatever becomes of the grant: a lost Pod is made again.
func (r *reconciler) claim(ctx context.Context, shadow *offloadingv1beta1.ShadowPod, pod *corev1.Pod) error {
	user := shadow.Labels[offloadingv1beta1.CreatorUserLabel]
	if !r.Enforce || user == "" {
		return nil
	}
	if err := r.loadClaims(ctx); err != nil {
		return err
	}
	if err := r.succeed(ctx, shadow); err != nil {
		return err
	}
	grant, err := r.grant(ctx, shadow, user)
	if err != nil {
		return err
	}
	refusal := r.claims.fit(shadow, pod, user, grant, r.Clock.Now())
	if refusal == nil {
		return nil
	}
	// Somebody may have gone without this controller having looked at it yet.
	left, err := r.sweep(ctx, user)
	if err != nil {
		return err
	}
	r.claims.await(client.ObjectKeyFromObject(shadow), user)
	if refusal = r.claims.fit(shadow, pod, user, grant, r.Clock.Now()); refusal == nil {
		return nil
	}
	if refusal.Reason == offloadingv1beta1.ReasonQuotaExceeded && grant != nil {
		refusal.Message += terminating(left)
	}
	return reconcile.Refuse(refusal.Reason, refusal)
}

// fit enters a ShadowPod with what it asks for, if the grant has room for what it does not hold already. Without a grant (nil) what
// is held stays and nothing comes to it. What its Pod (nil: none) still has of another size stays entered as well; see settle.
func (c *claims) fit(shadow *offloadingv1beta1.ShadowPod, pod *corev1.Pod, user string, grant *offloadingv1beta1.QuotaSpec, now time.Time) *capacity.Refusal {
	key, amount := client.ObjectKeyFromObject(shadow), capacity.PodRequests(&shadow.Spec.Pod)
	c.mu.Lock()
	defer c.mu.Unlock()
	held := c.holders[key]
	has := held != nil && held.uid == shadow.UID
	if !has {
		held = &holder{}
	}
	var refusal *capacity.Refusal
	switch {
	case grant == nil:
		if !has || !covers(held.amount, amount) {
			refusal = &capacity.Refusal{Reason: offloadingv1beta1.ReasonQuotaExceeded,
				Message: "the provider has no Quota for this pod's user: the ResourceSlice is gone"}
		}
	case has:
		refusal = c.ledger.Change(key, user, grant, &shadow.Spec.Pod, now, true)
	default:
		refusal = c.ledger.Admit(key, user, grant, &shadow.Spec.Pod, now, true)
	}
	if refusal != nil {
		return refusal
	}
	next := &holder{uid: shadow.UID, user: user, amount: capacity.Larger(held.amount, amount), accepted: amount, making: pod == nil}
	if pod != nil {
		next.pod, next.left = held.pod, held.left
		next.accepted, next.amount = held.accepted, capacity.Larger(next.amount, capacity.Taken(&shadow.Spec.Pod, pod))
	}
	c.enter(key, next)
	if c.unwait(key); pod == nil {
		c.wake(user)
	}
	return nil
}

// made says that no Pod is being made any more for a ShadowPod: what the API server shows is what there is. pod is the one that was
// made, empty if that did not succeed.
func (c *claims) made(shadow *offloadingv1beta1.ShadowPod, pod types.UID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if held := c.holders[client.ObjectKeyFromObject(shadow)]; held != nil {
		held.making = false
		if held.uid == shadow.UID {
			held.pod, held.left = pod, false
		}
	}
}

// settle brings the claim of a ShadowPod to what was asked for and accepted, or to what its Pod has, or still has, if that is more,
// when nothing is to be resized any more. accepted says that this is what the ShadowPod asks for now, and not something before it.
// A claim becomes smaller on the API server's word only: the cache may be older than the last resize.
func (r *reconciler) settle(ctx context.Context, s *scope, accepted bool) error {
	key := client.ObjectKeyFromObject(s.shadow)
	held := r.claims.at(key)
	if held == nil || held.uid != s.shadow.UID {
		return nil
	}
	next := *held
	if accepted {
		next.accepted = capacity.PodRequests(&s.shadow.Spec.Pod)
	}
	next.amount = capacity.Larger(next.accepted, capacity.Taken(&s.shadow.Spec.Pod, s.pod))
	if !covers(next.amount, held.amount) {
		pod, err := r.pod(ctx, r.Live, key)
		if err != nil {
			return err
		}
		const annotation = offloadingv1beta1.ResourcesAskedAnnotation
		if pod == nil || pod.UID != s.pod.UID || pod.Annotations[annotation] != s.pod.Annotations[annotation] {
			return nil // its event brings us back
		}
		next.amount = capacity.Larger(next.accepted, capacity.Taken(&s.shadow.Spec.Pod, pod))
	}
	r.claims.replace(key, held, &next)
	return nil
}

// covers tells whether one amount is at least another one, in each resource.
func covers(a, b corev1.ResourceList) bool {
	return equality.Semantic.DeepEqual(capacity.Larger(a, b), a)
}

// grant is what the user was granted, nil if there is no Quota. A cordon and rules about what a pod declares are for new
// ShadowPods: admission has applied them.
func (r *reconciler) grant(ctx context.Context, shadow *offloadingv1beta1.ShadowPod, user string) (*offloadingv1beta1.QuotaSpec, error) {
	namespace := corev1beta1.TenantNamespacePrefix + shadow.Labels[offloadingv1beta1.OriginLabel]
	var list offloadingv1beta1.QuotaList
	if err := r.List(ctx, &list, client.InNamespace(namespace)); err != nil {
		return nil, fmt.Errorf("listing Quotas in %s: %w", namespace, err)
	}
	var found *offloadingv1beta1.Quota
	for i := range list.Items {
		if q := &list.Items[i]; capacity.UserLabel(q.Spec.User) == user && (found == nil || q.Name < found.Name) {
			found = q
		}
	}
	if found == nil {
		return nil, nil
	}
	return &offloadingv1beta1.QuotaSpec{User: found.Spec.User, Resources: found.Spec.Resources}, nil
}

// loadClaims gives those a claim, once, that had a Pod before this process ran the controller. It reads nothing but caches.
func (r *reconciler) loadClaims(ctx context.Context) error {
	r.claims.mu.Lock()
	defer r.claims.mu.Unlock()
	if r.claims.loaded {
		return nil
	}
	var shadows offloadingv1beta1.ShadowPodList
	if err := r.List(ctx, &shadows); err != nil {
		return fmt.Errorf("listing ShadowPods: %w", err)
	}
	var pods corev1.PodList
	if err := r.List(ctx, &pods, client.MatchingLabels{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}); err != nil {
		return fmt.Errorf("listing the Pods of ShadowPods: %w", err)
	}
	running := map[types.UID]*corev1.Pod{}
	for i := range pods.Items {
		running[ownerOf(&pods.Items[i])] = &pods.Items[i]
	}
	living := map[types.UID]bool{}
	for i := range shadows.Items {
		shadow := &shadows.Items[i]
		living[shadow.UID] = true
		pod := running[shadow.UID]
		// A Pod that is just being replaced shows in the phase.
		if Terminal(shadow.Status.Phase) || pod == nil && shadow.Status.Phase == "" {
			continue
		}
		accepted := capacity.PodRequests(&shadow.Spec.Pod)
		amount := accepted
		if pod != nil && shadow.Generation > 1 {
			if pod.Annotations[offloadingv1beta1.ResourcesAskedAnnotation] != reflection.ResourcesAsked(&shadow.Spec.Pod) {
				accepted = nil // a resize was refused, or is still to be made; what was accepted before it is not known
			}
			amount = capacity.Larger(accepted, capacity.Taken(&shadow.Spec.Pod, pod))
		}
		r.claims.enter(client.ObjectKeyFromObject(shadow),
			&holder{uid: shadow.UID, user: shadow.Labels[offloadingv1beta1.CreatorUserLabel], accepted: accepted, amount: amount})
	}
	r.claims.enterLeft(pods.Items, living)
	r.claims.loaded = true
	return nil
}

// enterLeft enters the Pods whose ShadowPods are not among the living. The caller locks.
func (c *claims) enterLeft(pods []corev1.Pod, living map[types.UID]bool) {
	for i := range pods {
		pod := &pods[i]
		user := pod.Annotations[offloadingv1beta1.CreatorUserAnnotation]
		if owner := ownerOf(pod); !living[owner] && user != "" && !Terminal(pod.Status.Phase) {
			c.enter(client.ObjectKeyFromObject(pod), &holder{uid: owner, user: user, amount: capacity.Taken(&pod.Spec, pod)})
		}
	}
}

// ownerOf is the UID of what controls a Pod, empty if nothing does.
func ownerOf(pod *corev1.Pod) types.UID {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.UID
	}
	return ""
}

// at returns the claim of a name, nil if there is none.
func (c *claims) at(key types.NamespacedName) *holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.holders[key]
}

// replace puts a claim (nil: none) in the place of the one that was looked at, if that one is still there.
func (c *claims) replace(key types.NamespacedName, held, next *holder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.holders[key] != held:
	case next == nil:
		c.forget(key)
	default:
		c.enter(key, next)
	}
}

// release ends the claim of a ShadowPod.
func (c *claims) release(key types.NamespacedName) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.forget(key)
}

// enter makes a claim the one of its name. The caller locks.
func (c *claims) enter(key types.NamespacedName, h *holder) {
	c.holders[key] = h
	c.ledger.Observe(key, capacity.Entry{User: h.user, Amount: h.amount})
}

// forget takes a ShadowPod out. The caller locks.
func (c *claims) forget(key types.NamespacedName) {
	held, found := c.holders[key]
	delete(c.holders, key)
	if c.ledger.Forget(key); found {
		c.wake(held.user)
	}
}

// queue is how many ShadowPods may be woken before the controller takes notice; more try again by themselves, only later.
const queue = 1024

// await notes that a ShadowPod found no room.
func (c *claims) await(key types.NamespacedName, user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[user] == nil {
		c.waiting[user] = map[types.NamespacedName]bool{}
	}
	c.waiting[user][key] = true
}

// wake lets one ShadowPod of a user try again that found no room: somebody left some. If it finds enough now, it wakes the next
// one in turn, so that no more of them try than there were changes. The caller locks.
func (c *claims) wake(user string) {
	for key := range c.waiting[user] {
		c.unwait(key)
		next := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		select {
		case c.woken <- event.GenericEvent{Object: next}:
		default:
		}
		return
	}
}

// leaving returns the claim of a ShadowPod that is gone, nil if there is none, and lets it wait for room no longer.
func (c *claims) leaving(key types.NamespacedName) *holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwait(key)
	return c.holders[key]
}

// unwait forgets that a ShadowPod found no room. The caller locks.
func (c *claims) unwait(key types.NamespacedName) {
	for user, keys := range c.waiting {
		if delete(keys, key); len(keys) == 0 {
			delete(c.waiting, user)
		}
	}
}
