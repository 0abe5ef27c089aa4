package slicenode

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

var name = client.ObjectKey{Namespace: "liqo-tenant-milan", Name: "milan"}

// started is a Reconciler with the given objects, and its Events.
func started(t *testing.T, o Options, objects ...client.Object) (*Reconciler, *events.FakeRecorder) {
	t.Helper()
	// Where the test runs, there may be a cluster around it.
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	recorder := events.NewFakeRecorder(10)
	return &Reconciler{client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build(), options: o, events: recorder}, recorder
}

// granted are a slice that the provider answered, with its Identity.
func granted(announced ...string) []client.Object {
	labels := map[string]string{corev1beta1.RemoteIDLabel: "milan", corev1beta1.RemoteClusterIDLabel: "milan", corev1beta1.ReplicationLabel: "true"}
	return []client.Object{
		&authv1beta1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name, UID: "slice", Labels: labels,
				Annotations: map[string]string{authv1beta1.CreateVirtualNodeAnnotation: "true"}},
			Status: authv1beta1.ResourceSliceStatus{PodCIDRs: announced, Conditions: []corev1beta1.Condition{
				{Type: authv1beta1.AuthenticationCondition, Status: authv1beta1.Accepted}, {Type: authv1beta1.ResourcesCondition, Status: authv1beta1.Accepted}}},
		},
		&authv1beta1.Identity{
			ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: authv1beta1.ResourceSliceIdentityPrefix + name.Name},
			Status: authv1beta1.IdentityStatus{KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "kubeconfig"},
				Conditions: []metav1.Condition{{Type: corev1beta1.ConditionReady, Status: metav1.ConditionTrue}}},
		},
	}
}

// Whoever does not know its own ranges is told so, as a provider may claim them; the addresses of Nodes are protected nevertheless.
func TestUnknownOwnRangesAreTold(t *testing.T) {
	machine := func(change func(*corev1.Node)) client.Object {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.168.7.1"}}}}
		change(n)
		return n
	}
	for what, tc := range map[string]struct {
		own  []netip.Prefix
		node func(*corev1.Node)
		told bool
		want string
	}{
		"nothing says them":         {node: func(*corev1.Node) {}, told: true, want: "10.20.0.0/16,10.244.3.0/24"},
		"the configuration says it": {own: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16")}, node: func(*corev1.Node) {}, want: "10.20.0.0/16"},
		"the configuration says the range of Services, too": {own: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/16"), netip.MustParsePrefix("10.96.0.0/20")},
			node: func(*corev1.Node) {}, want: "10.20.0.0/16,10.96.128.0/24"},
		"Nodes say it": {node: func(n *corev1.Node) { n.Spec.PodCIDRs = []string{"10.244.3.0/24"} }, want: "10.20.0.0/16"},
		"only a virtual node says a range": {node: func(n *corev1.Node) {
			n.Labels = map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}
			n.Spec.PodCIDRs = []string{"10.244.3.0/24"}
		}, told: true, want: "10.20.0.0/16,10.244.3.0/24,192.168.7.0/24"},
	} {
		t.Run(what, func(t *testing.T) {
			r, told := started(t, Options{Own: tc.own, PrivateAddresses: true},
				append(granted("10.20.0.0/16", "192.168.7.0/24", "10.244.3.0/24", "10.96.128.0/24"), machine(tc.node))...)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: name}); err != nil {
				t.Fatal(err)
			}
			vn := &offloadingv1beta1.VirtualNode{}
			if err := r.client.Get(t.Context(), name, vn); err != nil {
				t.Fatal(err)
			}
			if got := vn.Annotations[offloadingv1beta1.RemotePodCIDRsAnnotation]; got != tc.want {
				t.Errorf("pinned %q, want %q", got, tc.want)
			}
			close(told.Events)
			unknown := 0
			for event := range told.Events {
				if strings.Contains(event, authv1beta1.ReasonOwnRangesUnknown) {
					unknown++
				}
			}
			if (unknown == 1) != tc.told {
				t.Errorf("told %d times that own ranges are not known, want it told: %v", unknown, tc.told)
			}
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: name}); err != nil {
				t.Fatal(err) // The closed Events would have it panic if it told more.
			}
		})
	}
}

