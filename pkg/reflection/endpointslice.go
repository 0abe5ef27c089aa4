package reflection

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// endpointsCalm bounds how often a slice under churn is written: the controller that makes it does so for each pod.
const endpointsCalm = 150 * time.Millisecond

// kubernetesSliceManager is who makes the slices of Services with a selector.
const kubernetesSliceManager = "endpointslice-controller.k8s.io"

// maxSlicePorts and maxSliceEndpoints are what a ShadowEndpointSlice holds.
const (
	maxSlicePorts     = 100
	maxSliceEndpoints = 1000
)

func endpointSliceKind() Kind {
	return Kind{
		Name:           "endpointslice",
		GVR:            discoveryv1.SchemeGroupVersion.WithResource("endpointslices"),
		GVK:            discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
		DefaultPolicy:  offloadingv1beta1.DenyList,
		DefaultWorkers: 10,
		NewObject:      func() Object { return &discoveryv1.EndpointSlice{} },
		NewList:        func() ObjectList { return &discoveryv1.EndpointSliceList{} },
		Translate:      translateEndpointSlice,
		Changes:        endpointSliceChanges,
		MustRecreate:   endpointSliceMustRecreate,
		Relax:          relaxKeys,
		Twin: &Twin{
			GVR:       offloadingv1beta1.GroupVersion.WithResource("shadowendpointslices"),
			GVK:       offloadingv1beta1.GroupVersion.WithKind("ShadowEndpointSlice"),
			NewObject: func() Object { return &offloadingv1beta1.ShadowEndpointSlice{} },
			NewList:   func() ObjectList { return &offloadingv1beta1.ShadowEndpointSliceList{} },
		},
		Parent:     "service",
		ParentName: func(slice Object) string { return slice.GetLabels()[discoveryv1.LabelServiceName] },
		Remark:     whyNothingComesFromOutside,
		Calm:       endpointsCalm,
	}
}

func translateEndpointSlice(in Input) Result {
	local := in.Local.(*discoveryv1.EndpointSlice)
	if skip := whyEndpointSliceStays(in, local); skip != nil {
		return Result{Skip: skip}
	}
	endpoints, direct, lost := remoteEndpoints(in, local)
	if len(endpoints) == 0 && (len(local.Endpoints) > 0 || madeThereToo(in, local)) {
		message := fmt.Sprintf("stays at home: cluster %q knows all of its endpoints by itself", in.Remote)
		if lost > 0 {
			message = fmt.Sprintf("stays at home: no address of its endpoints can be reached from cluster %q (%d have no translation)", in.Remote, lost)
		}
		return Result{Skip: &Skip{Reason: offloadingv1beta1.ReasonNoRemoteEndpoints, Message: message, Routine: lost == 0}}
	}
	wanted := &offloadingv1beta1.ShadowEndpointSlice{
		ObjectMeta: endpointSliceMeta(in, local, direct),
		Spec: offloadingv1beta1.ShadowEndpointSliceSpec{Template: offloadingv1beta1.EndpointSliceTemplate{
			Endpoints: endpoints, Ports: local.Ports, AddressType: local.AddressType,
		}},
	}
	if skip := tooLarge(wanted, 0); skip != nil {
		return Result{Skip: skip}
	}
	return Result{Apply: wanted}
}

// madeThereToo tells whether Kubernetes makes the same slice, with no endpoints, at the provider: of a Service that selects pods. Other
// slices cross without endpoints, too.
func madeThereToo(in Input, local *discoveryv1.EndpointSlice) bool {
	service, ok := in.Parent.(*corev1.Service)
	return ok && len(service.Spec.Selector) > 0 && local.Labels[discoveryv1.LabelManagedBy] == kubernetesSliceManager
}

