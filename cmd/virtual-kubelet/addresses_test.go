package main

import (
	"net/netip"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"liqo.io/liqo/pkg/addressing"
	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/slicenode"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
)

// W2: a hostile provider has the consumer publish addresses of the consumer's own Services, nodes and neighbours.
func TestNoProviderSteersTraffic(t *testing.T) {
	own := []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")} // ipam.podCIDRs of the consumer, the only range that is passed on
	protected := addressing.Protected{Prefixes: append(own, netip.MustParsePrefix("10.96.0.0/16")), Addresses: []netip.Addr{netip.MustParseAddr("192.168.1.10")}}
	hosts := map[string]string{
		"the consumer's API server (ClusterIP)": "10.96.0.1", "a node of the consumer": "192.168.1.10", "a host beside the node": "192.168.1.77",
		"a pod of the consumer": "10.244.3.4", "a host beside the consumer": "172.16.7.7", "a host in the Internet": "203.0.113.66",
		"a cloud's metadata": "169.254.169.254", "another cloud's metadata": "100.100.100.200", "the same host": "127.0.0.1",
	}
	for name, tc := range map[string]struct {
		announced []string
		private   bool
		shown     string
	}{
		"nothing announced": {},
		"nothing announced, private ranges are believed": {private: true, shown: "172.16.7.7"},
		"everything announced":                           {announced: []string{"0.0.0.0/1", "128.0.0.0/1"}, private: true},
		"everything announced in small parts":            {announced: []string{"0.0.0.0/4", "64.0.0.0/2", "192.0.0.0/7", "200.0.0.0/5"}, private: true},
		"the consumer's services announced":              {announced: []string{"10.96.0.0/12", "192.168.0.0/16"}, private: true},
		"one of the consumer's services announced":       {announced: []string{"10.96.0.1/32", "192.168.1.10/32", "10.244.3.0/24"}},
		"as IPv6":         {announced: []string{"::ffff:10.96.0.0/112", "::ffff:192.168.1.0/120", "::/0"}, private: true},
		"what is its own": {announced: []string{"172.16.0.0/16"}, shown: "172.16.7.7"},
	} {
		announced := tc.announced
		slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: "evil", Labels: map[string]string{"liqo.io/remoteID": "evil"}},
			Status: authv1beta1.ResourceSliceStatus{PodCIDRs: announced}}
		vn := &offloadingv1beta1.VirtualNode{}
		slicenode.Fill(vn, slice, "kubeconfig", slicenode.Trust{Protected: protected, PrivateAddresses: tc.private})
		of := settings.Settings{Node: vn}.OfPods(t.Context(), own)
		for what, ip := range hosts {
			local := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}}}
			remote := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "r"}, Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
				ContainerStatuses: []corev1.ContainerStatus{{Name: "a", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
				Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}}}
			status, doubts := reflection.LocalStatus(local, remote, reflection.StatusInput{NodeIP: "10.244.0.9", PodPrefixes: of.PodPrefixes,
				OwnPrefixes: of.OwnPrefixes, Reserved: addressing.Reserved, Now: time.Unix(1e9, 0)})
			ready, told := false, len(doubts) > 0
			for _, c := range status.Conditions {
				told = told || c.Type == offloadingv1beta1.AddressShownCondition && c.Status == corev1.ConditionFalse
				ready = ready || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}
			if ip == tc.shown {
				if status.PodIP != ip || !ready {
					t.Errorf("%s: %s is not shown: %v", name, what, doubts)
				}
				continue
			}
			if status.PodIP == ip && ready {
				t.Errorf("%s: %s: PodIP %s is shown, Ready, without doubt (%v)", name, what, ip, doubts)
			}
			if !told {
				t.Errorf("%s: %s: nobody is told that %s was not believed", name, what, ip)
			}
		}
	}
}
