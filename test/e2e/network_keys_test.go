package e2e

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// TestNetworkKeysChange changes the keys of both ends of a tunnel, one after the other, as docs/network.md tells an administrator, while pods of all
// nodes keep talking: packets pass again, and no connection is lost (F7).
func TestNetworkKeysChange(t *testing.T) {
	the.alone(t)
	c := newChaos(t)
	c.traffic(t)
	eachWay(func(s, peer *side) {
		t.Run(s.name, func(t *testing.T) {
			the.recordFailure(t)
			did := c.changesKeys(t, s)
			ended := time.Now()
			all := c.passes(t, ended, 2*around)
			for name, flow := range all {
				if flow.Lost > 0 {
					t.Errorf("after %s: an open connection, %s, was lost: %s", did, name, flow.Why)
				}
			}
			t.Logf("%s; packets passed %s later at the latest, open connections %s", did, lateness(all, ended, false), lateness(all, ended, true))
			eventually(t, around, s.name+" to be connected", s.connected(peer.name, networkingv1beta1.Connected))
		})
	})
}

// changesKeys has a gateway get other keys, and tells its peer.
func (c *chaos) changesKeys(t *testing.T, s *side) string {
	begun := time.Now()
	pod := c.gateway(t, s)
	secret := &corev1.Secret{ObjectMeta: named(pod.Namespace, networkingv1beta1.GatewayKeysSecret(other(s).name))}
	s.reads(t, secret)
	before := secret.Data[networkingv1beta1.PublicKeyKey]
	s.deletes(t, secret)
	s.deletes(t, &pod, client.GracePeriodSeconds(0))
	s.misses(t, &pod, "the deleted gateway")
	c.gateway(t, s)
	the.liqoctl(t, time.Minute, the.pair("network", "connect", "--gw-server-service-type", "NodePort")...).succeeds(t)

	s.reads(t, secret)
	told := &networkingv1beta1.PublicKey{ObjectMeta: ofPeer(s)}
	other(s).reads(t, told)
	if now := secret.Data[networkingv1beta1.PublicKeyKey]; bytes.Equal(now, before) || !bytes.Equal(now, told.Spec.PublicKey) {
		t.Errorf("%s had key %x and has %x; %s was told %x", s.name, before, now, other(s).name, told.Spec.PublicKey)
	}
	return fmt.Sprintf("the keys of %s changed within %s", s.name, time.Since(begun).Round(time.Millisecond))
}
