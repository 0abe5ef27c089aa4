package v1alpha1

import (
	"regexp"
	"strings"

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
}

func (c Consumers) validate(path *field.Path) field.ErrorList {
	errs := append(validateNames(path.Child("runtimeClasses"), c.RuntimeClasses), validateNames(path.Child("serviceAccounts"), c.ServiceAccounts)...)
	for i, capability := range c.Capabilities {
		if !capabilityName.MatchString(capability) || strings.HasPrefix(capability, "CAP_") || capability == "ALL" {
			errs = append(errs, field.Invalid(path.Child("capabilities").Index(i), capability, "must name one Linux capability without CAP_, such as SYS_PTRACE"))
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
