package shadowendpointslice

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// ofRome is the metadata of an object about cluster rome.
func ofRome() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "rome", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "rome"}}
}

func ranges(pod, external networkingv1beta1.CIDR) networkingv1beta1.ClusterConfig {
	return networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{
		Pod: []networkingv1beta1.CIDR{pod}, External: []networkingv1beta1.CIDR{external}}}
}

// configuration says that rome, whose pods have the addresses of ours, is seen as 10.61/16 and 10.71/16.
func configuration() *networkingv1beta1.Configuration {
	seen := ranges("10.61.0.0/16", "10.71.0.0/16")
	return &networkingv1beta1.Configuration{ObjectMeta: ofRome(), Spec: networkingv1beta1.ConfigurationSpec{Remote: ranges("10.20.0.0/16", "10.70.0.0/16")},
		Status: networkingv1beta1.ConfigurationStatus{Remote: &seen}}
}

func connection(value networkingv1beta1.ConnectionStatusValue) *networkingv1beta1.Connection {
	return &networkingv1beta1.Connection{ObjectMeta: ofRome(), Status: networkingv1beta1.ConnectionStatus{Value: value}}
}

// A consumer's endpoints are published where this cluster sees them, also if its pods have the addresses of ours.
func TestAddressesAreTranslated(t *testing.T) {
	own := []string{"10.20.2.2", "10.70.0.2", "10.61.2.2", "10.30.0.1", "192.168.1.1"}
	for name, tc := range map[string]struct {
		off     bool
		objects []client.Object
		want    []string
		ready   bool
	}{
		"by the consumer's Configuration":                  {objects: []client.Object{configuration(), connection(networkingv1beta1.Connected)}, want: []string{"10.61.2.2", "10.71.0.2"}, ready: true},
		"not ready without a tunnel":                       {objects: []client.Object{configuration()}, want: []string{"10.61.2.2", "10.71.0.2"}},
		"not ready while the tunnel does not work":         {objects: []client.Object{configuration(), connection(networkingv1beta1.ConnectionError)}, want: []string{"10.61.2.2", "10.71.0.2"}},
		"as they are without a Configuration":              {want: []string{"10.30.0.1"}, ready: true},
		"as they are without the network":                  {off: true, objects: []client.Object{configuration()}, want: []string{"10.30.0.1"}, ready: true},
		"as they are if the Configuration is of another":   {objects: []client.Object{altered(func(c *networkingv1beta1.Configuration) { c.Labels[corev1beta1.RemoteClusterIDLabel] = "turin" })}, want: []string{"10.30.0.1"}, ready: true},
		"but not into what is this cluster's":              {objects: []client.Object{seenAs("10.21.0.0/16", "10.71.0.0/16"), connection(networkingv1beta1.Connected)}, want: []string{"10.71.0.2"}, ready: true},
		"and not at all before the ranges are given":       {objects: []client.Object{altered(func(c *networkingv1beta1.Configuration) { c.Status.Remote = nil })}},
		"nor while one of them waits":                      {objects: []client.Object{altered(func(c *networkingv1beta1.Configuration) { c.Status.Remote.CIDR.External = nil })}},
		"nor with a Configuration that cannot be believed": {objects: []client.Object{seenAs("10.61.0.0/17", "10.71.0.0/16")}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, shadow(own...), announcing("a", "rome", "10.30.0.0/16"))...)
			w.reconciler.Networking = !tc.off
			_, err := w.pass()
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == nil {
				if got := w.slice(); got != nil {
					t.Errorf("published: %+v", got)
				}
				return
			}
			if diff := cmp.Diff(tc.want, w.addresses()); diff != "" {
				t.Error(diff)
			}
			for _, endpoint := range w.slice().Endpoints {
				if *endpoint.Conditions.Ready != tc.ready {
					t.Errorf("endpoint %v is ready: %v", endpoint.Addresses, *endpoint.Conditions.Ready)
				}
			}
			if writes, err := w.pass(); writes != 0 || err != nil {
				t.Errorf("with everything in place there were %d writes, %v", writes, err)
			}
		})
	}
}

