package node

import (
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/peer"
)

// Reasons of the node's conditions.
const (
	// ReasonReady: the provider answers and offers resources.
	ReasonReady = "VirtualKubeletReady"
	// ReasonInsufficientResources: the provider grants no CPU or no memory.
	ReasonInsufficientResources = "InsufficientResources"
	// ReasonSufficientResources: the provider grants CPU and memory.
	ReasonSufficientResources = "SufficientResources"
	// ReasonNetworkNotManaged: the virtual kubelet does not watch over the network between the clusters.
	ReasonNetworkNotManaged = "NetworkNotManaged"
	// ReasonNetworkConnected: the other end of the tunnel to the provider answers.
	ReasonNetworkConnected = "NetworkConnected"
	// ReasonNetworkNotConnected: the network between the clusters is configured, and the other end of the tunnel does not answer.
	ReasonNetworkNotConnected = "NetworkNotConnected"
)

// Facts are what the status of a virtual node is made of.
type Facts struct {
	Said
	// Told says that this cluster said what it does, Heard that it is known whether the provider answers.
	Told, Heard bool
	// Hostname and Address of the node. The address is that of the virtual kubelet's pod.
	Hostname, Address string
	// Port of the kubelet endpoint.
	Port int32
	// Cluster is the provider's ID.
	Cluster string
	// Version and Platform (os/arch) of the provider's API server; empty if not known yet.
	Version, Platform string
	// NoFeatures says that this cluster's API server does not know what features a node declares (Kubernetes before 1.36).
	NoFeatures bool
	// Connected says that the provider answers and lets us work; otherwise Reason and Message say why not. If it asks for fewer requests they
	// say so.
	Connected       bool
	Reason, Message string
}

// Said is what this cluster says of the node.
type Said struct {
	// Capacity of the node, all of it allocatable.
	Capacity corev1.ResourceList
	// Images that the provider holds.
	Images []corev1.ContainerImage
	// Nodes of the provider, which know its platform better; nil if it does not tell.
	Nodes *authv1beta1.ProviderNodes
	// Held says that removals wait for a confirmation; empty if none does.
	Held string
	// Over says by how much more runs than the provider offers; empty if no more does.
	Over string
	// Network is the state of the network to the provider.
	Network Network
}

// Network is the state of the network between the clusters.
type Network struct {
	// Watched says that there is a network that is watched over.
	Watched bool
	// Connected says that the other end of the tunnel answers; if not, Message says more.
	Connected bool
	Message   string
	// Down says that it answered and does not any more, or that nobody is there who could ask it. A gateway that has just started may not
	// have been answered yet: that proves nothing.
	Down bool
}

// condition is what a Node says of the network.
func (n Network) condition() corev1.NodeCondition {
	c := corev1.NodeCondition{Type: corev1.NodeNetworkUnavailable, Status: corev1.ConditionFalse,
		Reason: ReasonNetworkNotManaged, Message: "the network between the clusters is not watched over"}
	switch {
	case n.Watched && n.Connected:
		c.Reason, c.Message = ReasonNetworkConnected, "the other end of the tunnel to the provider answers"
	case n.Watched:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, ReasonNetworkNotConnected, conditions.Bound(n.Message)
	}
	return c
}

// Status returns the status of the node, and whether it differs from the old one. Fields of others stay.
func Status(old *corev1.NodeStatus, f Facts, now time.Time) (*corev1.NodeStatus, bool) {
	status := old.DeepCopy()
	status.Capacity, status.Allocatable = maps.Clone(f.Capacity), maps.Clone(f.Capacity)
	if len(status.Capacity) == 0 {
		status.Capacity, status.Allocatable = nil, nil
	}
	status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: f.Address}, {Type: corev1.NodeHostName, Address: f.Hostname},
	}
	status.DaemonEndpoints.KubeletEndpoint.Port = f.Port
	status.Images = slices.Clone(f.Images)
	info(&status.NodeInfo, f)
	if f.Version != "" && !f.NoFeatures {
		status.DeclaredFeatures = declared(f.Version)
	}
	for _, c := range wanted(f) {
		setCondition(status, c, metav1.NewTime(now.Truncate(time.Second)))
	}
	status.Conditions = slices.DeleteFunc(status.Conditions, func(c corev1.NodeCondition) bool {
		return f.Held == "" && c.Type == offloadingv1beta1.RemovalsHeldCondition || f.Over == "" && c.Type == offloadingv1beta1.OverCommittedCondition
	})
	return status, !apiequality.Semantic.DeepEqual(old, status)
}

