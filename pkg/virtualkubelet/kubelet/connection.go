package kubelet

import (
	"context"

	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/peer"
)

// followPeer tells the node what is known of the provider. The platform is asked for once per connection.
func (n *Kubelet) followPeer(ctx context.Context) error {
	p := n.options.Peer
	changed := signal.New()
	defer p.Subscribe(func(peer.State) { changed.Raise() })()
	var platform string
	for {
		state := p.State()
		if state.Connected && platform == "" {
			platform = n.platform(ctx)
		}
		if !state.Connected {
			platform = ""
		}
		n.tellConnection(platform)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// giveSigns gives the provider a sign of life after each renewal of the node's Lease. Without renewals this cluster takes the node for lost and
// may replace its pods: then the provider hears nothing either.
func (n *Kubelet) giveSigns(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.renewed:
		}
		if err := n.pods.Signs.Give(ctx); err != nil {
			klog.FromContext(ctx).V(1).Info("A sign of life did not come to the provider", "reason", err.Error())
		}
	}
}

// tellConnection tells the node what is known of the provider now. While nothing is known yet, nothing is told: a restart is no news
// of the provider.
func (n *Kubelet) tellConnection(platform string) {
	if state := n.options.Peer.State(); state.Connected || state.Lost() {
		n.reporter.SetConnection(state.Usable(), state.Reason, state.Message, state.ServerVersion, platform)
	}
}

func (n *Kubelet) platform(ctx context.Context) string {
	clients, err := n.options.Peer.Clients()
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
