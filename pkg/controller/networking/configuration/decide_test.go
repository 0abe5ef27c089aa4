package configuration

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

type cidrs = []networkingv1beta1.CIDR

func TestJudge(t *testing.T) {
	many := cidrs{}
	for i := range 33 {
		many = append(many, networkingv1beta1.CIDR(fmt.Sprintf("10.%d.0.0/16", i)))
	}
	for name, tc := range map[string]struct {
		pod, external cidrs
		refused       bool
	}{
		"what a peer has":                    {cidrs{"10.244.0.0/16"}, cidrs{"10.70.0.0/16"}, false},
		"several ranges":                     {cidrs{"10.244.0.0/16", "10.1.0.0/24"}, cidrs{"10.70.0.0/16", "10.71.0.0/16"}, false},
		"no pods":                            {nil, cidrs{"10.70.0.0/16"}, true},
		"all addresses":                      {cidrs{"0.0.0.0/0"}, nil, true},
		"wider than /8":                      {cidrs{"10.0.0.0/7"}, nil, true},
		"this host":                          {cidrs{"127.0.0.0/8"}, nil, true},
		"links, where clouds have metadata":  {cidrs{"10.244.0.0/16"}, cidrs{"169.254.169.0/24"}, true},
		"multicast":                          {cidrs{"224.0.0.0/8"}, nil, true},
		"no range at all":                    {cidrs{"pods"}, nil, true},
		"more than 32":                       {many, nil, true},
		"the same for pods and for the rest": {cidrs{"10.244.0.0/16"}, cidrs{"10.244.0.0/16"}, true},
		"one in another one":                 {cidrs{"10.244.0.0/16"}, cidrs{"10.244.3.0/24"}, true},
		"one in another one with others in between": {cidrs{"10.0.0.0/8", "10.1.0.0/24", "10.2.0.0/24"}, nil, true},
		"a /12 in all":                       {cidrs{"10.0.0.0/13", "11.0.0.0/14"}, cidrs{"12.0.0.0/14"}, false},
		"a /12 of pods and a /16 besides":    {cidrs{"10.32.0.0/12"}, cidrs{"10.70.0.0/16"}, false},
		"more than a /12 in all":             {cidrs{"10.0.0.0/13", "11.0.0.0/14"}, cidrs{"12.0.0.0/13"}, true},
		"one range of more than a /12":       {cidrs{"10.0.0.0/11"}, nil, true},
		"an external range of more":          {cidrs{"10.244.0.0/16"}, cidrs{"11.0.0.0/11"}, true},
		"behind it as much as a hub may":     {cidrs{"10.244.0.0/16"}, cidrs{"10.70.0.0/16", "11.0.0.0/12", "12.0.0.0/12"}, false},
		"behind it more than a hub may":      {cidrs{"10.244.0.0/16"}, cidrs{"10.70.0.0/16", "11.0.0.0/12", "12.0.0.0/12", "13.0.0.0/24"}, true},
		"of IPv6 as much as there is beside": {cidrs{"10.244.0.0/16", "fd00::/48"}, cidrs{"10.70.0.0/16"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			err := Judge(networkingv1beta1.ClusterConfigCIDR{Pod: tc.pod, External: tc.external})
			if (err != nil) != tc.refused {
				t.Errorf("said %v", err)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	network := func(name, want, has string, mine bool) ipamv1alpha1.Network {
		n := ipamv1alpha1.Network{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       ipamv1alpha1.NetworkSpec{CIDR: networkingv1beta1.CIDR(want)}, Status: ipamv1alpha1.NetworkStatus{CIDR: networkingv1beta1.CIDR(has)},
		}
		if mine {
			n.OwnerReferences = []metav1.OwnerReference{{UID: "me", Controller: ptr.To(true)}}
		}
		return n
	}
	full := network("milan-pod-0", "10.244.0.0/16", "", true)
	full.Status.Conditions = []metav1.Condition{{Type: corev1beta1.ConditionReady, Reason: ipamv1alpha1.ReasonPoolExhausted, Message: "no free range"}}
	type want struct {
		Make        map[string]string
		Superfluous []string
		Pod, Ext    cidrs
		Full        string
	}
	for name, tc := range map[string]struct {
		pod, external cidrs
		networks      []ipamv1alpha1.Network
		want          want
	}{
		"nothing is there": {
			pod: cidrs{"10.244.0.0/16"}, external: cidrs{"10.70.0.0/16"},
			want: want{Make: map[string]string{"milan-pod-0": "10.244.0.0/16", "milan-external-0": "10.70.0.0/16"}},
		},
		"one has no range yet": {
			pod: cidrs{"10.244.0.0/16"}, external: cidrs{"10.70.0.0/16"},
			networks: []ipamv1alpha1.Network{network("milan-pod-0", "10.244.0.0/16", "10.61.0.0/16", true), network("milan-external-0", "10.70.0.0/16", "", true)},
		},
		"all have: each in its place": {
			pod: cidrs{"10.244.0.0/16", "10.2.0.0/16"}, external: cidrs{"10.70.0.0/16"},
			networks: []ipamv1alpha1.Network{
				network("milan-pod-1", "10.2.0.0/16", "10.2.0.0/16", true), network("milan-external-0", "10.70.0.0/16", "10.71.0.0/16", true),
				network("milan-pod-0", "10.244.0.0/16", "10.61.0.0/16", true)},
			want: want{Pod: cidrs{"10.61.0.0/16", "10.2.0.0/16"}, Ext: cidrs{"10.71.0.0/16"}},
		},
		"another range is announced: a Network of a free name, and the old one stays until then": {
			pod:      cidrs{"10.3.0.0/16"},
			networks: []ipamv1alpha1.Network{network("milan-pod-0", "10.244.0.0/16", "10.61.0.0/16", true)},
			want:     want{Make: map[string]string{"milan-pod-1": "10.3.0.0/16"}, Superfluous: []string{"milan-pod-0"}},
		},
		"a Network that is not ours does not count": {
			pod:      cidrs{"10.244.0.0/16"},
			networks: []ipamv1alpha1.Network{network("milan-pod-0", "10.244.0.0/16", "10.61.0.0/16", false)},
			want:     want{Make: map[string]string{"milan-pod-1": "10.244.0.0/16"}},
		},
		"the pools are full": {
			pod: cidrs{"10.244.0.0/16"}, networks: []ipamv1alpha1.Network{full}, want: want{Full: "no free range"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			configuration := &networkingv1beta1.Configuration{ObjectMeta: metav1.ObjectMeta{UID: "me"}}
			configuration.Spec.Remote.CIDR = networkingv1beta1.ClusterConfigCIDR{Pod: tc.pod, External: tc.external}
			found := decide(configuration, "milan", tc.networks)
			got := want{Full: found.full}
			for _, one := range found.make {
				if got.Make == nil {
					got.Make = map[string]string{}
				}
				got.Make[one.name] = string(one.cidr)
			}
			for _, one := range found.superfluous {
				got.Superfluous = append(got.Superfluous, one.Name)
			}
			if found.remote != nil {
				got.Pod, got.Ext = found.remote.CIDR.Pod, found.remote.CIDR.External
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if (found.remote == nil) != (len(found.waiting) > 0) {
				t.Errorf("waits for %v with %v", found.waiting, found.remote)
			}
		})
	}
}

// A peer that announces one thing after the other, of which each lacks room for a range, keeps no ranges of those before, but the ones under which
// it is seen.
func TestWhatIsNeitherAnnouncedNorSeenIsGivenUp(t *testing.T) {
	network := func(name, want, has string) ipamv1alpha1.Network {
		return ipamv1alpha1.Network{
			ObjectMeta: metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{{UID: "me", Controller: ptr.To(true)}}},
			Spec:       ipamv1alpha1.NetworkSpec{CIDR: networkingv1beta1.CIDR(want)}, Status: ipamv1alpha1.NetworkStatus{CIDR: networkingv1beta1.CIDR(has)},
		}
	}
	networks := []ipamv1alpha1.Network{
		network("seen", "10.244.0.0/16", "10.61.0.0/16"), network("given, and over", "10.1.0.0/16", "10.62.0.0/16"), network("never given", "10.2.0.0/11", ""),
		network("announced", "10.3.0.0/16", "10.63.0.0/16"), network("without room", "11.0.0.0/12", ""),
	}
	configuration := &networkingv1beta1.Configuration{ObjectMeta: metav1.ObjectMeta{UID: "me"}}
	configuration.Spec.Remote.CIDR.Pod = cidrs{"10.3.0.0/16", "11.0.0.0/12"}
	configuration.Status.Remote = &networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: cidrs{"10.61.0.0/16"}}}
	var names []string
	found := decide(configuration, "milan", networks)
	for _, one := range found.unseen {
		names = append(names, one.Name)
	}
	if diff := cmp.Diff([]string{"given, and over", "never given"}, names); diff != "" || found.remote != nil || len(found.superfluous) != 3 {
		t.Errorf("%s; superfluous are %d", diff, len(found.superfluous))
	}
}

// Where this cluster's pods are is kept in step, but not against whoever said it.
func TestIsFilledIn(t *testing.T) {
	const pods = `{"f:spec":{"f:local":{".":{},"f:cidr":{".":{},"f:external":{},"f:pod":{}}}}}`
	for name, tc := range map[string]struct {
		manager, fields string
		want            bool
	}{
		"by this controller":          {"liqo-controller-manager", pods, true},
		"by somebody else":            {"argocd", pods, false},
		"nobody knows who wrote what": {"", "", false},
	} {
		c := milan()
		c.ManagedFields = []metav1.ManagedFieldsEntry{
			{Manager: "liqoctl", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:remote":{}}}`)},
			{Manager: "liqo-controller-manager", Subresource: "status", FieldsV1: metav1.NewFieldsV1(`{"f:status":{}}`)},
		}
		if tc.fields != "" {
			c.ManagedFields = append(c.ManagedFields, metav1.ManagedFieldsEntry{Manager: tc.manager, FieldsV1: metav1.NewFieldsV1(tc.fields)})
		}
		if got := isFilledIn(&c); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
