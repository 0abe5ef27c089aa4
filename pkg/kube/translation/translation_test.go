package translation

import (
	"context"
	"net/netip"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

func ranges(pod, external string) networkingv1beta1.ClusterConfig {
	return networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
		Pod: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(pod)}, External: []networkingv1beta1.CIDR{networkingv1beta1.CIDR(external)}}}
}

func about(peer, name string, age time.Duration) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: corev1beta1.TenantNamespacePrefix + "rome", Name: name,
		Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer}, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))}
}

func configuration(pod, external string) *networkingv1beta1.Configuration {
	seen := ranges(pod, external)
	return &networkingv1beta1.Configuration{ObjectMeta: about("rome", "rome", 0),
		Spec: networkingv1beta1.ConfigurationSpec{Remote: ranges("10.244.0.0/16", "10.70.0.0/16")}, Status: networkingv1beta1.ConfigurationStatus{Remote: &seen}}
}

func TestOf(t *testing.T) {
	peer, err := Of(configuration("10.61.0.0/16", "10.71.0.0/16"))
	if err != nil || !peer.Known {
		t.Fatalf("%+v, %v", peer, err)
	}
	for own, want := range map[string]string{"10.244.2.2": "10.61.2.2", "10.70.0.2": "10.71.0.2"} {
		if got, ok := peer.Translate(netip.MustParseAddr(own)); !ok || got.String() != want {
			t.Errorf("%s is seen as %s", own, got)
		}
	}
	if got, ok := peer.Translate(netip.MustParseAddr("10.61.2.2")); ok {
		t.Errorf("an address of nobody is seen as %s", got)
	}
	if len(peer.Pods) != 1 || peer.Pods[0].String() != "10.244.0.0/16" || len(peer.Seen) != 2 {
		t.Errorf("pods %s, seen %s", peer.Pods, peer.Seen)
	}
	if peer, err := Of(nil); err != nil || peer.Known || peer.String() != "identity" {
		t.Errorf("without a Configuration: %+v, %v", peer, err)
	}
	waiting := configuration("10.61.0.0/16", "10.71.0.0/16")
	waiting.Status.Remote = nil
	for name, c := range map[string]*networkingv1beta1.Configuration{
		"nothing is given": waiting, "another length": configuration("10.61.0.0/17", "10.71.0.0/16"), "two overlap": configuration("10.61.0.0/16", "10.61.0.0/16"),
		"no range": configuration("x", "10.61.0.0/16"),
	} {
		if peer, err := Of(c); err == nil || peer.Known {
			t.Errorf("%s: %+v", name, peer)
		}
	}
}

// Whatever ranges a peer has and is given, each of its addresses has one counterpart, which leads back to it.
func TestEachAddressHasOneCounterpart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.IntRange(9, 30).Draw(t, "bits")
		prefix := func(block byte, name string) string {
			a := [4]byte{block, rapid.Byte().Draw(t, name), rapid.Byte().Draw(t, name), rapid.Byte().Draw(t, name)}
			return netip.PrefixFrom(netip.AddrFrom4(a), bits).Masked().String()
		}
		c := configuration(prefix(10, "pods seen"), prefix(11, "external seen"))
		c.Spec.Remote = ranges(prefix(12, "pods"), prefix(13, "external"))
		peer, err := Of(c)
		if err != nil {
			t.Fatal(err)
		}
		own := netip.AddrFrom4([4]byte{rapid.SampledFrom([]byte{12, 13}).Draw(t, "block"), rapid.Byte().Draw(t, "a"), rapid.Byte().Draw(t, "b"), rapid.Byte().Draw(t, "c")})
		announced, _ := c.Spec.Remote.CIDR.Prefixes()
		inside := announced[0].Contains(own) || announced[1].Contains(own)
		seen, ok := peer.Translate(own)
		if ok != inside {
			t.Fatalf("%s of %s: %s, %v", own, announced, seen, ok)
		}
		if back, again := peer.Restore(seen); inside && (!again || back != own) {
			t.Fatalf("%s becomes %s and then %s", own, seen, back)
		}
	})
}

func TestFind(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := networkingv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	older, other, elsewhere := configuration("", ""), configuration("", ""), configuration("", "")
	older.ObjectMeta, other.ObjectMeta, elsewhere.ObjectMeta = about("rome", "older", time.Hour), about("turin", "other", 2*time.Hour), about("rome", "elsewhere", 3*time.Hour)
	elsewhere.Namespace = "default"
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(configuration("", ""), older, other, elsewhere,
		&networkingv1beta1.Connection{ObjectMeta: about("rome", "rome", 0), Status: networkingv1beta1.ConnectionStatus{Value: networkingv1beta1.Connected}}).Build()
	found, err := Find(context.Background(), c, "rome")
	if err != nil || found == nil || found.Name != "older" {
		t.Errorf("of rome there is %v, %v", found, err)
	}
	if found, err := Find(context.Background(), c, "turin"); err != nil || found != nil {
		t.Errorf("of turin there is %v, %v", found, err)
	}
	for peer, want := range map[string]bool{"rome": true, "turin": false} {
		if got, err := Connected(context.Background(), c, peer); got != want || err != nil {
			t.Errorf("%s is connected: %v, %v", peer, got, err)
		}
	}
}

// What this cluster calls a range is something else at the peer, or nothing, unless it is one of the peer or outside of both clusters.
func TestRange(t *testing.T) {
	c := configuration("10.61.0.0/16", "10.71.0.0/16")
	local := ranges("10.100.0.0/16", "10.110.0.0/16")
	c.Spec.Local = &local
	seen, err := Of(c)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]Peer{"alike": {}, "not known yet": {Known: true}, "seen": seen}
	for here, want := range map[string]map[string]string{
		"10.61.2.0/24":   {"alike": "10.61.2.0/24", "seen": "10.244.2.0/24"},
		"10.71.0.2/32":   {"alike": "10.71.0.2/32", "seen": "10.70.0.2/32"},
		"10.61.2.2/16":   {"alike": "10.61.0.0/16", "seen": "10.244.0.0/16"},
		"10.100.2.0/24":  {"alike": "10.100.2.0/24"},
		"10.110.0.3/32":  {"alike": "10.110.0.3/32"},
		"10.244.0.0/16":  {"alike": "10.244.0.0/16"},
		"203.0.113.0/24": {"alike": "203.0.113.0/24", "seen": "203.0.113.0/24"},
		"10.0.0.0/8":     {"alike": "10.0.0.0/8", "seen": "10.0.0.0/8"},
		"10.60.0.0/15":   {"alike": "10.60.0.0/15"},
		"10.244.0.0/15":  {"alike": "10.244.0.0/15"},
		"0.0.0.0/0":      {"alike": "0.0.0.0/0", "seen": "0.0.0.0/0", "not known yet": "0.0.0.0/0"},
		"fd00::/64":      {"alike": "fd00::/64", "seen": "fd00::/64"},
	} {
		for name, peer := range all {
			there, known := peer.Range(netip.MustParsePrefix(here))
			if got := there.String(); known != (want[name] != "") || known && got != want[name] {
				t.Errorf("%s, of a peer that is %s: %s, %v, want %q", here, name, got, known, want[name])
			}
		}
	}
	c.Spec.Local.CIDR.Pod = []networkingv1beta1.CIDR{"10.100"}
	if peer, err := Of(c); err == nil {
		t.Errorf("of a range that is none there is %+v", peer)
	}
}
