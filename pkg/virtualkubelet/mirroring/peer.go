package mirroring

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/peer"
)

// Peer shows the peer to the reflection engine.
type Peer struct{ *peer.Peer }

// Client implements mirror.Peer.
func (p Peer) Client() (client.WithWatch, error) {
	clients, err := p.Clients()
	if err != nil {
		return nil, err
	}
	return clients.Client, nil
}

// State implements mirror.Peer.
func (p Peer) State() (connected bool, epoch int64) {
	s := p.Peer.State()
	return s.Usable(), s.Epoch // A peer that took our rights back answers everything alike.
}

// Version implements mirror.Peer.
func (p Peer) Version() string { return p.Peer.State().ServerVersion }

// Subscribe implements mirror.Peer.
func (p Peer) Subscribe(f func()) (cancel func()) {
	return p.Peer.Subscribe(func(peer.State) { f() })
}