// endpointSliceMeta is the metadata of the remote object, with the addresses that the first endpoints have in their own clusters.
func endpointSliceMeta(in Input, local *discoveryv1.EndpointSlice, direct map[string][]string) metav1.ObjectMeta {
	// The time of the last change would make a write of changes among endpoints that do not cross.
	in.NotReflected.Annotations = append(slices.Clip(in.NotReflected.Annotations), corev1.EndpointsLastChangeTriggerTime)
	meta := remoteMeta(in, local.Name)
	// These two make it a slice of its Service that no controller of Kubernetes touches, whatever stays at home else.
	meta.Labels[discoveryv1.LabelServiceName] = local.Labels[discoveryv1.LabelServiceName]
	meta.Labels[discoveryv1.LabelManagedBy] = offloadingv1beta1.EndpointSliceManager
	delete(meta.Annotations, offloadingv1beta1.ReflectedKeysAnnotation)
	// A user's own word would be taken for it.
	delete(meta.Annotations, offloadingv1beta1.DirectConnectionsDataAnnotation)
	if len(direct) > 0 {
		data, _ := json.Marshal(direct) // Texts alone.
		meta.Annotations[offloadingv1beta1.DirectConnectionsDataAnnotation] = string(data)
	}
	recordKeys(&meta)
	return meta
}

// remoteEndpoints are the endpoints that the provider does not know by itself, in order, and those of its own pods that the Service may not
// select there, which are said to be on the provider; lost is how many of the others have
// no address that can be reached from there. direct are the addresses, by cluster, that the first ones have at other providers.
func remoteEndpoints(in Input, local *discoveryv1.EndpointSlice) (endpoints []discoveryv1.Endpoint, direct map[string][]string, lost int) {
	type placed struct {
		endpoint     discoveryv1.Endpoint
		cluster, own string
	}
	var all []placed
	unselected := selectsStaying(in)
	for i := range local.Endpoints {
		endpoint := &local.Endpoints[i]
		if endpoint.NodeName != nil && in.Provider.Nodes[*endpoint.NodeName] {
			if unselected && endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod" {
				there := remoteEndpoint(in, endpoint, endpoint.Addresses)
				there.NodeName, there.Zone, there.Hints = &in.Remote, nil, nil
				all = append(all, placed{endpoint: there})
			}
			continue
		}
		addresses := reachable(in, endpoint.Addresses)
		if len(addresses) == 0 {
			lost++
			continue
		}
		cluster, own := elsewhere(in, endpoint.Addresses)
		all = append(all, placed{remoteEndpoint(in, endpoint, addresses), cluster, own})
	}
	// The order among those of a cluster means nothing; a fixed one keeps a mere reshuffle from being written.
	slices.SortStableFunc(all, func(a, b placed) int {
		if (a.cluster == "") != (b.cluster == "") {
			return cmp.Compare(b.cluster, a.cluster)
		}
		return cmp.Or(cmp.Compare(a.cluster, b.cluster), slices.Compare(a.endpoint.Addresses, b.endpoint.Addresses),
			cmp.Compare(targetName(a.endpoint), targetName(b.endpoint)))
	})
	for _, one := range all {
		endpoints = append(endpoints, one.endpoint)
		if one.cluster != "" {
			if direct == nil {
				direct = map[string][]string{}
			}
			direct[one.cluster] = append(direct[one.cluster], one.own)
		}
	}
	return endpoints, direct, lost
}

// selectsStaying tells whether a Service selects by a label that its pods at the provider may not have: then these are named to the provider,
// which knows them.
func selectsStaying(in Input) bool {
	service, ok := in.Parent.(*corev1.Service)
	if !ok {
		return false
	}
	for key := range service.Spec.Selector {
		if !isOurLabel(key) && (gives(key) || slices.Contains(BoundLabels, key) || slices.Contains(in.NotReflected.Labels, key)) {
			return true
		}
	}
	return false
}

