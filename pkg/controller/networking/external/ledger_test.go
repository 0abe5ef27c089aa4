package external

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

func ledger(t *testing.T, objects ...client.Object) *Ledger {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{ipamv1alpha1.AddToScheme, networkingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return New(fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), "liqo")
}

func external(cidr networkingv1beta1.CIDR, preAllocated int32) *ipamv1alpha1.Network {
	return &ipamv1alpha1.Network{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: ipamv1alpha1.NetworkTypeExternal},
		Spec:       ipamv1alpha1.NetworkSpec{CIDR: cidr, PreAllocated: preAllocated}, Status: ipamv1alpha1.NetworkStatus{CIDR: cidr},
	}
}

func ip(name string, since int64, address networkingv1beta1.IP) *ipamv1alpha1.IP {
	return &ipamv1alpha1.IP{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name), CreationTimestamp: metav1.NewTime(time.Unix(since, 0))},
		Status:     ipamv1alpha1.IPStatus{IP: address},
	}
}

func holder(kind Kind, name string) Holder {
	return Holder{kind, types.NamespacedName{Namespace: "shop", Name: name}}
}

func TestGive(t *testing.T) {
	type ask struct {
		holder  Holder
		claimed networkingv1beta1.IP
		release bool
	}
	node := &networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Name: "a1"}}
	node.Spec.Interface.Node.IP = "10.70.0.254"
	fabric := &networkingv1beta1.InternalFabric{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}}
	fabric.Spec.Interface.Gateway.IP = "10.70.0.253"
	for name, tc := range map[string]struct {
		objects []client.Object
		asks    []ask
		want    []string
	}{
		"IPs from the bottom, the others from the top": {
			objects: []client.Object{external("10.70.0.0/24", 1)},
			asks:    []ask{{holder: holder(IP, "a")}, {holder: holder(IP, "b")}, {holder: holder(InternalNode, "a1")}, {holder: holder(InternalFabric, "milan")}},
			want:    []string{"10.70.0.1", "10.70.0.2", "10.70.0.254", "10.70.0.253"},
		},
		"the first address is nobody's in any case": {
			objects: []client.Object{external("10.70.0.0/24", 0)}, asks: []ask{{holder: holder(IP, "a")}}, want: []string{"10.70.0.1"},
		},
		"so are those that were set aside": {
			objects: []client.Object{external("10.70.0.0/24", 7)}, asks: []ask{{holder: holder(IP, "a")}}, want: []string{"10.70.0.7"},
		},
		"who asks again has it": {
			objects: []client.Object{external("10.70.0.0/24", 1)}, asks: []ask{{holder: holder(IP, "a")}, {holder: holder(IP, "a")}}, want: []string{"10.70.0.1", "10.70.0.1"},
		},
		"what was given before this process is not given again": {
			objects: []client.Object{external("10.70.0.0/24", 1), ip("x", 1, "10.70.0.1"), node, fabric},
			asks:    []ask{{holder: holder(IP, "a")}, {holder: holder(InternalNode, "a2")}, {holder: holder(IP, "x"), claimed: "10.70.0.1"}},
			want:    []string{"10.70.0.2", "10.70.0.252", "10.70.0.1"},
		},
		"the elder of two holders keeps": {
			objects: []client.Object{external("10.70.0.0/24", 1), ip("young", 9, "10.70.0.1"), ip("old", 5, "10.70.0.1")},
			asks:    []ask{{holder: holder(IP, "young"), claimed: "10.70.0.1"}, {holder: holder(IP, "old"), claimed: "10.70.0.1"}},
			want:    []string{"10.70.0.2", "10.70.0.1"},
		},
		"what was given from an earlier range stays": {
			objects: []client.Object{external("10.71.0.0/24", 1), ip("x", 1, "10.70.0.1")}, asks: []ask{{holder: holder(IP, "x"), claimed: "10.70.0.1"}}, want: []string{"10.70.0.1"},
		},
		"what was released is free": {
			objects: []client.Object{external("10.70.0.0/24", 1)},
			asks:    []ask{{holder: holder(IP, "a")}, {holder: holder(IP, "a"), release: true}, {holder: holder(IP, "b")}},
			want:    []string{"10.70.0.1", "10.70.0.1"},
		},
		"the two ends meet": {
			objects: []client.Object{external("10.70.0.0/30", 1)},
			asks:    []ask{{holder: holder(InternalNode, "a1")}, {holder: holder(IP, "a")}, {holder: holder(IP, "b")}, {holder: holder(InternalNode, "a2")}},
			want:    []string{"10.70.0.2", "10.70.0.1", "PoolExhausted", "PoolExhausted"},
		},
		"there is no range yet": {asks: []ask{{holder: holder(IP, "a")}}, want: []string{"ExternalRangePending"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := ledger(t, tc.objects...)
			var got []string
			for _, one := range tc.asks {
				if one.release {
					l.Release(one.holder)
					continue
				}
				address, err := l.Give(t.Context(), one.holder, one.claimed)
				if err != nil {
					got = append(got, reconcile.ReasonOf(err))
					continue
				}
				got = append(got, address.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestFree(t *testing.T) {
	nobody := func(netip.Addr) bool { return false }
	for name, tc := range map[string]struct {
		prefix string
		first  int
		top    bool
		want   string
	}{
		"bottom":                  {"10.70.0.0/16", 1, false, "10.70.0.1"},
		"top":                     {"10.70.0.0/16", 1, true, "10.70.255.254"},
		"bottom of IPv6":          {"fd00:70::/64", 1, false, "fd00:70::1"},
		"all were set aside":      {"10.70.0.0/24", 300, false, "invalid IP"},
		"one address is no range": {"10.70.0.0/32", 1, true, "invalid IP"},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _ := free(netip.MustParsePrefix(tc.prefix), tc.first, tc.top, nobody); got.String() != tc.want {
				t.Errorf("found %s, want %s", got, tc.want)
			}
		})
	}
}
