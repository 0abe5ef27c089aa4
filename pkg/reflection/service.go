package reflection

import (
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// apiServerService is the Service of the API server itself, in namespace default; every cluster has its own.
const apiServerService = "kubernetes"

func serviceKind() Kind {
	return Kind{
		Name:           "service",
		GVR:            corev1.SchemeGroupVersion.WithResource("services"),
		GVK:            corev1.SchemeGroupVersion.WithKind("Service"),
		DefaultPolicy:  offloadingv1beta1.DenyList,
		DefaultWorkers: 10,
		NewObject:      func() Object { return &corev1.Service{} },
		NewList:        func() ObjectList { return &corev1.ServiceList{} },
		Translate:      translateService,
		Changes:        serviceChanges,
		MustRecreate:   serviceMustRecreate,
		Relax:          serviceRelax,
		Keep:           serviceKeep,
	}
}

func translateService(in Input) Result {
	local := in.Local.(*corev1.Service)
	if skip := whyServiceStays(in, local); skip != nil {
		return Result{Skip: skip}
	}
	wanted := &corev1.Service{ObjectMeta: remoteMeta(in, local.Name), Spec: remoteServiceSpec(in, local)}
	if class := wanted.Spec.LoadBalancerClass; class != nil {
		giveClass(wanted, *class)
	}
	if skip := tooLarge(wanted, 0); skip != nil {
		return Result{Skip: skip}
	}
	return Result{Apply: wanted}
}

func whyServiceStays(in Input, local *corev1.Service) *Skip {
	if local.Namespace == metav1.NamespaceDefault && local.Name == apiServerService {
		return &Skip{
			Reason:  offloadingv1beta1.ReasonNotReflectable,
			Message: fmt.Sprintf("stays at home: Service %s/%s leads to the API server of its own cluster", local.Namespace, local.Name),
		}
	}
	if skip := whyNeverReflected(in); skip != nil {
		return skip
	}
	return WhyNotReflected(in, offloadingv1beta1.DenyList)
}

// remoteServiceSpec names each field that travels, so that one which Kubernetes adds stays at home until somebody looked
// at it. Left to the provider are all addresses and ports that a cluster allocates, and the IP families, unless it is IPv6 alone. External
// addresses never travel: they would draw traffic of the provider's nodes.
func remoteServiceSpec(in Input, local *corev1.Service) corev1.ServiceSpec {
	spec := local.Spec
	remote := corev1.ServiceSpec{
		Type:                          serviceType(spec),
		Selector:                      remoteSelector(in, spec.Selector),
		Ports:                         remotePorts(local),
		ExternalName:                  spec.ExternalName,
		SessionAffinity:               spec.SessionAffinity,
		SessionAffinityConfig:         spec.SessionAffinityConfig,
		InternalTrafficPolicy:         spec.InternalTrafficPolicy,
		TrafficDistribution:           spec.TrafficDistribution,
		IPFamilyPolicy:                spec.IPFamilyPolicy,
		IPFamilies:                    remoteFamilies(spec),
		AllocateLoadBalancerNodePorts: spec.AllocateLoadBalancerNodePorts,
		LoadBalancerSourceRanges:      spec.LoadBalancerSourceRanges,
		PublishNotReadyAddresses:      spec.PublishNotReadyAddresses,
	}
	if usesNodePorts(spec) {
		// At home it may also be there because of external addresses, without which it is refused.
		remote.ExternalTrafficPolicy = spec.ExternalTrafficPolicy
	}
	if isHeadless(spec) {
		remote.ClusterIP = corev1.ClusterIPNone
	}
	if class := in.Provider.LoadBalancerClass; class != "" && remote.Type == corev1.ServiceTypeLoadBalancer {
		remote.LoadBalancerClass = &class
	}
	return remote
}

// remoteSelector is a Service's selector without our own labels. One of nothing else selects all pods that are from here.
func remoteSelector(in Input, selector map[string]string) map[string]string {
	if !hasOurLabel(selector) {
		return selector
	}
	remote := maps.Clone(selector)
	maps.DeleteFunc(remote, func(key, _ string) bool { return isOurLabel(key) })
	if len(remote) == 0 {
		remote[offloadingv1beta1.OriginLabel] = in.Home
	}
	return remote
}

func remotePorts(local *corev1.Service) []corev1.ServicePort {
	forced := local.Annotations[offloadingv1beta1.ForceRemoteNodePortAnnotation] == "true"
	var ports []corev1.ServicePort
	for _, port := range local.Spec.Ports {
		remote := corev1.ServicePort{
			Name: port.Name, Protocol: port.Protocol, AppProtocol: port.AppProtocol, Port: port.Port, TargetPort: port.TargetPort,
		}
		if forced {
			remote.NodePort = port.NodePort
		}
		ports = append(ports, remote)
	}
	return ports
}

// serviceType is the type of a Service, as an API server defaults it.
func serviceType(spec corev1.ServiceSpec) corev1.ServiceType {
	if spec.Type == "" {
		return corev1.ServiceTypeClusterIP
	}
	return spec.Type
}

func isHeadless(spec corev1.ServiceSpec) bool {
	return spec.ClusterIP == corev1.ClusterIPNone && serviceType(spec) != corev1.ServiceTypeExternalName
}

// serviceMustRecreate names what an API server never changes: whether a Service has a cluster IP, unless it becomes an
// ExternalName or was one, its first IP family, and the class of a load balancer. A class that the provider chose where none is wanted stays.
func serviceMustRecreate(liveObject, wantedObject Object) string {
	live, wanted := liveObject.(*corev1.Service).Spec, wantedObject.(*corev1.Service).Spec
	liveType, wantedType := serviceType(live), serviceType(wanted)
	named := liveType == corev1.ServiceTypeExternalName || wantedType == corev1.ServiceTypeExternalName
	switch {
	case !named && isHeadless(live) != isHeadless(wanted):
		return "spec.clusterIP"
	case !named && len(wanted.IPFamilies) > 0 && len(live.IPFamilies) > 0 && live.IPFamilies[0] != wanted.IPFamilies[0]:
		return "spec.ipFamilies"
	case liveType == corev1.ServiceTypeLoadBalancer && wantedType == liveType && wanted.LoadBalancerClass != nil &&
		(live.LoadBalancerClass == nil || *live.LoadBalancerClass != *wanted.LoadBalancerClass):
		return "spec.loadBalancerClass"
	default:
		return ""
	}
}
