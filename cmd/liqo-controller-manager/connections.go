package main

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/peer"
)

// connections remembers what the replication's connections last said of each provider, for the ForeignClusters.
type connections struct {
	mu      sync.Mutex
	states  map[string]peer.State
	peers   map[string]*peer.Peer
	changed chan event.GenericEvent
	// meter shows them as metrics.
	meter *peer.Meter
}

func newConnections(meter *peer.Meter) *connections {
	// The queue behind the channel merges events of one provider; this is only what may pile up before it runs.
	return &connections{states: map[string]peer.State{}, peers: map[string]*peer.Peer{}, changed: make(chan event.GenericEvent, 1024), meter: meter}
}

// set is told of each change. It must not block: an event that finds no room is not missed for long, because every
// other change of the ForeignCluster reads the newest state too.
func (c *connections) set(clusterID string, state peer.State) {
	c.mu.Lock()
	c.states[clusterID] = state
	c.mu.Unlock()
	select {
	case c.changed <- event.GenericEvent{Object: &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: clusterID}}}:
	default:
	}
}

// connect is given each new connection.
func (c *connections) connect(clusterID string, connection *peer.Peer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peers[clusterID] = connection
}

// AnsweredSince implements the ForeignCluster controller's Prober.
func (c *connections) AnsweredSince(clusterID string, since time.Time) bool {
	c.mu.Lock()
	connection := c.peers[clusterID]
	c.mu.Unlock()
	return connection != nil && connection.AnsweredSince(since)
}

// State implements the ForeignCluster controller's Prober.
func (c *connections) State(clusterID string) (connected bool, reason, message string, known bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state, known := c.states[clusterID]
	switch {
	case state.Connected && state.Reason == peer.ReasonThrottled:
		return true, corev1beta1.ReasonRemoteThrottled, state.Message, true
	case state.Revoked():
		return true, corev1beta1.ReasonRightsRevoked, state.Message, true
	case state.Connected:
		return true, "", "", true
	case !known || !state.Lost():
		return false, "", "", false
	case state.Reason == peer.ReasonUnauthorized:
		return false, corev1beta1.ReasonAPIServerRefused, state.Message, true
	default:
		return false, corev1beta1.ReasonAPIServerUnreachable, state.Message, true
	}
}