// declared are the features that a node has which stands for a provider of this version, and which cross: this cluster's API server and
// scheduler refuse what needs others. From 1.36 on providers resize what a running pod has as a whole and its init containers, and start all
// containers of a pod again by a rule of one. Where the provider's nodes are older, its scheduler says so of the pod.
func declared(provider string) []string {
	if v, err := version.ParseGeneric(provider); err != nil || v.LessThan(version.MustParseGeneric("1.36")) {
		return nil
	}
	return []string{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"}
}

// info keeps what is known while the provider is away.
func info(info *corev1.NodeSystemInfo, f Facts) {
	if f.Version != "" {
		info.KubeletVersion = f.Version
	}
	if f.Nodes != nil {
		info.OperatingSystem, info.Architecture = f.Nodes.OperatingSystem, f.Nodes.Architecture
	} else if os, arch, ok := strings.Cut(f.Platform, "/"); ok {
		info.OperatingSystem, info.Architecture = os, arch
	}
	info.OSImage = "cluster " + f.Cluster
	info.ContainerRuntimeVersion = "liqo://" + f.Cluster
}

func wanted(f Facts) []corev1.NodeCondition {
	sufficient := !f.Capacity.Cpu().IsZero() && !f.Capacity.Memory().IsZero()
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: ReasonReady,
		Message: "the provider's API server answers"}
	pressure := corev1.NodeCondition{Status: corev1.ConditionFalse, Reason: ReasonSufficientResources,
		Message: "the provider grants resources"}
	if !sufficient {
		pressure = corev1.NodeCondition{Status: corev1.ConditionTrue, Reason: ReasonInsufficientResources,
			Message: "the provider grants no CPU or no memory"}
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, pressure.Reason, pressure.Message
	}
	if f.Connected && sufficient && f.Reason == peer.ReasonThrottled {
		ready.Reason, ready.Message = f.Reason, conditions.Bound(f.Message)
	}
	if !f.Connected {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, f.Reason, conditions.Bound(f.Message)
	}
	list := []corev1.NodeCondition{ready}
	for _, t := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure} {
		pressure.Type = t
		list = append(list, pressure)
	}
	if f.Held != "" {
		list = append(list, corev1.NodeCondition{Type: offloadingv1beta1.RemovalsHeldCondition, Status: corev1.ConditionTrue,
			Reason: offloadingv1beta1.ReasonManyAtOnce, Message: conditions.Bound(f.Held)})
	}
	if f.Over != "" {
		list = append(list, corev1.NodeCondition{Type: offloadingv1beta1.OverCommittedCondition, Status: corev1.ConditionTrue,
			Reason: offloadingv1beta1.ReasonMoreRunsThanIsOffered, Message: conditions.Bound(f.Over)})
	}
	return append(list, f.Network.condition())
}

// setCondition writes a condition; its times move only with it, because the Lease is the heartbeat.
func setCondition(status *corev1.NodeStatus, c corev1.NodeCondition, now metav1.Time) {
	c.LastHeartbeatTime, c.LastTransitionTime = now, now
	for i := range status.Conditions {
		old := &status.Conditions[i]
		if old.Type != c.Type {
			continue
		}
		if old.Status == c.Status {
			c.LastTransitionTime = old.LastTransitionTime
			if old.Reason == c.Reason && old.Message == c.Message {
				c.LastHeartbeatTime = old.LastHeartbeatTime
			}
		}
		*old = c
		return
	}
	status.Conditions = append(status.Conditions, c)
}

// News is what an Event has to say about a change of the node's status: that it is not ready any more, that it is for another reason of
// ours, or that it is ready again; an empty kind if there is nothing. What Kubernetes' node controller writes when it hears nothing of
// the node, which is so while the provider is lost, is none.
func News(before, after *corev1.NodeStatus) (kind, reason, message string) {
	was, is := readyOf(before), readyOf(after)
	switch {
	case was == nil || is == nil || was.Status == is.Status && was.Reason == is.Reason:
		return "", "", ""
	case is.Status == corev1.ConditionTrue && was.Status != corev1.ConditionTrue:
		return corev1.EventTypeNormal, is.Reason, is.Message
	case is.Status == corev1.ConditionFalse && was.Status != corev1.ConditionUnknown:
		return corev1.EventTypeWarning, is.Reason, is.Message
	}
	return "", "", ""
}

func readyOf(status *corev1.NodeStatus) *corev1.NodeCondition {
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.NodeReady {
			return &status.Conditions[i]
		}
	}
	return nil
}
