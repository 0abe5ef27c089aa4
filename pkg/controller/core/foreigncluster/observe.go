package foreigncluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/conditions"
)

// Probe is what is known about a provider's API server.
type Probe struct {
	// Connected says that it answered the last probe.
	Connected bool
	// Reason and Message say why not, or what else is wrong with it.
	Reason, Message string
	// Known says that it is being probed at all.
	Known bool
}

// Facts are what exists of the peering with one cluster.
type Facts struct {
	// Tenants by which the peer consumes from here.
	Tenants []authv1beta1.Tenant
	// Identities by which we reach the peer's control plane.
	Identities []authv1beta1.Identity
	// Slices are the ResourceSlices in either direction.
	Slices []authv1beta1.ResourceSlice
	// VirtualNodes that stand for shares of the peer.
	VirtualNodes []offloadingv1beta1.VirtualNode
	// Nodes of those VirtualNodes, by name.
	Nodes map[string]*corev1.Node
	// Maps is how many NamespaceMaps there are, in either direction.
	Maps int
	// Network between the two clusters.
	Network Network
	// Namespace is the local tenant namespace; empty if there is none.
	Namespace string
	// Probe of the peer's API server.
	Probe Probe
	// CutOff says that the peer's reach into this cluster was revoked, and how that is taken back; empty if it was not.
	CutOff string
}

// Any tells whether anything refers to the peer. A tenant namespace alone does not.
func (f *Facts) Any() bool {
	return len(f.Tenants)+len(f.Identities)+len(f.Slices)+len(f.VirtualNodes)+f.Maps > 0 || f.Network.Any()
}

// revoked tells whether the peer is a consumer, and no certificate of it has rights here any more.
func (f *Facts) revoked() bool {
	return len(f.Tenants) > 0 && !slices.ContainsFunc(f.Tenants, func(t authv1beta1.Tenant) bool { return !identity.AccessOf(&t.Spec).Revoked })
}

// role of the remote cluster.
func (f *Facts) role() corev1beta1.RoleType {
	consumer := len(f.Tenants) > 0
	provider := len(f.Identities) > 0 || len(f.VirtualNodes) > 0
	switch {
	case consumer && provider:
		return corev1beta1.ConsumerAndProviderRole
	case consumer:
		return corev1beta1.ConsumerRole
	case provider:
		return corev1beta1.ProviderRole
	default:
		return corev1beta1.UnknownRole
	}
}

// observation is one condition without its time.
type observation struct {
	kind, status, reason, message string
}

// identity tells whether there is an identity to reach the provider with, and whether the provider still grants it its rights. Until
// that was asked for in this process it is what was last observed: a restart is no news.
func (f *Facts) identity(last []corev1beta1.Condition) observation {
	old := conditions.Find(last, corev1beta1.AuthIdentityControlPlaneStatus)
	switch {
	case f.Probe.Known && f.Probe.Reason == corev1beta1.ReasonRightsRevoked:
		return observation{corev1beta1.AuthIdentityControlPlaneStatus, corev1beta1.StatusError, f.Probe.Reason, f.Probe.Message}
	case !f.Probe.Connected && old != nil && old.Reason == corev1beta1.ReasonRightsRevoked:
		return observation{old.Type, old.Status, old.Reason, old.Message}
	}
	o := observation{corev1beta1.AuthIdentityControlPlaneStatus, corev1beta1.StatusPending, corev1beta1.ReasonIdentityMissing,
		"waiting for the identity's kubeconfig"}
	for i := range f.Identities {
		id := &f.Identities[i]
		if c := meta.FindStatusCondition(id.Status.Conditions, corev1beta1.ConditionReady); c != nil && c.Status == "False" {
			o.status, o.reason, o.message = corev1beta1.StatusError, c.Reason, fmt.Sprintf("Identity %s: %s", id.Name, c.Message)
		} else if id.Status.KubeconfigSecretRef != nil {
			return observation{o.kind, corev1beta1.StatusEstablished, corev1beta1.ReasonIdentityReady, "the identity's kubeconfig is in place"}
		}
	}
	return o
}

// tenant tells whether the consumer's Tenant was accepted.
func (f *Facts) tenant() observation {
	o := observation{corev1beta1.AuthTenantStatus, corev1beta1.StatusEstablished, corev1beta1.ReasonTenantReady, "the tenant has its namespace and certificate"}
	for i := range f.Tenants {
		t := &f.Tenants[i]
		if t.Status.TenantNamespace != "" && t.Status.AuthParams != nil {
			if c := meta.FindStatusCondition(t.Status.Conditions, authv1beta1.ConsumerSeenCondition); c != nil && c.Status == "False" {
				return observation{o.kind, corev1beta1.StatusError, c.Reason, fmt.Sprintf("Tenant %s: %s", t.Name, c.Message)}
			}
			continue
		}
		o.status, o.reason, o.message = corev1beta1.StatusPending, corev1beta1.ReasonTenantNotReady, fmt.Sprintf("Tenant %s has no certificate yet", t.Name)
		if c := meta.FindStatusCondition(t.Status.Conditions, corev1beta1.ConditionReady); c != nil && c.Status == "False" {
			o.message = fmt.Sprintf("Tenant %s: %s", t.Name, c.Message)
		}
	}
	return o
}

