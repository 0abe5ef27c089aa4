package weight

import (
	"encoding/json"
	"fmt"
	"regexp"

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
}

// Bounds are those of all kinds that a consumer has a right to write at a provider.
func Bounds() []Bound {
	of := func(group, resource string) schema.GroupResource {
		return schema.GroupResource{Group: group, Resource: resource}
	}
	offloading, authentication := offloadingv1beta1.GroupVersion.Group, authv1beta1.GroupVersion.Group
	return []Bound{
		// Keys that are valid are no source of errors, and those of these two are looked at.
		{of("", "configmaps"), mostOfAny, &corev1.ConfigMap{}},
		{of("", "secrets"), mostOfAny, &corev1.Secret{}},
		{of("", "services"), 512, &corev1.Service{}},
		{of("", "persistentvolumeclaims"), 512, &corev1.PersistentVolumeClaim{}},
		{of(networkingv1.GroupName, "ingresses"), 2048, &networkingv1.Ingress{}},
		{of(offloading, "shadowpods"), 2048, &offloadingv1beta1.ShadowPod{}},
		// 1000 endpoints, as many as an EndpointSlice may have, each with an address, a zone, and hints.
		{of(offloading, "shadowendpointslices"), 4096, &offloadingv1beta1.ShadowEndpointSlice{}},
		// 5000 namespaces, as its schema says, each with its UID and what became of it.
		{of(offloading, "namespacemaps"), 3 * 5120, &offloadingv1beta1.NamespaceMap{}},
		{of(authentication, "resourceslices"), 2048, &authv1beta1.ResourceSlice{}},
		{of(authentication, "renews"), 512, &authv1beta1.Renew{}},
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
