package kubelet

import (
	"cmp"
	"context"

	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

// followPeer tells the node what is known of the provider. The platform is asked for once per connection.
func (n *Kubelet) followPeer(ctx context.Context, reporter *node.Reporter) error {
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
		reporter.Facts.Change(func(f *node.Facts) { n.hear(f, platform) })
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// giveSigns gives the provider a sign of life after each renewal of the node's Lease. Without renewals this cluster takes the node for lost and
// may replace its pods: then the provider hears nothing either.
func (n *Kubelet) giveSigns(ctx context.Context, pods *pod.Reconciler) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.renewed:
		}
		if err := pods.Signs.Give(ctx); err != nil {
			klog.FromContext(ctx).V(1).Info("A sign of life did not come to the provider", "reason", err.Error())
		}
	}
}

// hear takes note of what is known of the provider now. While nothing is known yet, nothing is told: a restart is no news of the provider. Without
// a version or a platform the last known one stays.
func (n *Kubelet) hear(f *node.Facts, platform string) {
	state := n.options.Peer.State()
	if !state.Connected && !state.Lost() {
		return
	}
	f.Heard, f.Connected, f.Reason, f.Message = true, state.Usable(), state.Reason, state.Message
	f.Version, f.Platform = cmp.Or(state.ServerVersion, f.Version), cmp.Or(platform, f.Platform)
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