// elsewhere is the other provider that has the pod of an endpoint, and its address there, if the Service wants that to be told.
func elsewhere(in Input, addresses []string) (cluster, own string) {
	if in.Provider.Elsewhere == nil || len(addresses) != 1 || in.Parent.GetAnnotations()[offloadingv1beta1.UseDirectConnectionsAnnotation] != "true" {
		return "", ""
	}
	address, err := netip.ParseAddr(addresses[0])
	if err != nil {
		return "", ""
	}
	if cluster, there, found := in.Provider.Elsewhere.Home(address); found && cluster != in.Remote {
		return cluster, there.String()
	}
	return "", ""
}

func targetName(endpoint discoveryv1.Endpoint) string {
	if endpoint.TargetRef == nil {
		return ""
	}
	return endpoint.TargetRef.Name
}

// reachable are the addresses by which the provider reaches an endpoint.
func reachable(in Input, addresses []string) []string {
	var translated []string
	for _, raw := range addresses {
		address, err := netip.ParseAddr(raw)
		if err != nil || address.Zone() != "" {
			continue
		}
		if in.Provider.Addresses != nil {
			there, ok := in.Provider.Addresses.Translate(address)
			if !ok || there.Is4() != address.Is4() {
				continue
			}
			address = there
		}
		translated = append(translated, address.String())
	}
	return translated
}

func remoteEndpoint(in Input, local *discoveryv1.Endpoint, addresses []string) discoveryv1.Endpoint {
	origin := in.Home
	remote := discoveryv1.Endpoint{
		Addresses:  addresses,
		Conditions: *local.Conditions.DeepCopy(),
		Hostname:   local.Hostname,
		NodeName:   &origin,
		Zone:       local.Zone,
	}
	if target := local.TargetRef; target != nil {
		remote.TargetRef = &corev1.ObjectReference{Kind: target.Kind, Name: target.Name, Namespace: in.RemoteNamespace}
	}
	if local.Hints != nil && len(local.Hints.ForZones) > 0 {
		remote.Hints = &discoveryv1.EndpointHints{ForZones: local.Hints.ForZones}
	}
	return remote
}

func whyEndpointSliceStays(in Input, local *discoveryv1.EndpointSlice) *Skip {
	stays := func(reason, format string, args ...any) *Skip {
		return &Skip{Reason: reason, Message: "stays at home: " + fmt.Sprintf(format, args...)}
	}
	service := local.Labels[discoveryv1.LabelServiceName]
	switch {
	case local.Labels[discoveryv1.LabelManagedBy] == offloadingv1beta1.EndpointSliceManager,
		local.Labels[offloadingv1beta1.ManagedByLabel] == offloadingv1beta1.ManagedByShadowEndpointSlice:
		return stays(offloadingv1beta1.ReasonNotReflectable, "it was itself reflected from another cluster")
	case local.Namespace == metav1.NamespaceDefault && service == apiServerService:
		return stays(offloadingv1beta1.ReasonNotReflectable, "each cluster has its own API server")
	case local.AddressType != discoveryv1.AddressTypeIPv4 && local.AddressType != discoveryv1.AddressTypeIPv6:
		return stays(offloadingv1beta1.ReasonNotReflectable, "its endpoints are %s, and only IP addresses can be followed", local.AddressType)
	case len(local.Endpoints) > maxSliceEndpoints || len(local.Ports) > maxSlicePorts:
		return &Skip{Reason: offloadingv1beta1.ReasonTooLarge, Keep: true, Message: fmt.Sprintf(
			"cannot be reflected: it has more than %d endpoints or %d ports", maxSliceEndpoints, maxSlicePorts)}
	case service == "":
		return stays(offloadingv1beta1.ReasonServiceNotReflected, "it has no label %s", discoveryv1.LabelServiceName)
	case in.Parent == nil:
		// Kubernetes deletes the slices of a Service after the Service.
		skip := stays(offloadingv1beta1.ReasonServiceNotReflected, "Service %q does not exist", service)
		skip.Routine = true
		return skip
	}
	if skip := whyNeverReflected(in); skip != nil {
		return skip
	}
	return whyPolicyKeepsEndpointSlice(in, service)
}

