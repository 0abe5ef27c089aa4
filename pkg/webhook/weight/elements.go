package weight

import (
	"encoding/json"
	"fmt"
	"regexp"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const (
	// ReasonTooManyElements starts the refusal of an object that has more elements than its kind may have.
	ReasonTooManyElements = "TooManyElements"
	// mostOfAny are the elements that an object of any kind may have.
	mostOfAny = 16384
	// members are those of a JSON object that are not counted: it may be a struct, and none that is read here has more fields.
	members = 64
)

// Bound says how many elements the arrays and maps of an object may have in all, nested ones included.
type Bound struct {
	schema.GroupResource
	// Most elements. API servers compare each error that they find in an object with all before it: 39 000 elements that each lack something
	// keep a processor busy for 79 s, and so 2048 for a quarter of a second.
	Most int
	// Kind is an empty object.
	Kind runtime.Object
	// Vital objects are written while no webhook answers, too. No policy is asked about them, but a webhook about those with too many elements.
	Vital bool
}

// Bounds are those of all kinds that a consumer has a right to write at a provider.
func Bounds() []Bound {
	of := func(group, resource string) schema.GroupResource {
		return schema.GroupResource{Group: group, Resource: resource}
	}
	offloading, authentication := offloadingv1beta1.GroupVersion.Group, authv1beta1.GroupVersion.Group
	return []Bound{
		// Keys that are valid are no source of errors, and those of these two are looked at.
		{GroupResource: of("", "configmaps"), Most: mostOfAny, Kind: &corev1.ConfigMap{}},
		{GroupResource: of("", "secrets"), Most: mostOfAny, Kind: &corev1.Secret{}},
		{GroupResource: of("", "services"), Most: 512, Kind: &corev1.Service{}},
		{GroupResource: of("", "persistentvolumeclaims"), Most: 512, Kind: &corev1.PersistentVolumeClaim{}},
		{GroupResource: of(networkingv1.GroupName, "ingresses"), Most: 2048, Kind: &networkingv1.Ingress{}},
		{GroupResource: of(networkingv1.GroupName, "networkpolicies"), Most: 2048, Kind: &networkingv1.NetworkPolicy{}},
		{GroupResource: of(offloading, "shadowpods"), Most: 2048, Kind: &offloadingv1beta1.ShadowPod{}},
		// 1000 endpoints, as many as an EndpointSlice may have, each with an address, a zone, and hints.
		{GroupResource: of(offloading, "shadowendpointslices"), Most: 4096, Kind: &offloadingv1beta1.ShadowEndpointSlice{}},
		// 5000 namespaces, as its schema says, each with its UID and what became of it.
		{GroupResource: of(offloading, "namespacemaps"), Most: 3 * 5120, Kind: &offloadingv1beta1.NamespaceMap{}},
		{GroupResource: of(authentication, "resourceslices"), Most: 2048, Kind: &authv1beta1.ResourceSlice{}},
		{GroupResource: of(authentication, "renews"), Most: 512, Kind: &authv1beta1.Renew{}},
		// A sign of life that is not taken because no controller manager runs would be missing when one runs again.
		{GroupResource: of(coordinationv1.GroupName, "leases"), Most: 512, Kind: &coordinationv1.Lease{}, Vital: true},
		// Everybody asks what he may do himself, and a consumer whether its peer still answers.
		{GroupResource: of(authorizationv1.GroupName, "selfsubjectaccessreviews"), Most: 512, Kind: &authorizationv1.SelfSubjectAccessReview{},
			Vital: true},
	}
}

// Elements counts those of all arrays in a JSON text, and the members of JSON objects beyond 64 each: those are maps. It decodes nothing.
func Elements(raw []byte) int {
	type level struct {
		array bool
		count int
	}
	var open []level
	total, text := 0, false
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		switch {
		case text:
			if c == '\\' {
				i++
			}
			text = c != '"'
		case c == '"':
			text = true
		case c == '[' || c == '{':
			open = append(open, level{array: c == '['})
		case c == ',' && len(open) > 0:
			open[len(open)-1].count++
		case (c == ']' || c == '}') && len(open) > 0:
			last := open[len(open)-1]
			open = open[:len(open)-1]
			if last.array {
				total += last.count + 1
			} else if last.count >= members {
				total += last.count + 1
			}
		}
	}
	return total
}

var validKey = regexp.MustCompile(`^[-._a-zA-Z0-9]{1,253}$`)

// tooMany says why an object of a consumer has too many elements; empty if it has not.
func tooMany(resource schema.GroupResource, raw []byte) string {
	for _, b := range Bounds() {
		if b.GroupResource != resource {
			continue
		}
		// Whoever wrote keys is written down beside them, with each key once more.
		if n := Elements(raw); n > 2*b.Most {
			return fmt.Sprintf("%s: %d elements, of %s of a consumer at most %d may be", ReasonTooManyElements, n, resource.Resource, 2*b.Most)
		}
	}
	if resource.Group != "" || resource.Resource != "configmaps" && resource.Resource != "secrets" {
		return ""
	}
	var content struct{ Data, BinaryData, StringData map[string]json.RawMessage }
	if err := json.Unmarshal(raw, &content); err != nil {
		return err.Error()
	}
	for _, part := range []map[string]json.RawMessage{content.Data, content.BinaryData, content.StringData} {
		for key := range part {
			if len(part) > members && !validKey.MatchString(key) {
				return fmt.Sprintf("%s: %d keys, of which %.64q is none that is valid", ReasonTooManyElements, len(part), key)
			}
		}
	}
	return ""
}
