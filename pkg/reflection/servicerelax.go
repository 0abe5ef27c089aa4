package reflection

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// remoteFamilies are the IP families that a Service has to have at the provider. Where it has IPv6 alone its endpoints have no others,
// and a Service of IPv4 would reach none of them; API servers give IPv4 to whoever asks for nothing, as long as they have it. With two
// families which one comes first is the provider's to choose.
func remoteFamilies(spec corev1.ServiceSpec) []corev1.IPFamily {
	if len(spec.IPFamilies) != 1 || spec.IPFamilies[0] != corev1.IPv6Protocol || serviceType(spec) == corev1.ServiceTypeExternalName ||
		spec.IPFamilyPolicy != nil && *spec.IPFamilyPolicy != corev1.IPFamilyPolicySingleStack {
		return nil
	}
	return []corev1.IPFamily{corev1.IPv6Protocol}
}

// annotationsNot is the reason, in the words of admission policy liqo-consumer-exposure, that a Service may not have the annotations
// that follow it.
const annotationsNot = "ServiceAnnotationNotAllowed: "

// annotationsIgnored says, in such a refusal, that none of these annotations keeps a load balancer internal.
const annotationsIgnored = "ServiceAnnotationIgnored: "

// withoutRefusedAnnotations takes the annotations away that the provider names in a refusal, and returns their keys. A load balancer
// keeps all, unless the provider says that it may do without: without one that keeps it internal it could be open to the world.
func withoutRefusedAnnotations(wanted *corev1.Service, refusal string) (refused []string) {
	if serviceType(wanted.Spec) == corev1.ServiceTypeLoadBalancer && !strings.Contains(refusal, annotationsIgnored) {
		return nil
	}
	for line := range strings.Lines(refusal) {
		_, words, found := strings.Cut(line, annotationsNot)
		for word := range strings.FieldsSeq(words) {
			if _, there := wanted.Annotations[word]; found && there && !keyAllowed(word, nil, nil) {
				refused = append(refused, word)
			}
		}
	}
	slices.Sort(refused)
	refused = slices.Compact(refused)
	for _, key := range refused {
		delete(wanted.Annotations, key)
	}
	return refused
}

// serviceRelax leaves to the provider what it cannot give: node ports that were forced upon it and that are taken there, or outside of
// its range, an IP family that it does not have, and a second one; and labels and annotations that it does not let Services of
// others have.
func serviceRelax(wantedObject Object, refusal string) (relaxed Object, given string) {
	without := wantedObject.DeepCopyObject().(*corev1.Service)
	var parts []string
	if forced := forcedPorts(without); len(forced) > 0 && strings.Contains(refusal, ".nodePort: ") {
		parts = append(parts, fmt.Sprintf("its node ports are not those of this cluster (%s)", NoteFor(forced)))
		for i := range without.Spec.Ports {
			without.Spec.Ports[i].NodePort = 0
		}
	}
	if len(without.Spec.IPFamilies) > 0 && strings.Contains(refusal, ".ipFamilies") {
		parts = append(parts, fmt.Sprintf("it has no addresses of family %s", without.Spec.IPFamilies[0]))
		without.Spec.IPFamilies = nil
	}
	if policy := without.Spec.IPFamilyPolicy; policy != nil && *policy == corev1.IPFamilyPolicyRequireDualStack && strings.Contains(refusal, ".ipFamilyPolicy: ") {
		parts = append(parts, "it has addresses of one IP family alone")
		without.Spec.IPFamilyPolicy = ptr.To(corev1.IPFamilyPolicyPreferDualStack)
	}
	if refused := withoutRefusedAnnotations(without, refusal); len(refused) > 0 {
		parts = append(parts, "it does not allow the annotations "+enumerated(refused))
	}
	if refused := withoutRefusedKeys(without, refusal); len(refused) > 0 {
		parts = append(parts, "it does not allow the labels "+enumerated(refused))
	}
	if len(parts) == 0 {
		return nil, ""
	}
	return without, strings.Join(parts, ", ")
}

// forcedPorts are the node ports that a wanted Service names.
func forcedPorts(wanted *corev1.Service) (forced []string) {
	for i := range wanted.Spec.Ports {
		if port := wanted.Spec.Ports[i].NodePort; port != 0 {
			forced = append(forced, fmt.Sprint(port))
		}
	}
	return forced
}