// whyPolicyKeepsEndpointSlice follows the policy of the slice's Service, unless the slice itself is annotated.
func whyPolicyKeepsEndpointSlice(in Input, service string) *Skip {
	parent := in
	parent.Local, parent.Policy = in.Parent, in.ParentPolicy
	if skip := whyNeverReflected(parent); skip != nil {
		return &Skip{Reason: offloadingv1beta1.ReasonServiceNotReflected, Message: fmt.Sprintf("Service %q %s", service, skip.Message)}
	}
	own := in
	own.Policy = in.ParentPolicy
	annotations := in.Local.GetAnnotations()
	_, skipped := annotations[offloadingv1beta1.SkipReflectionAnnotation]
	_, allowed := annotations[offloadingv1beta1.AllowReflectionAnnotation]
	if skipped || allowed {
		return WhyNotReflected(own, offloadingv1beta1.DenyList)
	}
	if skip := WhyNotReflected(parent, offloadingv1beta1.DenyList); skip != nil {
		return &Skip{Reason: offloadingv1beta1.ReasonServiceNotReflected, Message: fmt.Sprintf("Service %q %s", service, skip.Message)}
	}
	return nil
}

// whyNothingComesFromOutside finds Services of which no node passes on what comes from outside: with policy Local a node passes it on to the
// endpoints on it alone, and those at a provider are on none. What another provider has counts as being here.
func whyNothingComesFromOutside(in Input, siblings func() []Object) (reason, message string) {
	service, ok := in.Parent.(*corev1.Service)
	if !ok || service.Spec.ExternalTrafficPolicy != corev1.ServiceExternalTrafficPolicyLocal {
		return "", ""
	}
	there := false
	for _, sibling := range siblings() {
		for _, endpoint := range sibling.(*discoveryv1.EndpointSlice).Endpoints {
			switch {
			case endpoint.NodeName == nil:
			case !in.Provider.Nodes[*endpoint.NodeName]:
				return "", ""
			default:
				there = true
			}
		}
	}
	if !there {
		return "", ""
	}
	return offloadingv1beta1.ReasonNoLocalEndpoints, fmt.Sprintf("Nothing that comes from outside is passed on: with externalTrafficPolicy Local "+
		"a node serves the pods on it alone, and all pods are at cluster %q. Set it to Cluster, or keep a pod at home", in.Remote)
}

func endpointSliceChanges(liveObject, wantedObject Object) []Change {
	wanted := wantedObject.(*offloadingv1beta1.ShadowEndpointSlice)
	live, readable := liveObject.(*offloadingv1beta1.ShadowEndpointSlice)
	var changes []Change
	if !readable || !apiequality.Semantic.DeepEqual(live.Spec.Template.Endpoints, wanted.Spec.Template.Endpoints) {
		changes = append(changes, Change{Path: []string{"spec", "template", "endpoints"}, Value: orNothing(wanted.Spec.Template.Endpoints)})
	}
	if !readable || !apiequality.Semantic.DeepEqual(live.Spec.Template.Ports, wanted.Spec.Template.Ports) {
		changes = append(changes, Change{Path: []string{"spec", "template", "ports"}, Value: orNothing(wanted.Spec.Template.Ports)})
	}
	return changes
}

// orNothing is the value that removes an empty list.
func orNothing[V any](list []V) any {
	if len(list) == 0 {
		return nil
	}
	return list
}

func endpointSliceMustRecreate(liveObject, wantedObject Object) string {
	live, wanted := liveObject.(*offloadingv1beta1.ShadowEndpointSlice), wantedObject.(*offloadingv1beta1.ShadowEndpointSlice)
	if live.Spec.Template.AddressType != wanted.Spec.Template.AddressType {
		return "spec.template.addressType"
	}
	return ""
}
