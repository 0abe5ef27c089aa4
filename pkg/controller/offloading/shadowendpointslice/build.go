package shadowendpointslice

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"liqo.io/liqo/pkg/addressing"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/marks"
)

// shown is how many left out addresses are named to people.
const shown = 5

// Knowledge is what this cluster knows of the consumer that wants an EndpointSlice.
type Knowledge struct {
	// Mapping says how this cluster sees the consumer's own addresses.
	Mapping addressing.Mapping
	// Accepted are the ranges, as this cluster sees them, that the consumer announced and this cluster accepts.
	Accepted []netip.Prefix
	// Refused says which ranges it does not accept, and why.
	Refused []string
	// Down says that the way to the consumer is known not to work.
	Down bool
	// Direct are this cluster's own networks to clusters that are not the consumer, by their IDs.
	Direct map[string]Way
	// Hosted are the endpoints of pods of the consumer that this cluster runs, by the pods' names, which the consumer names because its
	// Service does not select them here.
	Hosted map[string]discoveryv1.Endpoint
}

// Build returns the EndpointSlice of a ShadowEndpointSlice, and the addresses that were left out of it.
func Build(shadow *offloadingv1beta1.ShadowEndpointSlice, know Knowledge) (slice *discoveryv1.EndpointSlice, omitted []string) {
	template := &shadow.Spec.Template
	slice = &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: shadow.Namespace, Name: shadow.Name, Labels: sliceLabels(shadow), Annotations: sliceAnnotations(shadow),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shadow, offloadingv1beta1.GroupVersion.WithKind("ShadowEndpointSlice"))},
		},
		AddressType: template.AddressType,
		Endpoints:   []discoveryv1.Endpoint{},
	}
	marks.Write(slice.Annotations, marks.OfMap(marks.Label, slice.Labels).Union(marks.OfMap(marks.Annotation, slice.Annotations)))
	for i := range template.Ports {
		port := template.Ports[i].DeepCopy()
		// The API server puts these in. Without them the EndpointSlice would never be what is wanted.
		port.Name, port.Protocol = cmp.Or(port.Name, ptr.To("")), cmp.Or(port.Protocol, ptr.To(corev1.ProtocolTCP))
		slice.Ports = append(slice.Ports, *port)
	}
	direct := hints(shadow, len(shadow.Spec.Template.Endpoints))
	for i := range template.Endpoints {
		endpoint := &template.Endpoints[i]
		if name := hostedHere(shadow, endpoint); name != "" {
			if own, known := know.Hosted[name]; known {
				own.Hostname = endpoint.Hostname
				slice.Endpoints = append(slice.Endpoints, own)
			}
			continue
		}
		var said hint
		if i < len(direct) {
			said = direct[i]
		}
		addresses, down, unknown := reached(endpoint, template.AddressType, know, said)
		omitted = append(omitted, unknown...)
		if len(addresses) > 0 {
			slice.Endpoints = append(slice.Endpoints, build(shadow, endpoint, addresses, down))
		}
	}
	return slice, omitted
}

// reached are the addresses by which this cluster reaches an endpoint: by a network of its own that works, else through the consumer, else by
// one of its own that does not work now.
func reached(endpoint *discoveryv1.Endpoint, family discoveryv1.AddressType, know Knowledge, said hint) (addresses []string, down bool, unknown []string) {
	seen, up, direct := know.directly(said, family)
	if direct && up {
		return []string{seen}, false, nil
	}
	for _, text := range endpoint.Addresses {
		if through, ok := published(text, family, know.Mapping, know.Accepted); ok {
			addresses = append(addresses, through)
		} else {
			unknown = append(unknown, text)
		}
	}
	if len(addresses) == 0 && direct {
		return []string{seen}, true, nil
	}
	return addresses, know.Down, unknown
}

// published is how this cluster reaches an address of a peer; false if it is not to be published.
func published(text string, family discoveryv1.AddressType, mapping addressing.Mapping, accepted []netip.Prefix) (string, bool) {
	address, err := netip.ParseAddr(text)
	if err != nil || address.Is4In6() || address.Is4() != (family == discoveryv1.AddressTypeIPv4) || addressing.Reserved(address) {
		return "", false
	}
	seen, reachable := mapping.Translate(address)
	if !reachable || !addressing.Within(seen, accepted) {
		return "", false
	}
	if seen == address {
		return text, true // as the consumer wrote it
	}
	return seen.String(), true
}

