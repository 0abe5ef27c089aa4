package main

import (
	"context"

	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/node"
	"liqo.io/liqo/pkg/virtualkubelet/sign"
)

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