func altered(change func(*networkingv1beta1.Configuration)) *networkingv1beta1.Configuration {
	c := configuration()
	change(c)
	return c
}

func seenAs(pod, external networkingv1beta1.CIDR) *networkingv1beta1.Configuration {
	seen := ranges(pod, external)
	return altered(func(c *networkingv1beta1.Configuration) { c.Status.Remote = &seen })
}

// What is published follows the Configuration, and stays while it is not known what the addresses mean here.
func TestAddressesFollowTheConfiguration(t *testing.T) {
	w := newWorld(t, configuration(), connection(networkingv1beta1.Connected), shadow("10.20.2.2"))
	w.reconciler.Networking = true
	for _, step := range []struct {
		seen *networkingv1beta1.ClusterConfig
		want string
	}{
		{&networkingv1beta1.ClusterConfig{CIDR: ranges("10.61.0.0/16", "10.71.0.0/16").CIDR}, "10.61.2.2"},
		{nil, "10.61.2.2"},
		{&networkingv1beta1.ClusterConfig{CIDR: ranges("10.62.0.0/16", "10.72.0.0/16").CIDR}, "10.62.2.2"},
	} {
		now := configuration()
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(now), now); err != nil {
			t.Fatal(err)
		}
		now.Status.Remote = step.seen
		if err := w.Update(context.Background(), now); err != nil {
			t.Fatal(err)
		}
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{step.want}, w.addresses()); diff != "" {
			t.Error(diff)
		}
	}
}

func TestNewsOfTheNetwork(t *testing.T) {
	other := seenAs("10.62.0.0/16", "10.72.0.0/16")
	touched := altered(func(c *networkingv1beta1.Configuration) { c.Annotations = map[string]string{"a": "b"} })
	if mappings().Update(event.UpdateEvent{ObjectOld: configuration(), ObjectNew: touched}) {
		t.Error("what changes no range is news")
	}
	if !mappings().Update(event.UpdateEvent{ObjectOld: configuration(), ObjectNew: other}) {
		t.Error("other ranges are no news")
	}
	slower := connection(networkingv1beta1.Connected)
	slower.Status.Latency.Value = "9ms"
	if tunnels().Update(event.UpdateEvent{ObjectOld: connection(networkingv1beta1.Connected), ObjectNew: slower}) {
		t.Error("a latency is news")
	}
	if !tunnels().Update(event.UpdateEvent{ObjectOld: connection(networkingv1beta1.Connected), ObjectNew: connection(networkingv1beta1.ConnectionError)}) {
		t.Error("a tunnel that fails is no news")
	}
}

// The cloud's metadata service is not published under another name.
func TestReservedAddressesAreNotTranslated(t *testing.T) {
	c := altered(func(c *networkingv1beta1.Configuration) {
		c.Spec.Remote = ranges("100.64.0.0/10", "10.70.0.0/16")
		c.Status.Remote = &networkingv1beta1.ClusterConfig{CIDR: ranges("10.128.0.0/10", "10.71.0.0/16").CIDR}
	})
	w := newWorld(t, c, shadow("100.100.100.200", "100.100.100.201"))
	w.reconciler.Networking = true
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10.164.100.201"}, w.addresses()); diff != "" || w.slice().AddressType != discoveryv1.AddressTypeIPv4 {
		t.Error(diff)
	}
}

// A slice without endpoints is published without, is in step, and is no reason for an Event.
func TestASliceWithoutEndpointsIsPublished(t *testing.T) {
	w := newWorld(t, shadow(), announcing("a", "rome", "10.10.0.0/16"))
	if writes, err := w.pass(); writes != 1 || err != nil {
		t.Fatalf("%d writes, %v", writes, err)
	}
	if got := w.slice(); got == nil || len(got.Endpoints) != 0 || len(got.Ports) != 1 {
		t.Errorf("published is %+v", got)
	}
	if writes, err := w.pass(); writes != 0 || err != nil {
		t.Errorf("with everything in place there were %d writes, %v", writes, err)
	}
	if said := w.said(); len(said) != 0 {
		t.Errorf("events: %v", said)
	}
}
