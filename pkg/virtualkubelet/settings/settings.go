package settings

import (
	"context"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
	"liqo.io/liqo/pkg/virtualkubelet/storage"
)

// Settings are what is in force.
type Settings struct {
	// Node is the VirtualNode; nil before it was read.
	Node *offloadingv1beta1.VirtualNode
	// NotReflected stays at home of every object.
	NotReflected reflection.NotReflected
	// Kinds are the configurations of what is reflected, by the names by which users configure it.
	Kinds map[string]offloadingv1beta1.ReflectorConfig
}

// Workers is how many objects of a kind are handled at a time.
func (s Settings) Workers(kind string) int { return int(s.Kinds[kind].NumWorkers) }

// OfPods is what the VirtualNode says about its pods; own are the ranges of this cluster's.
func (s Settings) OfPods(ctx context.Context, own []netip.Prefix) pod.Settings {
	of := pod.Settings{Patch: s.Node.Spec.OffloadingPatch.DeepCopy(), NotReflected: s.NotReflected, OwnPrefixes: own}
	for raw := range strings.SplitSeq(s.Node.Annotations[offloadingv1beta1.RemotePodCIDRsAnnotation], ",") {
		if raw = strings.TrimSpace(raw); raw == "" || raw == offloadingv1beta1.NoPodCIDRs {
			continue
		}
		prefix, err := netip.ParsePrefix(raw)
		if err != nil {
			klog.FromContext(ctx).Info("A range of the provider's pods is not a prefix and is ignored", "range", raw)
			continue
		}
		of.PodPrefixes = append(of.PodPrefixes, prefix.Masked())
	}
	return of
}

// OfClaims is which claims are to have volumes, and how.
func (v View) OfClaims() storage.Wanted {
	wanted := storage.Wanted{Mapping: v.Mapping.Effective, Workers: v.Workers(Claims)}
	if v.Node == nil {
		return wanted
	}
	waiting := strings.FieldsFunc(v.Node.Annotations[offloadingv1beta1.WaitingVolumesAnnotation], func(c rune) bool { return c == ',' })
	wanted.Settings = storage.Settings{Offered: v.Node.Spec.StorageClasses, NotReflected: v.NotReflected, Waiting: waiting}
	return wanted
}

// Revoked is why, as this cluster's controller found out, the provider does not let the VirtualNode work; empty if it does.
func (s Settings) Revoked() string {
	if c := conditions.Find(s.Node.Status.All(), offloadingv1beta1.RightsCondition); c != nil && c.Status == string(corev1.ConditionFalse) {
		return c.Message
	}
	return ""
}

// OverCommitted is what the VirtualNode says of more that runs than is offered.
func (s Settings) OverCommitted() string {
	if over := conditions.Find(s.Node.Status.All(), offloadingv1beta1.OverCommittedCondition); over != nil {
		return over.Message
	}
	return ""
}

// notReflected are the keys that stay at home: what the VirtualNode's patch names, and what the template names.
func notReflected(vn *offloadingv1beta1.VirtualNode, t *offloadingv1beta1.VkOptionsTemplate) reflection.NotReflected {
	var not reflection.NotReflected
	if vn != nil && vn.Spec.OffloadingPatch != nil {
		not.Labels, not.Annotations = vn.Spec.OffloadingPatch.LabelsNotReflected, vn.Spec.OffloadingPatch.AnnotationsNotReflected
	}
	if t != nil {
		not.Labels = union(not.Labels, t.Spec.LabelsNotReflected)
		not.Annotations = union(not.Annotations, t.Spec.AnnotationsNotReflected)
	}
	return not
}

func union(a, b []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b))))
}
