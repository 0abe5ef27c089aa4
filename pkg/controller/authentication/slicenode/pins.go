package slicenode

import (
	"net/netip"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"liqo.io/liqo/pkg/addressing"
	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Trust is what this cluster believes of what a provider says of itself, when a VirtualNode is made.
type Trust struct {
	// Labels are taken from the provider at first. Later ones, and without it all, wait for approval here.
	Labels bool
	// PrivateAddresses are taken to be of a provider's pods that announced no range, where they are free here.
	PrivateAddresses bool
	// Protected is what no provider may claim.
	Protected addressing.Protected
	// OwnUnknown says that the ranges of this cluster's pods are not part of it, because nobody knows them.
	OwnUnknown bool
}

// pinAddresses writes down, once, where the provider's pods are.
func pinAddresses(object *offloadingv1beta1.VirtualNode, announced []string, trust Trust) {
	if object.Annotations[offloadingv1beta1.RemotePodCIDRsAnnotation] != "" {
		return
	}
	accepted, _ := addressing.Accept(announced, trust.Protected)
	if len(announced) == 0 && trust.PrivateAddresses {
		accepted = addressing.Free(trust.Protected)
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, offloadingv1beta1.RemotePodCIDRsAnnotation, pinned(accepted))
}

// pinned is the text of an annotation.
func pinned(ranges []netip.Prefix) string {
	if len(ranges) == 0 {
		return offloadingv1beta1.NoPodCIDRs
	}
	texts := make([]string, 0, len(ranges))
	for _, prefix := range ranges {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ",")
}

// pinLabels takes what the provider says of itself at first, and again when somebody here approved just that. What it would like
// otherwise is written down for the VirtualNode's condition.
func pinLabels(object *offloadingv1beta1.VirtualNode, suggested map[string]string, trust Trust) {
	wanted := NodeLabels(suggested)
	text, there := object.Annotations[offloadingv1beta1.ProviderLabelsAnnotation]
	before := parse(text)
	if !there && object.UID != "" && object.Name == object.Labels[authv1beta1.ResourceSliceNameLabel] {
		// We made it before there were pins: what it has is what it keeps. What somebody made of the slice has another name.
		before, there = NodeLabels(object.Spec.Labels), true
	}
	approval, approved := object.Annotations[offloadingv1beta1.ApprovedLabelsAnnotation]
	approved = approved && labels.Equals(parse(approval), wanted)
	now := before
	if approved || !there && trust.Labels {
		now = wanted
	}
	for key, value := range before {
		if object.Spec.Labels[key] == value {
			delete(object.Spec.Labels, key)
		}
	}
	for key, value := range now {
		if object.Spec.Labels == nil {
			object.Spec.Labels = map[string]string{}
		}
		object.Spec.Labels[key] = value
	}
	if len(object.Spec.Labels) == 0 {
		object.Spec.Labels = nil
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, offloadingv1beta1.ProviderLabelsAnnotation, labels.Set(now).String())
	if labels.Equals(now, wanted) {
		delete(object.Annotations, offloadingv1beta1.SuggestedLabelsAnnotation)
		return
	}
	metav1.SetMetaDataAnnotation(&object.ObjectMeta, offloadingv1beta1.SuggestedLabelsAnnotation, labels.Set(wanted).String())
}

// parse reads labels as they are written into annotations. What cannot be read is none.
func parse(text string) map[string]string {
	set, err := labels.ConvertSelectorToLabelsMap(strings.TrimSpace(text))
	if err != nil {
		return map[string]string{}
	}
	return set
}
