package reflection

import (
	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// ProviderOf is what a VirtualNode says of its provider: the classes that Ingresses and load balancers get there.
func ProviderOf(vn *offloadingv1beta1.VirtualNode) Provider {
	return Provider{
		IngressClass: defaultOf(vn.Spec.IngressClasses, func(c authv1beta1.IngressType) (string, bool) {
			return c.IngressClassName, c.Default
		}),
		LoadBalancerClass: defaultOf(vn.Spec.LoadBalancerClasses, func(c authv1beta1.LoadBalancerType) (string, bool) {
			return c.LoadBalancerClassName, c.Default
		}),
	}
}

// defaultOf picks the first class that the provider offers as its default; empty if there is none.
func defaultOf[C any](offered []C, read func(C) (name string, isDefault bool)) string {
	for _, class := range offered {
		if name, isDefault := read(class); isDefault {
			return name
		}
	}
	return ""
}
