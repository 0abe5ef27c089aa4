package v1alpha1

import (
	"k8s.io/apimachinery/pkg/util/validation/field"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// ServiceReflection configures Services.
type ServiceReflection struct {
	offloadingv1beta1.ReflectorConfig `json:",inline"`
	// LoadBalancerClasses are offered to consumers.
	LoadBalancerClasses []Class `json:"loadBalancerClasses"`
}

// IngressReflection configures Ingresses.
type IngressReflection struct {
	offloadingv1beta1.ReflectorConfig `json:",inline"`
	// IngressClasses are offered to consumers.
	IngressClasses []Class `json:"ingressClasses"`
}

// Class is offered to consumers.
type Class struct {
	// Name of the class in this cluster.
	Name string `json:"name"`
	// Default says that consumers use the class.
	Default bool `json:"default"`
}

// maxClasses is how many classes of a kind the status of a ResourceSlice holds.
const maxClasses = 256

// Offered are the classes as a ResourceSlice tells them.
func (s ServiceReflection) Offered() []authv1beta1.LoadBalancerType {
	var offered []authv1beta1.LoadBalancerType
	for _, class := range s.LoadBalancerClasses {
		offered = append(offered, authv1beta1.LoadBalancerType{LoadBalancerClassName: class.Name, Default: class.Default})
	}
	return offered
}

// Offered are the classes as a ResourceSlice tells them.
func (i IngressReflection) Offered() []authv1beta1.IngressType {
	var offered []authv1beta1.IngressType
	for _, class := range i.IngressClasses {
		offered = append(offered, authv1beta1.IngressType{IngressClassName: class.Name, Default: class.Default})
	}
	return offered
}

func validateClasses(path *field.Path, classes []Class) field.ErrorList {
	var errs field.ErrorList
	if len(classes) > maxClasses {
		errs = append(errs, field.TooMany(path, len(classes), maxClasses))
	}
	names, defaults := map[string]bool{}, 0
	for i, class := range classes {
		at := path.Index(i)
		switch {
		case class.Name == "":
			errs = append(errs, field.Required(at.Child("name"), "name a class of this cluster"))
		case names[class.Name]:
			errs = append(errs, field.Duplicate(at.Child("name"), class.Name))
		}
		names[class.Name] = true
		if class.Default {
			defaults++
		}
		if class.Default && defaults > 1 {
			errs = append(errs, field.Invalid(at.Child("default"), true, "there is another default class"))
		}
	}
	return errs
}
