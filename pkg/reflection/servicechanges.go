package reflection

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// comparison collects the fields of a spec that have to change.
type comparison struct {
	// readable is false where the live object cannot be read: then every field is listed.
	readable bool
	changes  []Change
}

// field compares one field; nil stands for one that is not there.
func (c *comparison) field(name string, live, wanted any) {
	if c.readable && apiequality.Semantic.DeepEqual(live, wanted) {
		return
	}
	c.changes = append(c.changes, Change{Path: []string{"spec", name}, Value: wanted})
}

// serviceChanges compares the fields that are ours, each as an API server defaults it. A field that means nothing to the
// wanted type is left out: the API server drops it when the type changes, together with what it had allocated.
func serviceChanges(liveObject, wantedObject Object) []Change {
	wanted := wantedObject.(*corev1.Service).Spec
	service, readable := liveObject.(*corev1.Service)
	var live corev1.ServiceSpec
	if readable {
		live = service.Spec
	}
	c := &comparison{readable: readable}
	c.field("type", serviceType(live), serviceType(wanted))
	if isHeadless(wanted) && (!readable || serviceType(live) == corev1.ServiceTypeExternalName) {
		c.field("clusterIP", orAbsent(live.ClusterIP), corev1.ClusterIPNone)
	}
	c.field("selector", orRemoved(live.Selector), orRemoved(wanted.Selector))
	c.ports(live, wanted)
	c.field("externalName", orAbsent(live.ExternalName), orAbsent(wanted.ExternalName))
	c.affinity(live, wanted)
	c.exposure(live, wanted)
	c.field("internalTrafficPolicy",
		orDefault(live.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster),
		orDefault(wanted.InternalTrafficPolicy, corev1.ServiceInternalTrafficPolicyCluster))
	c.field("trafficDistribution", orMissing(live.TrafficDistribution), orMissing(wanted.TrafficDistribution))
	if wanted.IPFamilyPolicy != nil && serviceType(wanted) != corev1.ServiceTypeExternalName {
		c.field("ipFamilyPolicy", orMissing(live.IPFamilyPolicy), *wanted.IPFamilyPolicy)
	}
	if len(wanted.IPFamilies) > 0 && !slices.Contains(live.IPFamilies, wanted.IPFamilies[0]) {
		c.field("ipFamilies", nil, wanted.IPFamilies)
	}
	c.field("publishNotReadyAddresses", live.PublishNotReadyAddresses, wanted.PublishNotReadyAddresses)
	return c.changes
}

func (c *comparison) affinity(live, wanted corev1.ServiceSpec) {
	kind := func(spec corev1.ServiceSpec) corev1.ServiceAffinity {
		if spec.SessionAffinity == "" {
			return corev1.ServiceAffinityNone
		}
		return spec.SessionAffinity
	}
	c.field("sessionAffinity", kind(live), kind(wanted))
	if kind(wanted) == corev1.ServiceAffinityNone {
		return
	}
	config := func(spec corev1.ServiceSpec) corev1.SessionAffinityConfig {
		timeout := corev1.DefaultClientIPServiceAffinitySeconds
		if given := spec.SessionAffinityConfig; given != nil && given.ClientIP != nil && given.ClientIP.TimeoutSeconds != nil {
			timeout = *given.ClientIP.TimeoutSeconds
		}
		return corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
	}
	if kind(live) != kind(wanted) {
		// There is no configuration yet, even where the default is wanted.
		c.changes = append(c.changes, Change{Path: []string{"spec", "sessionAffinityConfig"}, Value: config(wanted)})
		return
	}
	c.field("sessionAffinityConfig", config(live), config(wanted))
}

// exposure compares how a Service is reached from outside.
func (c *comparison) exposure(live, wanted corev1.ServiceSpec) {
	if usesNodePorts(wanted) {
		policy := func(spec corev1.ServiceSpec) corev1.ServiceExternalTrafficPolicy {
			if spec.ExternalTrafficPolicy == "" {
				return corev1.ServiceExternalTrafficPolicyCluster
			}
			return spec.ExternalTrafficPolicy
		}
		c.field("externalTrafficPolicy", policy(live), policy(wanted))
	}
	c.field("loadBalancerSourceRanges", orEmpty(live.LoadBalancerSourceRanges), orEmpty(wanted.LoadBalancerSourceRanges))
	if serviceType(wanted) != corev1.ServiceTypeLoadBalancer {
		return
	}
	c.field("allocateLoadBalancerNodePorts", orDefault(live.AllocateLoadBalancerNodePorts, true), orDefault(wanted.AllocateLoadBalancerNodePorts, true))
	if wanted.LoadBalancerClass != nil {
		c.field("loadBalancerClass", orMissing(live.LoadBalancerClass), *wanted.LoadBalancerClass)
	}
}

// usesNodePorts tells whether ports of a Service may be open on nodes.
func usesNodePorts(spec corev1.ServiceSpec) bool {
	return serviceType(spec) == corev1.ServiceTypeNodePort || serviceType(spec) == corev1.ServiceTypeLoadBalancer
}

// ports compares the list of ports. A list is written as a whole, so it names the node ports that the provider allocated
// to the ports which stay: otherwise they would be released.
func (c *comparison) ports(live, wanted corev1.ServiceSpec) {
	has, want := defaultedPorts(live.Ports), defaultedPorts(wanted.Ports)
	if usesNodePorts(wanted) {
		keepNodePorts(has, want)
	} else {
		for i := range has {
			has[i].NodePort = 0
		}
		for i := range want {
			want[i].NodePort = 0
		}
	}
	c.field("ports", orEmpty(has), orEmpty(want))
}

func defaultedPorts(ports []corev1.ServicePort) []corev1.ServicePort {
	defaulted := make([]corev1.ServicePort, len(ports))
	for i, port := range ports {
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
		defaulted[i] = port
	}
	return defaulted
}

// openPort is a port that is open on the nodes.
type openPort struct {
	protocol corev1.Protocol
	number   int32
}

// keepNodePorts gives wanted ports without node port the one that the same live port has: that with the same number, or
// else that with the same name. No two ports get the same one.
func keepNodePorts(live, wanted []corev1.ServicePort) {
	taken := map[openPort]bool{}
	for _, port := range wanted {
		taken[openPort{port.Protocol, port.NodePort}] = port.NodePort != 0
	}
	for _, same := range []func(a, b corev1.ServicePort) bool{
		func(a, b corev1.ServicePort) bool { return a.Port == b.Port && a.Protocol == b.Protocol },
		func(a, b corev1.ServicePort) bool { return a.Name == b.Name && a.Protocol == b.Protocol },
	} {
		for i := range wanted {
			for _, has := range live {
				open := openPort{has.Protocol, has.NodePort}
				if wanted[i].NodePort == 0 && has.NodePort != 0 && same(has, wanted[i]) && !taken[open] {
					wanted[i].NodePort = has.NodePort
					taken[open] = true
				}
			}
		}
	}
}

// orAbsent makes an empty text a field that is not there.
func orAbsent(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// orMissing makes an unset field one that is not there.
func orMissing[V any](value *V) any {
	if value == nil {
		return nil
	}
	return *value
}

// orEmpty makes an empty list a field that is not there.
func orEmpty[V any](list []V) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

// orDefault is the value of a field, or that which an API server gives it.
func orDefault[V any](value *V, otherwise V) V {
	if value == nil {
		return otherwise
	}
	return *value
}
