package fabric

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"liqo.io/liqo/pkg/controller/networking/podaddress"
)

// strays are the pods of a node that are not found by its ranges, as few prefixes that hold nothing else.
func (r *nodes) strays(ctx context.Context, node *corev1.Node) ([]netip.Prefix, error) {
	pods := &corev1.PodList{}
	if err := r.pods.List(ctx, pods, client.MatchingFields{podaddress.ByNode: node.Name}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the Pods of Node %s: %w", node.Name, err)
	}
	own := prefixes(node)
	var found []netip.Addr
	for i := range pods.Items {
		for _, address := range podaddress.Of(&pods.Items[i]) {
			if !r.isStray(own, address) {
				continue
			}
			_, claims, err := r.claims(ctx, address)
			if err != nil {
				return nil, err
			}
			if holds(&pods.Items[i], claims) {
				found = append(found, address)
			}
		}
	}
	if len(found) < 2 {
		return merge(found, nil), nil
	}
	all := &corev1.NodeList{}
	if err := r.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing Nodes: %w", err)
	}
	taken := map[netip.Prefix]bool{}
	for i := range all.Items {
		for _, prefix := range prefixes(&all.Items[i]) {
			taken[prefix] = true
		}
	}
	return merge(found, taken), nil
}

// isStray tells whether gateways would not find an address by the ranges of its node. What is in no range of the cluster no peer can name.
func (r *nodes) isStray(own []netip.Prefix, address netip.Addr) bool {
	within := func(p netip.Prefix) bool { return p.Contains(address) }
	return !slices.ContainsFunc(own, within) && slices.ContainsFunc(r.cluster, within)
}

// claims are the pods on physical nodes that say an address is theirs, and those of them that may have it. One in whose own Node's ranges it is
// comes before all others: whoever has a kubelet's rights says what he likes of his own pods, and would draw the packets of another node's.
func (r *nodes) claims(ctx context.Context, address netip.Addr) (all, able []corev1.Pod, err error) {
	pods := &corev1.PodList{}
	if err := r.pods.List(ctx, pods, client.MatchingFields{podaddress.ByAddress: address.String()}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, nil, fmt.Errorf("listing the Pods with the address %s: %w", address, err)
	}
	for i := range pods.Items {
		node, err := r.machine(ctx, pods.Items[i].Spec.NodeName)
		if err != nil {
			return nil, nil, err
		}
		if node == nil {
			continue
		}
		all = append(all, pods.Items[i])
		if slices.ContainsFunc(prefixes(node), func(p netip.Prefix) bool { return p.Contains(address) }) {
			able = append(able, pods.Items[i])
		}
	}
	if len(able) == 0 {
		able = all
	}
	return all, able, nil
}

// machine reads a Node; nil if there is none, or it is no machine of this cluster.
func (r *nodes) machine(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := r.client.Get(ctx, client.ObjectKey{Name: name}, node); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("reading Node %s: %w", name, err)
	}
	if node.Name == "" || !isPhysical(node.Labels) {
		return nil, nil
	}
	return node, nil
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// podEvents looks at the nodes that a pod's coming or going says something about: none if the pod is found by the ranges of its node.
func (r *nodes) podEvents() handler.TypedEventHandler[*corev1.Pod, ctrl.Request] {
	look := func(ctx context.Context, q queue, states ...*corev1.Pod) {
		for _, pod := range states {
			for _, name := range r.concerned(ctx, pod) {
				q.Add(ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
			}
		}
	}
	return handler.TypedFuncs[*corev1.Pod, ctrl.Request]{
		CreateFunc: func(ctx context.Context, e event.TypedCreateEvent[*corev1.Pod], q queue) { look(ctx, q, e.Object) },
		DeleteFunc: func(ctx context.Context, e event.TypedDeleteEvent[*corev1.Pod], q queue) { look(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.TypedUpdateEvent[*corev1.Pod], q queue) {
			if !samePlace(e.ObjectOld, e.ObjectNew) {
				look(ctx, q, e.ObjectOld, e.ObjectNew)
			}
		},
	}
}

// concerned are the nodes that have, or may have, to name an address of a pod.
func (r *nodes) concerned(ctx context.Context, pod *corev1.Pod) (names []string) {
	for _, address := range podaddress.Of(pod) {
		claims, _, err := r.claims(ctx, address)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Finding the nodes of an address", "address", address.String())
			continue
		}
		for _, claim := range append(claims, *pod) {
			node, err := r.machine(ctx, claim.Spec.NodeName)
			if err != nil {
				ctrl.LoggerFrom(ctx).Error(err, "Finding the node of a pod")
				continue
			}
			if node != nil && r.isStray(prefixes(node), address) {
				names = append(names, node.Name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
