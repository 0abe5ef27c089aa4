package v1alpha1

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Any in a list of names stands for all of them.
const Any = "*"

// Consumers configures what pods of consumers may use in this cluster. What is not listed they may not.
type Consumers struct {
	// RuntimeClasses that they may ask for.
	RuntimeClasses []string `json:"runtimeClasses"`
	// ServiceAccounts that they may run as in their twin namespaces.
	ServiceAccounts []string `json:"serviceAccounts"`
	// Capabilities that their containers may add, besides those of Pod Security's baseline; nil means what the profile says.
	Capabilities []string `json:"capabilities"`
	// Tolerations are keys of taints that they may tolerate, besides those of nodes that fail.
	Tolerations []string `json:"tolerations"`
	// CSIDrivers that they may have inline volumes of.
	CSIDrivers []string `json:"csiDrivers"`
	// MaxTerminationGracePeriod is how long they may take to end; zero means one hour.
	MaxTerminationGracePeriod metav1.Duration `json:"maxTerminationGracePeriod"`
	// PodLabelPrefixes are those of labels that they may have, besides Liqo's own and those without a domain.
	PodLabelPrefixes []string `json:"podLabelPrefixes"`
	// PodAnnotationPrefixes are the same for annotations.
	PodAnnotationPrefixes []string `json:"podAnnotationPrefixes"`
}

func (c Consumers) validate(path *field.Path) field.ErrorList {
	errs := append(validateNames(path.Child("runtimeClasses"), c.RuntimeClasses), validateNames(path.Child("serviceAccounts"), c.ServiceAccounts)...)
	for i, capability := range c.Capabilities {
		if !capabilityName.MatchString(capability) || strings.HasPrefix(capability, "CAP_") || capability == "ALL" {
			errs = append(errs, field.Invalid(path.Child("capabilities").Index(i), capability, "must name one Linux capability without CAP_, such as SYS_PTRACE"))
		}
	}
	errs = append(errs, validateNames(path.Child("csiDrivers"), c.CSIDrivers)...)
	for i, key := range c.Tolerations {
		for _, problem := range validation.IsQualifiedName(key) {
			if key != Any {
				errs = append(errs, field.Invalid(path.Child("tolerations").Index(i), key, problem))
			}
		}
	}
	if d := c.MaxTerminationGracePeriod; d.Duration < 0 {
		errs = append(errs, field.Invalid(path.Child("maxTerminationGracePeriod"), d.Duration.String(), "must not be negative"))
	}
	for name, prefixes := range map[string][]string{"podLabelPrefixes": c.PodLabelPrefixes, "podAnnotationPrefixes": c.PodAnnotationPrefixes} {
		for i, prefix := range prefixes {
			if prefix == "" {
				errs = append(errs, field.Invalid(path.Child(name).Index(i), prefix, "must not be empty: * stands for all keys"))
			}
		}
	}
	return errs
}

var capabilityName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

func validateNames(path *field.Path, names []string) field.ErrorList {
	var errs field.ErrorList
	for i, name := range names {
		if name == Any {
			continue
		}
		for _, problem := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(path.Index(i), name, problem))
		}
	}
	return errs
}
