package v1alpha1

import (
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
}

func (c Consumers) validate(path *field.Path) field.ErrorList {
	return append(validateNames(path.Child("runtimeClasses"), c.RuntimeClasses), validateNames(path.Child("serviceAccounts"), c.ServiceAccounts)...)
}

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
