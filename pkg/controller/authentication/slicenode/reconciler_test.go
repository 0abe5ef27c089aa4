package slicenode

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
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
