package main

import (
	"context"
	"maps"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
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
	return s.Connected, s.Epoch
}

func (p mirrorPeer) Version() string { return p.Peer.State().ServerVersion }

func (p mirrorPeer) Subscribe(f func()) (cancel func()) {
	return p.Peer.Subscribe(func(peer.State) { f() })
}

// followPeer tells the node what is known of the provider. The platform is asked for once per connection.
func followPeer(ctx context.Context, p *peer.Peer, reporter *node.Reporter) error {
	changed := make(chan struct{}, 1)
	cancel := p.Subscribe(func(peer.State) {
		select {
		case changed <- struct{}{}:
		default:
		}
	})
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
		// While nothing is known yet, nothing is told: a restart is no news of the provider.
		if state.Connected || state.Lost() {
			reporter.SetConnection(state.Connected, state.Reason, state.Message, state.ServerVersion, platform)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
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
		if raw = strings.TrimSpace(raw); raw == "" {
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

func capacityOf(vn *offloadingv1beta1.VirtualNode) (corev1.ResourceList, []corev1.ContainerImage) {
	return vn.Spec.ResourceQuota.Hard, vn.Spec.Images
}
