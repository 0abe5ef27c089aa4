package shadowpod

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/reflection"
)

// rangesRetry is how soon it is looked again whether addresses of the consumer can be translated.
const rangesRetry = time.Second

// translate has a Pod find its own cluster's API server where this cluster sees it. What lies in no range of the consumer is left as the
// consumer wrote it.
func (r *reconciler) translate(ctx context.Context, shadow *offloadingv1beta1.ShadowPod, spec *corev1.PodSpec) error {
	aliases := reflection.APIAliases(spec)
	if !r.Networking || len(aliases) == 0 {
		return nil
	}
	configuration, err := translation.Find(ctx, r.Client, shadow.Labels[offloadingv1beta1.OriginLabel])
	if err != nil {
		return err
	}
	peer, err := translation.Of(configuration)
	if err != nil {
		return reconcile.Wait(offloadingv1beta1.ReasonRangesPending, err.Error(), rangesRetry)
	}
	for _, alias := range aliases {
		address, err := netip.ParseAddr(alias.IP)
		if err != nil {
			continue // Kubernetes says so.
		}
		if seen, ok := peer.Translate(address); ok {
			alias.IP = seen.String()
		}
	}
	return nil
}

// loosen makes preferences of a Pod's topology spread constraints over labels that no node here has: the consumer's scheduler has spread the
// pods over its own nodes by them, and here they could be satisfied by nobody.
func loosen(ctx context.Context, reader client.Reader, spec *corev1.PodSpec) error {
	var nodes *corev1.NodeList
	for i := range spec.TopologySpreadConstraints {
		c := &spec.TopologySpreadConstraints[i]
		if c.WhenUnsatisfiable != corev1.DoNotSchedule || c.TopologyKey == corev1.LabelHostname {
			continue
		}
		if nodes == nil {
			nodes = &corev1.NodeList{}
			if err := reader.List(ctx, nodes); err != nil {
				return fmt.Errorf("listing nodes: %w", err)
			}
		}
		if !slices.ContainsFunc(nodes.Items, func(n corev1.Node) bool { return metav1.HasLabel(n.ObjectMeta, c.TopologyKey) }) {
			c.WhenUnsatisfiable, c.MinDomains = corev1.ScheduleAnyway, nil
		}
	}
	return nil
}

// In twin namespaces, bound there: pods/status patch.

// followGates tells the Pod's kubelet whether the readiness gates are met that the pod has in its own cluster: no Service here sends to one that
// is not ready there.
func followGates(ctx context.Context, c client.Client, s *scope, now time.Time) error {
	wanted := corev1.PodCondition{Type: offloadingv1beta1.ReadinessGatesCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}
	if open := ptr.Deref(s.gates, ""); open != "" {
		wanted.Status, wanted.Reason = corev1.ConditionFalse, offloadingv1beta1.ReasonReadinessGatesNotReady
		wanted.Message = conditions.Bound("the consumer's readiness gates are not met: " + open)
	}
	gated := slices.ContainsFunc(s.pod.Spec.ReadinessGates, func(g corev1.PodReadinessGate) bool { return g.ConditionType == wanted.Type })
	if !gated {
		return nil // it was made before there was one
	}
	return writeCondition(ctx, c, s.pod, wanted)
}

// followReach tells the consumer of a pod whether its packets come to the node that the pod runs on, once they did not: the pod's kubelet and
// clients here know nothing of that.
func followReach(ctx context.Context, c client.Client, s *scope, now time.Time) error {
	wanted := corev1.PodCondition{Type: offloadingv1beta1.ReachableCondition, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)}
	if s.pod.Spec.NodeName != "" {
		node := &networkingv1beta1.InternalNode{}
		if err := c.Get(ctx, client.ObjectKey{Name: s.pod.Spec.NodeName}, node); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading InternalNode %s: %w", s.pod.Spec.NodeName, err)
		}
		if slices.Contains(node.Status.Silent, s.shadow.Labels[offloadingv1beta1.OriginLabel]) {
			wanted.Status, wanted.Reason = corev1.ConditionFalse, networkingv1beta1.ReasonOverlaySilent
			wanted.Message = conditions.Bound("packets of the consumer do not come to node " + node.Name)
		}
	}
	told := slices.ContainsFunc(s.pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == wanted.Type })
	if wanted.Status == corev1.ConditionTrue && !told {
		return nil
	}
	return writeCondition(ctx, c, s.pod, wanted)
}

// writeCondition puts a condition of ours on a Pod, unless it is there.
func writeCondition(ctx context.Context, c client.Client, pod *corev1.Pod, wanted corev1.PodCondition) error {
	changed := pod.DeepCopy()
	switch at := slices.IndexFunc(changed.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == wanted.Type }); {
	case at < 0:
		changed.Status.Conditions = append(changed.Status.Conditions, wanted)
	case changed.Status.Conditions[at].Status == wanted.Status && changed.Status.Conditions[at].Message == wanted.Message:
		return nil
	default:
		if changed.Status.Conditions[at].Status == wanted.Status {
			wanted.LastTransitionTime = changed.Status.Conditions[at].LastTransitionTime
		}
		changed.Status.Conditions[at] = wanted
	}
	if err := c.Status().Patch(ctx, changed, client.StrategicMergeFrom(pod)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("writing condition %s of Pod %s/%s: %w", wanted.Type, pod.Namespace, pod.Name, err)
	}
	return nil
}

// onNode selects the pods of consumers on the node of an InternalNode.
func onNode(node client.Object) []client.ListOption {
	return []client.ListOption{client.MatchingLabels{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod},
		watch.If(func(pod *corev1.Pod) bool { return pod.Spec.NodeName == node.GetName() })}
}

// falling selects InternalNodes of which others do not hear than before. In the beginning all pods are looked at anyway.
func falling() predicate.Predicate {
	return predicate.And(watch.Later, watch.Changed(func(n *networkingv1beta1.InternalNode) any { return n.Status.Silent }))
}