// A VirtualNode that somebody makes without a slice shows addresses as others of its provider do.
func TestVirtualNodesWithoutASlice(t *testing.T) {
	made := func(change func(*offloadingv1beta1.VirtualNode)) *offloadingv1beta1.VirtualNode {
		vn := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: "second"}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"}}
		change(vn)
		return vn
	}
	nothing := func(*offloadingv1beta1.VirtualNode) {}
	for what, tc := range map[string]struct {
		vn      *offloadingv1beta1.VirtualNode
		slice   []client.Object
		private bool
		want    string
	}{
		"its provider announced a range":     {vn: made(nothing), slice: granted("10.20.0.0/16"), want: "10.20.0.0/16"},
		"its provider announced one of ours": {vn: made(nothing), slice: granted("10.96.0.0/16"), private: true, want: "none"},
		"its provider announced nothing":     {vn: made(nothing), slice: granted(), want: "none"},
		"private addresses are believed":     {vn: made(nothing), private: true, want: "10.0.0.0/10,10.64.0.0/11"},
		"another provider announced a range": {vn: made(func(vn *offloadingv1beta1.VirtualNode) { vn.Spec.ClusterID = "turin" }), slice: granted("10.20.0.0/16"), want: "none"},
		"somebody wrote down where its pods are already": {vn: made(func(vn *offloadingv1beta1.VirtualNode) {
			vn.Annotations = map[string]string{offloadingv1beta1.RemotePodCIDRsAnnotation: "10.9.0.0/16"}
		}), want: "10.9.0.0/16"},
		"it is somebody else's": {vn: made(func(vn *offloadingv1beta1.VirtualNode) {
			yes := true
			vn.OwnerReferences = []metav1.OwnerReference{{APIVersion: "a/v1", Kind: "B", Name: "c", UID: "d", Controller: &yes}}
		}), slice: granted("10.20.0.0/16")},
	} {
		t.Run(what, func(t *testing.T) {
			r, _ := started(t, Options{PrivateAddresses: tc.private}, append(tc.slice, tc.vn)...)
			if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(tc.vn)}); err != nil {
				t.Fatal(err)
			}
			if err := r.client.Get(t.Context(), client.ObjectKeyFromObject(tc.vn), tc.vn); err != nil {
				t.Fatal(err)
			}
			if got := tc.vn.Annotations[offloadingv1beta1.RemotePodCIDRsAnnotation]; got != tc.want && !(tc.private && strings.HasPrefix(got, tc.want+",")) {
				t.Errorf("pinned %q, want %q", got, tc.want)
			}
		})
	}
}

// A VirtualNode that somebody made of a slice under a name of its own follows the slice, and goes before it; what is not the slice's stays.
func TestVirtualNodesOfOtherNamesFollowTheSlice(t *testing.T) {
	objects := granted("10.20.0.0/16")
	slice := objects[0].(*authv1beta1.ResourceSlice)
	slice.Annotations, slice.Finalizers = nil, []string{"liqo.io/test"}
	slice.Status.Resources, slice.Status.NodeLabels = list("cpu", "4"), map[string]string{"tier": "gold"}
	made := func(name string, owner types.UID) *offloadingv1beta1.VirtualNode {
		return &offloadingv1beta1.VirtualNode{
			ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: name, UID: types.UID(name), Finalizers: []string{"liqo.io/test"}, OwnerReferences: []metav1.OwnerReference{
				{APIVersion: authv1beta1.GroupVersion.String(), Kind: "ResourceSlice", Name: slice.Name, UID: owner, Controller: ptr.To(true)}}},
			Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan", Labels: map[string]string{"mine": "1"}},
		}
	}
	r, _ := started(t, Options{Labels: true}, append(objects, made("first", "slice"), made("second", "slice"), made("other", "an earlier one"))...)
	pass := func() (nodes [3]*offloadingv1beta1.VirtualNode) {
		t.Helper()
		if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: name}); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"first", "second", "other"} {
			nodes[i] = &offloadingv1beta1.VirtualNode{}
			if err := r.client.Get(t.Context(), client.ObjectKey{Namespace: slice.Namespace, Name: name}, nodes[i]); err != nil {
				t.Fatal(err)
			}
		}
		return nodes
	}
	for _, cpu := range []string{"4", "2"} {
		slice.Status.Resources = list("cpu", cpu)
		if err := r.client.Update(t.Context(), slice); err != nil {
			t.Fatal(err)
		}
		nodes := pass()
		for _, node := range nodes[:2] {
			want := offloadingv1beta1.VirtualNodeSpec{
				ClusterID: "milan", KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "kubeconfig"},
				ResourceQuota: corev1.ResourceQuotaSpec{Hard: list("cpu", cpu)}, Labels: map[string]string{"mine": "1", "tier": "gold"},
			}
			if diff := cmp.Diff(want, node.Spec); diff != "" || node.Annotations[offloadingv1beta1.RemotePodCIDRsAnnotation] != "10.20.0.0/16" {
				t.Errorf("%s: %s, pinned %v", node.Name, diff, node.Annotations)
			}
		}
		if len(nodes[2].Spec.ResourceQuota.Hard) > 0 || len(nodes[2].Annotations) > 0 {
			t.Errorf("that of another slice became %+v", nodes[2])
		}
	}
	if err := r.client.Get(t.Context(), name, &offloadingv1beta1.VirtualNode{}); !apierrors.IsNotFound(err) {
		t.Errorf("a slice that wants no node has one of its name: %v", err)
	}
	if err := r.client.Delete(t.Context(), slice); err != nil {
		t.Fatal(err)
	}
	for i, node := range pass() {
		if going := !node.DeletionTimestamp.IsZero(); going != (i < 2) {
			t.Errorf("%s is going: %v", node.Name, going)
		}
	}
}
