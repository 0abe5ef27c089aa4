package shadowendpointslice

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
)

// toNaples makes an object about cluster naples of one about rome.
func toNaples[T client.Object](object T) T {
	object.SetNamespace("liqo-tenant-naples")
	object.SetName("naples")
	object.SetLabels(map[string]string{corev1beta1.RemoteClusterIDLabel: "naples"})
	return object
}

// naples, whose pods have the addresses of ours, is seen as 10.62/16 and 10.72/16.
func naples() *networkingv1beta1.Configuration {
	return toNaples(seenAs("10.62.0.0/16", "10.72.0.0/16"))
}

// A pod at another provider is reached by this cluster's own network to that one, and nothing else of what the consumer says is believed.
func TestDirectConnections(t *testing.T) {
	up, broken := toNaples(connection(networkingv1beta1.Connected)), toNaples(connection(networkingv1beta1.ConnectionError))
	hub, hubUp := seenAs("10.61.0.0/16", "10.71.0.0/16"), connection(networkingv1beta1.Connected)
	hubDown := connection(networkingv1beta1.ConnectionError)
	transit := seenAs("10.61.0.0/16", "10.71.0.0/16")
	transit.Spec.Remote.CIDR.External = append(transit.Spec.Remote.CIDR.External, "10.90.0.0/16")
	transit.Status.Remote.CIDR.External = append(transit.Status.Remote.CIDR.External, "10.73.0.0/16")
	const own = `{"naples":["10.20.5.5"]}`
	for name, tc := range map[string]struct {
		data    string
		deny    bool
		objects []client.Object
		want    map[string]bool // addresses, and whether they are ready
	}{
		"by the own network":                          {own, false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.62.5.5": true, "10.61.2.2": true}},
		"also while the consumer is out of reach":     {own, false, []client.Object{hub, hubDown, naples(), up}, map[string]bool{"10.62.5.5": true, "10.61.2.2": false}},
		"rather than by transit":                      {own, false, []client.Object{transit, hubUp, naples(), up}, map[string]bool{"10.62.5.5": true, "10.61.2.2": true}},
		"by transit while the own does not work":      {own, false, []client.Object{transit, hubUp, naples(), broken}, map[string]bool{"10.73.5.5": true, "10.61.2.2": true}},
		"by transit where there is no own":            {own, false, []client.Object{transit, hubUp}, map[string]bool{"10.73.5.5": true, "10.61.2.2": true}},
		"by transit where the own is denied":          {own, true, []client.Object{transit, hubUp, naples(), up}, map[string]bool{"10.73.5.5": true, "10.61.2.2": true}},
		"not ready while the own does not work":       {own, false, []client.Object{hub, hubUp, naples(), broken}, map[string]bool{"10.62.5.5": false, "10.61.2.2": true}},
		"left out where there is no way":              {own, false, []client.Object{hub, hubUp}, map[string]bool{"10.61.2.2": true}},
		"left out where it is denied":                 {own, true, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"left out while the ranges are not given":     {own, false, []client.Object{hub, hubUp, pending(), up}, map[string]bool{"10.61.2.2": true}},
		"no pod's address":                            {`{"naples":["10.70.0.2"]}`, false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"no address of that cluster":                  {`{"naples":["10.62.5.5"]}`, false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"a cluster without a network, as it is":       {`{"turin":["10.30.5.5"]}`, false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"a range that this cluster has itself":        {own, false, []client.Object{hub, hubUp, toNaples(seenAs("10.21.0.0/16", "10.72.0.0/16")), up}, map[string]bool{"10.61.2.2": true}},
		"more addresses than endpoints":               {`{"naples":["10.20.5.5","10.20.5.6","10.20.5.7"]}`, false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"what is no map":                              {`["10.20.5.5"]`, false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"what is no address":                          {`{"naples":["10.20.5.5; drop"]}`, false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"what is too long":                            {own + strings.Repeat(" ", mostDirect), false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"a name that is no cluster's does no harm":    {`{"../naples":["10.20.5.5"]}`, false, []client.Object{hub, hubUp, naples(), up}, map[string]bool{"10.61.2.2": true}},
		"an endpoint of the consumer, by its network": {`{"rome":["10.20.5.5"]}`, false, []client.Object{hub, hubUp}, map[string]bool{"10.61.5.5": true, "10.61.2.2": true}},
	} {
		t.Run(name, func(t *testing.T) {
			s := shadow("10.90.5.5", "10.20.2.2")
			s.Annotations = map[string]string{offloadingv1beta1.DirectConnectionsDataAnnotation: tc.data}
			w := newWorld(t, append(slices.Clone(tc.objects), s)...)
			w.reconciler.Networking, w.reconciler.DenyDirect = true, tc.deny
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, endpoint := range w.slice().Endpoints {
				got[endpoint.Addresses[0]] = *endpoint.Conditions.Ready
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if _, told := w.slice().Annotations[offloadingv1beta1.DirectConnectionsDataAnnotation]; told {
				t.Errorf("the EndpointSlice has what the consumer says: %v", slices.Collect(maps.Keys(w.slice().Annotations)))
			}
		})
	}
}

// A network of this cluster's own that comes and goes is nobody's fight.
func TestADirectNetworkThatFlapsIsNoFight(t *testing.T) {
	s := shadow("10.90.5.5")
	s.Annotations = map[string]string{offloadingv1beta1.DirectConnectionsDataAnnotation: `{"naples":["10.20.5.5"]}`}
	tunnel := toNaples(connection(networkingv1beta1.Connected))
	w := newWorld(t, s, seenAs("10.61.0.0/16", "10.71.0.0/16"), connection(networkingv1beta1.Connected), naples(), tunnel)
	w.reconciler.Networking = true
	w.round()
	for range 3 {
		for _, value := range []networkingv1beta1.ConnectionStatusValue{networkingv1beta1.ConnectionError, networkingv1beta1.Connected} {
			tunnel.Status.Value = value
			if err := w.Update(t.Context(), tunnel); err != nil {
				t.Fatal(err)
			}
			w.round()
			ready := 0
			for _, endpoint := range w.slice().Endpoints {
				if *endpoint.Conditions.Ready {
					ready++
				}
			}
			if want := map[bool]int{true: 1}[value == networkingv1beta1.Connected]; ready != want {
				t.Errorf("with a tunnel that is %s, %d endpoints are ready, want %d", value, ready, want)
			}
		}
	}
	if said := w.said(); len(said) > 0 {
		t.Errorf("events: %q", said)
	}
}

func pending() *networkingv1beta1.Configuration {
	c := naples()
	c.Status.Remote = nil
	return c
}

// News of a network are told to those that it is of use to.
func TestWhoFollowsANetwork(t *testing.T) {
	s := shadow("10.90.5.5")
	s.Annotations = map[string]string{offloadingv1beta1.DirectConnectionsDataAnnotation: `{"naples":["10.20.5.5"]}`}
	w := newWorld(t, s)
	for cluster, want := range map[string]int{"rome": 1, "naples": 1, "turin": 0} {
		if got := watch.Requests(t.Context(), w.reconciler, known(), ofNetwork(cluster)...); len(got) != want {
			t.Errorf("cluster %q: %v, want %d", cluster, got, want)
		}
	}
	if options := ofNetwork(""); len(options) > 0 {
		t.Error("a network to nobody is of use to somebody")
	}
}