// slices tells whether the provider grants what is asked of it; nil if nothing is.
func (f *Facts) slices() []observation {
	asked := false
	var denied, cordoned []string
	for i := range f.Slices {
		s := &f.Slices[i]
		if s.Labels[corev1beta1.ReplicatedLabel] == "true" {
			continue // what the peer asks of us
		}
		asked = true
		if why := s.WhyDenied(); why != "" {
			denied = append(denied, why)
		} else if why := s.WhyCordoned(); why != "" {
			cordoned = append(cordoned, why)
		}
	}
	switch {
	case !asked:
		return nil
	case len(denied) > 0:
		return []observation{{corev1beta1.AuthResourceSliceStatus, corev1beta1.StatusError, corev1beta1.ReasonResourceSliceDenied, strings.Join(denied, "; ")}}
	case len(cordoned) > 0:
		why := strings.Join(cordoned, "; ")
		return []observation{{corev1beta1.AuthResourceSliceStatus, corev1beta1.StatusSomeNotReady, corev1beta1.ReasonResourceSliceCordoned, why}}
	default:
		return []observation{{corev1beta1.AuthResourceSliceStatus, corev1beta1.StatusEstablished, corev1beta1.ReasonResourceSliceGranted,
			"the provider denies no ResourceSlice"}}
	}
}

// kubelets tells whether the virtual kubelets run.
func (f *Facts) kubelets() observation {
	var waiting []string
	for i := range f.VirtualNodes {
		vn := &f.VirtualNodes[i]
		if !conditions.Is(vn.Status.Conditions, offloadingv1beta1.VirtualKubeletCondition, offloadingv1beta1.StatusRunning) {
			waiting = append(waiting, vn.Name)
		}
	}
	return parts(corev1beta1.OffloadingVirtualNodeStatus, len(f.VirtualNodes), waiting, "virtual kubelets",
		corev1beta1.ReasonVirtualKubeletReady, corev1beta1.ReasonVirtualKubeletNotReady)
}

// nodes tells whether the Nodes of the VirtualNodes that want one are ready.
func (f *Facts) nodes() observation {
	var waiting []string
	wanted := 0
	for i := range f.VirtualNodes {
		vn := &f.VirtualNodes[i]
		if !ptr.Deref(vn.Spec.CreateNode, true) {
			continue
		}
		wanted++
		if !nodeReady(f.Nodes[vn.Name]) {
			waiting = append(waiting, vn.Name)
		}
	}
	return parts(corev1beta1.OffloadingNodeStatus, wanted, waiting, "nodes", corev1beta1.ReasonNodeReady, corev1beta1.ReasonNodeNotReady)
}

func nodeReady(node *corev1.Node) bool {
	if node == nil {
		return false
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// parts sums up a number of equal parts.
func parts(kind string, all int, waiting []string, what, ready, notReady string) observation {
	slices.Sort(waiting)
	switch {
	case all == 0:
		return observation{kind, corev1beta1.StatusNone, "", "there are no " + what}
	case len(waiting) == 0:
		return observation{kind, corev1beta1.StatusReady, ready, fmt.Sprintf("all %d %s are ready", all, what)}
	case len(waiting) == all:
		return observation{kind, corev1beta1.StatusNotReady, notReady, fmt.Sprintf("%s that are not ready: %s", what, strings.Join(waiting, ", "))}
	default:
		return observation{kind, corev1beta1.StatusSomeNotReady, notReady, fmt.Sprintf("%s that are not ready: %s", what, strings.Join(waiting, ", "))}
	}
}

// api tells whether the provider's API server answers. Until the first probe of this process it is what was last observed:
// a restart is no news.
func (f *Facts) api(last []corev1beta1.Condition) observation {
	o := observation{kind: corev1beta1.APIServerStatus}
	old := conditions.Find(last, o.kind)
	switch {
	case !f.Probe.Known && old != nil:
		o.status, o.reason, o.message = old.Status, old.Reason, old.Message
	case !f.Probe.Known:
		o.status, o.reason, o.message = corev1beta1.StatusNone, corev1beta1.ReasonIdentityMissing, "the peer's API server is not probed yet"
	case f.Probe.Connected && f.Probe.Reason != "" && f.Probe.Reason != corev1beta1.ReasonRightsRevoked:
		o.status, o.reason, o.message = corev1beta1.StatusEstablished, f.Probe.Reason, f.Probe.Message
	case f.Probe.Connected:
		o.status, o.reason, o.message = corev1beta1.StatusEstablished, corev1beta1.ReasonAPIServerReady, "the peer's API server answers"
	default:
		o.status, o.reason, o.message = corev1beta1.StatusError, f.Probe.Reason, f.Probe.Message
		if o.reason == "" {
			o.reason = corev1beta1.ReasonAPIServerUnreachable
		}
	}
	return o
}

// good tells whether an observation is the one hoped for.
func (o observation) good() bool {
	return o.status == corev1beta1.StatusEstablished || o.status == corev1beta1.StatusReady || o.status == corev1beta1.StatusNone
}

// apiEndpoint returns the address and the proxy of the peer's API server.
func (f *Facts) apiEndpoint() (server, proxy, namespace string) {
	if len(f.Identities) == 0 {
		return "", "", ""
	}
	spec := &f.Identities[0].Spec
	return spec.AuthParams.APIServer, ptr.Deref(spec.AuthParams.ProxyURL, ""), ptr.Deref(spec.Namespace, "")
}

// sort puts lists into an order of their own, so that nothing depends on the order of a cache.
func (f *Facts) sort() {
	slices.SortFunc(f.Identities, func(a, b authv1beta1.Identity) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(f.Slices, func(a, b authv1beta1.ResourceSlice) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(f.Tenants, func(a, b authv1beta1.Tenant) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(f.VirtualNodes, func(a, b offloadingv1beta1.VirtualNode) int { return strings.Compare(a.Name, b.Name) })
	if f.Nodes == nil {
		f.Nodes = map[string]*corev1.Node{}
	}
	f.Nodes = maps.Clone(f.Nodes)
}
