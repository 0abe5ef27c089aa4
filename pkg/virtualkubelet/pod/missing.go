package pod

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/kube/selection"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/podcache"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

// podKind is what pods are called among the kinds that are reflected.
const podKind = "pod"

// mayRemove tells whether a ShadowPod may go whose pod is not there. It may if the pod was seen to be deleted, or if it ended: nothing
// runs then. Of one that a list did not show it depends on how many others are missing.
func (r *Reconciler) mayRemove(ctx context.Context, k key, shadow *offloadingv1beta1.ShadowPod) (bool, error) {
	origin := types.UID(reflection.OriginUID(shadow))
	if reflection.Terminal(shadow.Status.Phase) || r.options.Removals == nil || r.wentAway(origin) {
		return true, nil
	}
	missing := massremoval.Copy{Kind: podKind, Namespace: k.Namespace, Name: k.Name, Origin: origin}
	return r.options.Removals.May(missing, func() (massremoval.Inventory, error) { return r.inventory(ctx) },
		func(c massremoval.Copy) { r.enqueue(key{Namespace: c.Namespace, Name: c.Name}, true) })
}

// inventory takes stock of the ShadowPods in all twins that are watched. Which pods there are this cluster is asked: a cache is told of
// a list one pod after the other.
func (r *Reconciler) inventory(ctx context.Context) (massremoval.Inventory, error) {
	there := map[types.UID]bool{}
	bound := selection.Where(podcache.NodeNameField, r.options.Node)
	page := selection.List(bound, r.options.Local.CoreV1().Pods(metav1.NamespaceAll).List)
	err := pager.New(page).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
		if pod, is := o.(*corev1.Pod); is {
			there[pod.UID] = true
		}
		return nil
	})
	if err != nil {
		return massremoval.Inventory{}, fmt.Errorf("listing the pods of node %q, because of which ShadowPods are to be deleted: %w", r.options.Node, err)
	}
	all := massremoval.Inventory{All: map[string]int{}}
	for _, t := range r.watchedTwins() {
		for _, held := range t.shadows.List() {
			shadow := shadowpods.Of(held)
			if shadow == nil || !r.owned(shadow) || shadow.DeletionTimestamp != nil || reflection.Terminal(shadow.Status.Phase) {
				continue
			}
			all.All[t.local]++
			if origin := types.UID(reflection.OriginUID(shadow)); !there[origin] && !r.wentAway(origin) {
				all.Missing = append(all.Missing, massremoval.Copy{Kind: podKind, Namespace: t.local, Name: shadow.Name, Origin: origin})
			}
		}
	}
	return all, nil
}

// watchedTwins are those whose ShadowPods are known.
func (r *Reconciler) watchedTwins() []*twin {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.link == nil {
		return nil
	}
	var twins []*twin
	for _, t := range r.link.twins {
		if t.synced() {
			twins = append(twins, t)
		}
	}
	return twins
}

// goneFor takes note of a pod that was seen to be deleted, as long as it has a ShadowPod or may have one. What a list does not show any
// more nobody saw go.
func (r *Reconciler) goneFor(object any, pod *corev1.Pod) {
	if _, missed := object.(cache.DeletedFinalStateUnknown); missed {
		return
	}
	for _, t := range r.watchedTwins() {
		if t.local != pod.Namespace {
			continue
		}
		if shadow := t.shadow(pod.Name); shadow == nil || !standsFor(shadow, pod) {
			return
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory.went[pod.UID] = keyOf(pod)
}

func (r *Reconciler) wentAway(origin types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, went := r.memory.went[origin]
	return went
}

// forgetWent takes note that a pod that was seen to be deleted has no ShadowPod any more.
func (r *Reconciler) forgetWent(origin types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memory.went, origin)
}

// forgetGone forgets pods that were seen to be deleted and have no ShadowPod in a twin that is known by now.
func (r *Reconciler) forgetGone(t *twin) {
	there := map[types.UID]bool{}
	for _, held := range t.shadows.List() {
		if shadow := shadowpods.Of(held); shadow != nil {
			there[types.UID(reflection.OriginUID(shadow))] = true
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	maps.DeleteFunc(r.memory.went, func(origin types.UID, k key) bool { return k.Namespace == t.local && !there[origin] })
}
