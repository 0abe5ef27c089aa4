package main

import (
	"context"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
	"liqo.io/liqo/pkg/virtualkubelet/sign"
)

// mirrorPeer shows the peer to the reflection engine.
type mirrorPeer struct{ *peer.Peer }

func (p mirrorPeer) Client() (client.WithWatch, error) {
	clients, err := p.Clients()
	if err != nil {
		return nil, err
	}
	return clients.Client, nil
}

func (p mirrorPeer) State() (connected bool, epoch int64) {
	s := p.Peer.State()
	return s.Usable(), s.Epoch // A peer that took our rights back answers everything alike.
}

func (p mirrorPeer) Version() string { return p.Peer.State().ServerVersion }

func (p mirrorPeer) Subscribe(f func()) (cancel func()) {
	return p.Peer.Subscribe(func(peer.State) { f() })
}

// followPeer tells the node what is known of the provider. The platform is asked for once per connection.
func followPeer(ctx context.Context, p *peer.Peer, reporter *node.Reporter) error {
	changed := make(chan struct{}, 1)
	changes := wake(changed)
	cancel := p.Subscribe(func(peer.State) { changes() })
	defer cancel()
	var platform string
	for {
		state := p.State()
		if state.Connected && platform == "" {
			platform = platformOf(ctx, p)
		}
		if !state.Connected {
			platform = ""
		}
		tellConnection(p, reporter, platform)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// wake returns what has somebody who waits for a channel of one go round, and does not block.
func wake(waiting chan<- struct{}) func() {
	return func() {
		select {
		case waiting <- struct{}{}:
		default:
		}
	}
}

// giveSigns gives the provider a sign of life after each renewal of the node's Lease. Without renewals this cluster takes the node for lost and
// may replace its pods: then the provider hears nothing either.
func giveSigns(ctx context.Context, renewed <-chan struct{}, signs *sign.Giver) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-renewed:
		}
		if err := signs.Give(ctx); err != nil {
			klog.FromContext(ctx).V(1).Info("A sign of life did not come to the provider", "reason", err.Error())
		}
	}
}

// tellConnection tells the node what is known of the provider now. While nothing is known yet, nothing is told: a restart is no news
// of the provider.
func tellConnection(p *peer.Peer, reporter *node.Reporter, platform string) {
	if state := p.State(); state.Connected || state.Lost() {
		reporter.SetConnection(state.Usable(), state.Reason, state.Message, state.ServerVersion, platform)
	}
}

// twinRights are the rights that the provider grants the virtual kubelet as long as it has twins there.
type twinRights struct {
	mu    sync.Mutex
	twins []string
}

func (t *twinRights) set(mapping map[string]string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.twins = slices.Sorted(maps.Values(mapping))
}

func (t *twinRights) wanted() []peer.Right {
	t.mu.Lock()
	defer t.mu.Unlock()
	var rights []peer.Right
	for _, twin := range t.twins {
		rights = append(rights, peer.Right{Namespace: twin, Verb: "list", Group: offloadingv1beta1.GroupVersion.Group, Resource: "shadowpods"})
	}
	return rights
}

// revoked is why, as this cluster's controller found out, the provider does not let the VirtualNode work; empty if it does.
func revoked(vn *offloadingv1beta1.VirtualNode) string {
	if c := conditions.Find(vn.Status.All(), offloadingv1beta1.RightsCondition); c != nil && c.Status == string(corev1.ConditionFalse) {
		return c.Message
	}
	return ""
}

func platformOf(ctx context.Context, p *peer.Peer) string {
	clients, err := p.Clients()
	if err != nil {
		return ""
	}
	info, err := clients.Kube.Discovery().ServerVersion()
	if err != nil {
		klog.FromContext(ctx).V(1).Info("The provider's platform cannot be had", "reason", err.Error())
		return ""
	}
	return info.Platform
}

// mappingOf is what a NamespaceMap says: the local intent, and the part of it that the provider acknowledged. Namespaces that are never
// offloaded are not intended, whoever wrote them into the map.
func mappingOf(m *offloadingv1beta1.NamespaceMap, home placement.HomeNamespaces) pod.Mapping {
	if placement.IsPeersMap(m) {
		return pod.Mapping{} // What the peer wants here says nothing of what is wanted there.
	}
	desired := maps.Clone(m.Spec.DesiredMapping)
	maps.DeleteFunc(desired, func(namespace, _ string) bool { return home.WhyNeverOffloaded(namespace, nil) != "" })
	return pod.Mapping{
		Known: true, Desired: desired,
		Effective: placement.EffectiveMapping(desired, m.Status.CurrentMapping),
		Leaving:   placement.LeavingTwins(desired, m.Status.CurrentMapping),
	}
}

// settingsOf is what a VirtualNode says about its pods.
func settingsOf(ctx context.Context, vn *offloadingv1beta1.VirtualNode, not reflection.NotReflected, own []netip.Prefix) pod.Settings {
	s := pod.Settings{Patch: vn.Spec.OffloadingPatch.DeepCopy(), NotReflected: not, OwnPrefixes: own}
	for raw := range strings.SplitSeq(vn.Annotations[offloadingv1beta1.RemotePodCIDRsAnnotation], ",") {
		if raw = strings.TrimSpace(raw); raw == "" || raw == offloadingv1beta1.NoPodCIDRs {
			continue
		}
		prefix, err := netip.ParsePrefix(raw)
		if err != nil {
			klog.FromContext(ctx).Info("A range of the provider's pods is not a prefix and is ignored", "range", raw)
			continue
		}
		s.PodPrefixes = append(s.PodPrefixes, prefix.Masked())
	}
	return s
}

// overCommitted is what the VirtualNode says of more that runs than is offered.
func overCommitted(vn *offloadingv1beta1.VirtualNode) string {
	if over := conditions.Find(vn.Status.All(), offloadingv1beta1.OverCommittedCondition); over != nil {
		return over.Message
	}
	return ""
}

func capacityOf(vn *offloadingv1beta1.VirtualNode) (corev1.ResourceList, []corev1.ContainerImage, *authv1beta1.ProviderNodes) {
	return vn.Spec.ResourceQuota.Hard, vn.Spec.Images, vn.Spec.ProviderNodes
}
