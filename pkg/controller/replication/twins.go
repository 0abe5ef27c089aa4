package replication

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

// namedTwins is how many namespaces a message names.
const namedTwins = 5

// unknownTwins are the mappings of a NamespaceMap's copy of which the NamespaceMap knows nothing, neither as wanted nor, in its status, as
// on their way out: that is how it is after the restore of an old backup. A twin goes with all in it, so their removal is held until an
// administrator confirms it. What is no name of a namespace we never sent.
func unknownTwins(local, remote *offloadingv1beta1.NamespaceMap) map[string]string {
	confirmed := strings.Split(local.Annotations[offloadingv1beta1.ConfirmedRemovalsAnnotation], ",")
	held := map[string]string{}
	for name, twin := range remote.Spec.DesiredMapping {
		_, wanted := local.Spec.DesiredMapping[name]
		_, known := local.Status.CurrentMapping[name]
		if !wanted && !known && !slices.Contains(confirmed, name) && len(content.IsDNS1123Label(name)) == 0 && len(content.IsDNS1123Label(twin)) == 0 {
			held[name] = twin
		}
	}
	return held
}

// copyMap copies what is wanted into the copy, beside what is held there. Of an earlier peering nothing is held: the provider keeps what
// of it holds data.
func copyMap(from, to *offloadingv1beta1.NamespaceMap, earlier bool) {
	held := map[string]string{}
	if !earlier {
		held = unknownTwins(from, to)
	}
	uids := to.Spec.OriginUIDs
	from.Spec.DeepCopyInto(&to.Spec)
	for name, twin := range held {
		to.Spec.DesiredMapping = with(to.Spec.DesiredMapping, name, twin)
		if uid := uids[name]; uid != "" {
			to.Spec.OriginUIDs = with(to.Spec.OriginUIDs, name, uid)
		}
	}
}

func with(values map[string]string, name, value string) map[string]string {
	if values == nil {
		values = map[string]string{}
	}
	values[name] = value
	return values
}

// holdsTwins tells whether twins would go with a copy.
func holdsTwins(remote client.Object) bool {
	nm, is := remote.(*offloadingv1beta1.NamespaceMap)
	return is && len(nm.Spec.DesiredMapping) > 0
}

// tellHeld says on a NamespaceMap which removals of twins are held, and how to confirm them.
func tellHeld(local, remote *offloadingv1beta1.NamespaceMap) {
	names := slices.Sorted(maps.Keys(unknownTwins(local, remote)))
	if len(names) == 0 {
		meta.RemoveStatusCondition(&local.Status.Conditions, offloadingv1beta1.RemovalsHeldCondition)
		return
	}
	more := ""
	if left := len(names) - namedTwins; left > 0 {
		names, more = names[:namedTwins], fmt.Sprintf(" and of %d more", left)
	}
	conditions.SetStandard(&local.Status.Conditions, metav1.Condition{
		Type: offloadingv1beta1.RemovalsHeldCondition, Status: metav1.ConditionTrue, ObservedGeneration: local.Generation,
		Reason: offloadingv1beta1.ReasonTwinsUnknown, Message: fmt.Sprintf("held back: the removal of the twins of namespaces %s%s, of whose "+
			"offloading nothing is known here, as after the restore of an old backup; offload them again to take the twins up; "+
			"to have the twins removed with all in them, run: kubectl annotate namespacemap -n %s %s --overwrite %s=%s",
			strings.Join(names, ", "), more, local.Namespace, local.Name, offloadingv1beta1.ConfirmedRemovalsAnnotation, strings.Join(names, ",")),
	})
}

// forgetConfirmed takes away the confirmation of removals that were made: it does not count for later ones.
func (f *reflector) forgetConfirmed(ctx context.Context, p *pass) error {
	if _, is := p.local.GetAnnotations()[offloadingv1beta1.ConfirmedRemovalsAnnotation]; !is {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"resourceVersion": p.local.GetResourceVersion(), "annotations": map[string]any{offloadingv1beta1.ConfirmedRemovalsAnnotation: nil}}})
	if err != nil {
		return fmt.Errorf("encoding the patch of %s %s/%s: %w", p.gvk.Kind, f.namespace, p.at.name, err)
	}
	updated, _ := p.local.DeepCopyObject().(client.Object)
	if err := f.home.client.Patch(ctx, updated, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("taking the confirmation off %s %s/%s: %w", p.gvk.Kind, f.namespace, p.at.name, err)
	}
	p.local = updated
	return nil
}
