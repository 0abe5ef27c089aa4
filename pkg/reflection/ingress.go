package reflection

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// ingressClassAnnotation is how Ingresses named their class before there was a field for it.
const ingressClassAnnotation = "kubernetes.io/ingress.class"

// maxBackAddresses is how many addresses of a load balancer are taken from a provider.
const maxBackAddresses = 64

func ingressKind() Kind {
	return Kind{
		Name:           "ingress",
		GVR:            networkingv1.SchemeGroupVersion.WithResource("ingresses"),
		GVK:            networkingv1.SchemeGroupVersion.WithKind("Ingress"),
		DefaultPolicy:  offloadingv1beta1.DenyList,
		DefaultWorkers: 3,
		Names:          ingressNames,
		UsesKind:       "secret",
		Parent:         "service", // What it leads to is one of its namespace.
		NewObject:      func() Object { return &networkingv1.Ingress{} },
		NewList:        func() ObjectList { return &networkingv1.IngressList{} },
		Translate:      translateIngress,
		Changes:        ingressChanges,
		MustRecreate:   ingressMustRecreate,
		Relax:          relaxKeys,
		Lacks:          ingressLacks,
		Back:           &Back{Take: ingressBack, Field: []string{"status", "loadBalancer", "ingress"}},
	}
}

// ingressNames are the Services that an Ingress leads to, and the Secrets with its certificates.
func ingressNames(object Object) []Reference {
	var found references
	service := func(backend *networkingv1.IngressBackend) {
		if backend != nil && backend.Service != nil {
			found.add("service", backend.Service.Name, nil)
		}
	}
	spec := &object.(*networkingv1.Ingress).Spec
	service(spec.DefaultBackend)
	for i := range spec.Rules {
		if http := spec.Rules[i].HTTP; http != nil {
			for j := range http.Paths {
				service(&http.Paths[j].Backend)
			}
		}
	}
	for _, tls := range spec.TLS {
		found.secret(tls.SecretName, nil)
	}
	return found.reflected()
}

func translateIngress(in Input) Result {
	local := in.Local.(*networkingv1.Ingress)
	if skip := whyNeverReflected(in); skip != nil {
		return Result{Skip: skip}
	}
	if skip := WhyNotReflected(in, offloadingv1beta1.DenyList); skip != nil {
		return Result{Skip: skip}
	}
	in.NotReflected.Annotations = append(slices.Clone(in.NotReflected.Annotations), ingressClassAnnotation)
	wanted := &networkingv1.Ingress{
		ObjectMeta: remoteMeta(in, local.Name),
		// Each field that travels is named, so that one which Kubernetes adds stays at home until somebody looked at it.
		Spec: networkingv1.IngressSpec{
			DefaultBackend: local.Spec.DefaultBackend,
			TLS:            local.Spec.TLS,
			Rules:          local.Spec.Rules,
		},
	}
	if class := in.Provider.IngressClass; class != "" {
		wanted.Spec.IngressClassName = &class
		giveClass(wanted, class)
	}
	if skip := tooLarge(wanted, 0); skip != nil {
		return Result{Skip: skip}
	}
	return Result{Apply: wanted}
}

// ingressChanges leaves the class alone where none is wanted: the provider may have given the Ingress its default one.
func ingressChanges(liveObject, wantedObject Object) []Change {
	wanted := wantedObject.(*networkingv1.Ingress).Spec
	ingress, readable := liveObject.(*networkingv1.Ingress)
	var live networkingv1.IngressSpec
	if readable {
		live = ingress.Spec
	}
	c := &comparison{readable: readable}
	if wanted.IngressClassName != nil {
		c.field("ingressClassName", orMissing(live.IngressClassName), *wanted.IngressClassName)
	}
	c.field("defaultBackend", orMissing(live.DefaultBackend), orMissing(wanted.DefaultBackend))
	c.field("tls", orEmpty(live.TLS), orEmpty(wanted.TLS))
	c.field("rules", orEmpty(live.Rules), orEmpty(wanted.Rules))
	return c.changes
}

// ingressMustRecreate has an Ingress made anew whose class is no longer offered: API servers give Ingresses the provider's default
// class only when they are made.
func ingressMustRecreate(liveObject, wantedObject Object) string {
	live, wanted := liveObject.(*networkingv1.Ingress), wantedObject.(*networkingv1.Ingress)
	if wanted.Spec.IngressClassName == nil && classGiven(live, live.Spec.IngressClassName) {
		return "spec.ingressClassName"
	}
	return ""
}

// ingressLacks tells of an Ingress that has a class at home and got none at the provider: most ingress controllers leave it alone.
// Whether a class of some name exists there is not ours to see; that its API server gave the Ingress no default one is.
func ingressLacks(localObject, madeObject Object) string {
	local, made := localObject.(*networkingv1.Ingress), madeObject.(*networkingv1.Ingress)
	class := local.Annotations[ingressClassAnnotation]
	if local.Spec.IngressClassName != nil {
		class = *local.Spec.IngressClassName
	}
	if class == "" || made.Spec.IngressClassName != nil || made.Annotations[ingressClassAnnotation] != "" {
		return ""
	}
	return fmt.Sprintf("its class %s stays at home, and it got none there: the provider neither offers an IngressClass nor has a default one, "+
		"so perhaps nobody serves it", class)
}

// ingressBack takes the addresses of the remote load balancer into the status of the local object; nil means that they are
// there already. Only what is an address or a host name is taken, in the provider's order, and ports are not: what reads
// the status, such as a controller that writes DNS records, must not get more than it asks for.
func ingressBack(localObject, liveObject Object) Object {
	local, live := localObject.(*networkingv1.Ingress), liveObject.(*networkingv1.Ingress)
	var addresses []networkingv1.IngressLoadBalancerIngress
	for _, reported := range live.Status.LoadBalancer.Ingress {
		address, valid := reportedAddress(reported)
		if valid && len(addresses) < maxBackAddresses && !slices.ContainsFunc(addresses, func(seen networkingv1.IngressLoadBalancerIngress) bool {
			return seen.IP == address.IP && seen.Hostname == address.Hostname
		}) {
			addresses = append(addresses, address)
		}
	}
	if apiequality.Semantic.DeepEqual(local.Status.LoadBalancer.Ingress, addresses) {
		return nil
	}
	updated := local.DeepCopy()
	updated.Status.LoadBalancer.Ingress = addresses
	return updated
}

// reportedAddress checks one entry of a provider; what is left of it holds an address, a host name, or both.
func reportedAddress(reported networkingv1.IngressLoadBalancerIngress) (networkingv1.IngressLoadBalancerIngress, bool) {
	var valid networkingv1.IngressLoadBalancerIngress
	if ip, err := netip.ParseAddr(reported.IP); err == nil && public(ip) {
		valid.IP = ip.String()
	}
	host := strings.ToLower(reported.Hostname)
	if _, err := netip.ParseAddr(host); err != nil && host != "localhost" && len(validation.IsDNS1123Subdomain(host)) == 0 {
		valid.Hostname = host
	}
	return valid, valid.IP != "" || valid.Hostname != ""
}

// public tells whether an address can be that of a load balancer: no address that means the reader itself or its
// neighbours.
func public(ip netip.Addr) bool {
	return ip.Zone() == "" && !ip.Is4In6() && !ip.IsUnspecified() && !ip.IsLoopback() && !ip.IsMulticast() && !ip.IsLinkLocalUnicast()
}
