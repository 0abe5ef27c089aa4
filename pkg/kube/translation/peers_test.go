package translation

import (
	"net/netip"
	"reflect"
	"testing"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// of is a Configuration of another peer, in its tenant namespace.
func of(peer, pod, external string) *networkingv1beta1.Configuration {
	c := configuration(pod, external)
	c.Namespace, c.Labels = corev1beta1.TenantNamespacePrefix+peer, map[string]string{corev1beta1.RemoteClusterIDLabel: peer}
	return c
}

// Peers with equal ranges are told apart by where this cluster sees them.
func TestHome(t *testing.T) {
	misplaced, pending := of("turin", "10.81.0.0/16", "10.91.0.0/16"), of("genoa", "10.82.0.0/16", "10.92.0.0/16")
	misplaced.Namespace, pending.Status.Remote = "default", nil
	peers := PeersOf([]*networkingv1beta1.Configuration{
		of("milan", "10.61.0.0/16", "10.71.0.0/16"), of("naples", "10.62.0.0/16", "10.72.0.0/16"), misplaced, pending,
	})
	for seen, want := range map[string]string{
		"10.61.2.2": "milan 10.244.2.2", "10.62.2.2": "naples 10.244.2.2", "10.71.0.2": "", "10.81.2.2": "", "10.82.2.2": "", "10.244.2.2": "", "fd00::1": "",
	} {
		cluster, own, found := peers.Home(netip.MustParseAddr(seen))
		got := ""
		if found {
			got = cluster + " " + own.String()
		}
		if got != want {
			t.Errorf("%s is %q, want %q", seen, got, want)
		}
	}
	if other := PeersOf([]*networkingv1beta1.Configuration{of("milan", "10.62.0.0/16", "10.71.0.0/16")}); reflect.DeepEqual(peers, other) {
		t.Errorf("other peers are the same: %v", other)
	}
}