// build is one endpoint: whatever the consumer says, it stands on the consumer's node.
func build(shadow *offloadingv1beta1.ShadowEndpointSlice, wanted *discoveryv1.Endpoint, addresses []string, down bool) discoveryv1.Endpoint {
	endpoint := discoveryv1.Endpoint{
		Addresses:  addresses,
		Conditions: *wanted.Conditions.DeepCopy(),
		Hostname:   wanted.Hostname,
		NodeName:   ptr.To(shadow.Labels[offloadingv1beta1.OriginLabel]),
		Zone:       wanted.Zone,
	}
	if down {
		endpoint.Conditions.Ready, endpoint.Conditions.Serving = ptr.To(false), ptr.To(false)
	}
	if target := wanted.TargetRef; target != nil {
		endpoint.TargetRef = &corev1.ObjectReference{Kind: target.Kind, Name: target.Name, Namespace: shadow.Namespace}
	}
	if wanted.Hints != nil && len(wanted.Hints.ForZones) > 0 {
		endpoint.Hints = &discoveryv1.EndpointHints{ForZones: slices.Clone(wanted.Hints.ForZones)}
	}
	return endpoint
}

func sliceLabels(shadow *offloadingv1beta1.ShadowEndpointSlice) map[string]string {
	labels := maps.Clone(shadow.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	// Kubernetes' own controllers would remove what seems to be theirs.
	labels[discoveryv1.LabelManagedBy] = offloadingv1beta1.EndpointSliceManager
	labels[offloadingv1beta1.ManagedByLabel] = offloadingv1beta1.ManagedByShadowEndpointSlice
	labels[corev1beta1.ManagedLabel] = "true"
	return labels
}

func sliceAnnotations(shadow *offloadingv1beta1.ShadowEndpointSlice) map[string]string {
	annotations := map[string]string{}
	maps.Copy(annotations, shadow.Annotations)
	for _, key := range []string{
		offloadingv1beta1.ReflectedKeysAnnotation, offloadingv1beta1.AskedAnnotation,
		corev1beta1.OriginUIDAnnotation, offloadingv1beta1.DirectConnectionsDataAnnotation,
	} {
		delete(annotations, key)
	}
	return annotations
}

// why tells people which addresses were left out.
func why(omitted []string, know Knowledge) string {
	named := make([]string, 0, shown)
	for _, text := range omitted[:min(len(omitted), shown)] {
		named = append(named, fmt.Sprintf("%.45q", text))
	}
	message := fmt.Sprintf("%d addresses lie in no range that the consumer announced and this cluster accepts: %s", len(omitted), strings.Join(named, ", "))
	if len(omitted) > shown {
		message += ", …"
	}
	if len(know.Accepted)+len(know.Refused) == 0 {
		message += "; nothing was announced"
	}
	if len(know.Refused) > 0 {
		message += "; not accepted: " + strings.Join(know.Refused[:min(len(know.Refused), shown)], ", ")
	}
	if i := slices.IndexFunc(omitted, reserved); i >= 0 {
		message += "; " + omitted[i] + " is no pod's, whatever is announced"
	}
	if elsewhere := func(text string) bool { return !reserved(text) }; len(know.Accepted) > 0 && slices.ContainsFunc(omitted, elsewhere) {
		message += "; pods of another provider are reached if the consumer's peerings with both have transit: liqoctl network connect --transit"
	}
	return message
}

// reserved tells whether a text is an address that is never published.
func reserved(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && addressing.Reserved(address)
}

// changed returns the live object as it must be, nil if it is so already. Labels and annotations of others stay.
func changed(live, wanted *discoveryv1.EndpointSlice, equal func(a, b any) bool) *discoveryv1.EndpointSlice {
	now := live.DeepCopy()
	before, known := marks.Read(live.Annotations)
	now.Labels = marks.Followed(marks.Label, live.Labels, wanted.Labels, before)
	now.Annotations = marks.Followed(marks.Annotation, live.Annotations, wanted.Annotations, before)
	note, fits := wanted.Annotations[offloadingv1beta1.AskedAnnotation]
	if !fits || !known {
		delete(now.Annotations, offloadingv1beta1.AskedAnnotation)
	}
	now.Endpoints, now.Ports = wanted.Endpoints, wanted.Ports
	if equal(live.Labels, now.Labels) && equal(live.Annotations, now.Annotations) && equal(live.Endpoints, now.Endpoints) && equal(live.Ports, now.Ports) {
		return nil
	}
	// One that an earlier version made does not say what was asked for. It is not written only to say it.
	if fits {
		now.Annotations[offloadingv1beta1.AskedAnnotation] = note
	}
	return now
}
