package foreigncluster

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/compat"
)

func tenant(accepted bool) authv1beta1.Tenant {
	t := authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}, Spec: authv1beta1.TenantSpec{ClusterID: "milan"}}
	if accepted {
		t.Status = authv1beta1.TenantStatus{TenantNamespace: "liqo-tenant-milan", AuthParams: &authv1beta1.AuthParams{}}
	}
	return t
}

// silent gives no sign of life any more.
func silent() authv1beta1.Tenant {
	t := tenant(true)
	t.Status.Conditions = []metav1.Condition{{Type: authv1beta1.ConsumerSeenCondition, Status: metav1.ConditionFalse, Reason: authv1beta1.ReasonConsumerSilent, Message: "nothing is heard of it"}}
	return t
}

func controlPlane(ready bool) authv1beta1.Identity {
	id := authv1beta1.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "controlplane-milan"}, Spec: authv1beta1.IdentitySpec{ClusterID: "milan",
		Type: authv1beta1.ControlPlaneIdentityType, Namespace: ptr.To("liqo-tenant-rome"), AuthParams: authv1beta1.AuthParams{APIServer: "https://milan:6443", ProxyURL: ptr.To("http://proxy")}}}
	if ready {
		id.Status.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: "kubeconfig-controlplane-milan"}
	}
	return id
}

func vnode(name, kubelet string) offloadingv1beta1.VirtualNode {
	return offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: name}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"},
		Status: offloadingv1beta1.VirtualNodeStatus{Conditions: []corev1beta1.Condition{{Type: offloadingv1beta1.VirtualKubeletCondition, Status: kubelet}}}}
}

func node(name string, ready corev1.ConditionStatus) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan"}},
		Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
}

func TestARestartIsNoNews(t *testing.T) {
	t0 := time.Unix(100, 0)
	answered := Facts{Identities: []authv1beta1.Identity{controlPlane(true)}, Probe: Probe{Known: true, Connected: true}}
	before := Observe(corev1beta1.ForeignClusterStatus{}, 1, answered, t0)
	notProbedYet := answered
	notProbedYet.Probe = Probe{}
	if diff := cmp.Diff(before, Observe(before, 1, notProbedYet, t0.Add(time.Hour))); diff != "" {
		t.Errorf("before the first probe of a new process, the status changes: %s", diff)
	}
}

func TestRightsThatAreGoneShowUntilTheyAreBack(t *testing.T) {
	t0 := time.Unix(100, 0)
	peered := Facts{Identities: []authv1beta1.Identity{controlPlane(true)}}
	granted := Probe{Known: true, Connected: true}
	revoked := Probe{Known: true, Connected: true, Reason: corev1beta1.ReasonRightsRevoked, Message: "they are gone"}
	for name, tc := range map[string]struct {
		probes   []Probe
		auth     string // status and reason of the authentication module's condition
		api      string
		revoked  bool
		allReady string
	}{
		"they are there":                        {[]Probe{granted}, "Established IdentityReady", "Established APIServerReady", false, "True"},
		"they are gone":                         {[]Probe{granted, revoked}, "Error RightsRevoked", "Established APIServerReady", true, "False"},
		"they are gone, and we start again":     {[]Probe{revoked, {}}, "Error RightsRevoked", "Established APIServerReady", true, "False"},
		"they are gone, and it answers no more": {[]Probe{revoked, {Known: true, Message: "time-out"}}, "Error RightsRevoked", "Error APIServerUnreachable", true, "False"},
		"they are back":                         {[]Probe{revoked, granted}, "Established IdentityReady", "Established APIServerReady", false, "True"},
	} {
		t.Run(name, func(t *testing.T) {
			fc := corev1beta1.ForeignCluster{}
			for _, probe := range tc.probes {
				facts := peered
				facts.Probe = probe
				fc.Status = Observe(fc.Status, 1, facts, t0)
			}
			says := func(list []corev1beta1.Condition, kind string) string {
				c := conditions.Find(list, kind)
				if c == nil {
					return "nothing"
				}
				return c.Status + " " + c.Reason
			}
			got := []any{says(fc.Status.Modules.Authentication.Conditions, corev1beta1.AuthIdentityControlPlaneStatus),
				says(fc.Status.Conditions, corev1beta1.APIServerStatus), fc.IsRevoked(), conditions.Find(fc.Status.Summary, corev1beta1.ConditionReady).Status}
			if diff := cmp.Diff([]any{tc.auth, tc.api, tc.revoked, tc.allReady}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestADeniedSliceShows(t *testing.T) {
	slice := func(name, status string, labels map[string]string) authv1beta1.ResourceSlice {
		return authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: authv1beta1.ResourceSliceStatus{
			Conditions: []corev1beta1.Condition{{Type: authv1beta1.ResourcesCondition, Status: status, Reason: "DefaultClassDisabled", Message: "not here"}}}}
	}
	theirs := map[string]string{corev1beta1.ReplicatedLabel: "true"}
	for name, tc := range map[string]struct {
		slices []authv1beta1.ResourceSlice
		want   string
	}{
		"nothing is asked":             {nil, ""},
		"they ask, and we deny":        {[]authv1beta1.ResourceSlice{slice("a", authv1beta1.Denied, theirs)}, ""},
		"all that is asked is granted": {[]authv1beta1.ResourceSlice{slice("a", authv1beta1.Accepted, nil)}, "Established ResourceSliceGranted: the provider denies no ResourceSlice"},
		"one of two takes no new pods": {[]authv1beta1.ResourceSlice{slice("a", authv1beta1.Accepted, nil), {ObjectMeta: metav1.ObjectMeta{Name: "b"}, Status: authv1beta1.ResourceSliceStatus{
			Summary: []corev1beta1.Condition{{Type: authv1beta1.CordonedCondition, Status: "True", Reason: authv1beta1.ReasonTenantCordoned, Message: "nothing new"}}}}},
			"SomeNotReady ResourceSliceCordoned: the provider takes no new pods of ResourceSlice b: TenantCordoned: nothing new"},
		"one of two is denied": {[]authv1beta1.ResourceSlice{slice("a", authv1beta1.Accepted, nil), slice("b", authv1beta1.Denied, nil)},
			"Error ResourceSliceDenied: the provider denies ResourceSlice b: DefaultClassDisabled: not here"},
	} {
		t.Run(name, func(t *testing.T) {
			status, got := Observe(corev1beta1.ForeignClusterStatus{}, 1, Facts{Slices: tc.slices}, time.Unix(100, 0)), ""
			if c := conditions.Find(status.Modules.Authentication.Conditions, corev1beta1.AuthResourceSliceStatus); c != nil {
				got = c.Status + " " + c.Reason + ": " + c.Message
			}
			if got != tc.want || (tc.want != "") != status.Modules.Authentication.Enabled {
				t.Errorf("%q, want %q; enabled %t", got, tc.want, status.Modules.Authentication.Enabled)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	for name, tc := range map[string]struct {
		facts Facts
		want  map[string]string
	}{
		"nothing": {Facts{}, map[string]string{"role": "Unknown", "Ready": "Unknown"}},
		"a consumer that was accepted": {Facts{Tenants: []authv1beta1.Tenant{tenant(true)}, Namespace: "liqo-tenant-milan"},
			map[string]string{"role": "Consumer", "AuthTenantStatus": "Established", "Ready": "True"}},
		"a consumer that waits": {Facts{Tenants: []authv1beta1.Tenant{tenant(false)}},
			map[string]string{"role": "Consumer", "AuthTenantStatus": "Pending", "Ready": "False"}},
		"a consumer that is silent": {Facts{Tenants: []authv1beta1.Tenant{silent()}},
			map[string]string{"role": "Consumer", "AuthTenantStatus": "Error", "Ready": "False"}},
		"a provider that answers": {Facts{Identities: []authv1beta1.Identity{controlPlane(true)}, Probe: Probe{Known: true, Connected: true}},
			map[string]string{"role": "Provider", "AuthIdentityControlPlaneStatus": "Established", "APIServerStatus": "Established", "Ready": "True", "url": "https://milan:6443 http://proxy liqo-tenant-rome"}},
		"a provider that does not answer": {Facts{Identities: []authv1beta1.Identity{controlPlane(true)}, Probe: Probe{Known: true, Message: "time-out"}},
			map[string]string{"role": "Provider", "AuthIdentityControlPlaneStatus": "Established", "APIServerStatus": "Error", "Ready": "False", "url": "https://milan:6443 http://proxy liqo-tenant-rome"}},
		"a provider that is not probed yet": {Facts{Identities: []authv1beta1.Identity{controlPlane(false)}},
			map[string]string{"role": "Provider", "AuthIdentityControlPlaneStatus": "Pending", "APIServerStatus": "None", "Ready": "False", "url": "https://milan:6443 http://proxy liqo-tenant-rome"}},
		"both, with nodes": {Facts{Tenants: []authv1beta1.Tenant{tenant(true)}, Identities: []authv1beta1.Identity{controlPlane(true)}, Probe: Probe{Known: true, Connected: true},
			VirtualNodes: []offloadingv1beta1.VirtualNode{vnode("a", "Running"), vnode("b", "Running")}, Nodes: map[string]*corev1.Node{"a": node("a", "True"), "b": node("b", "Unknown")}},
			map[string]string{"role": "ConsumerAndProvider", "AuthTenantStatus": "Established", "AuthIdentityControlPlaneStatus": "Established", "APIServerStatus": "Established",
				"OffloadingVirtualNodeStatus": "Ready", "OffloadingNodeStatus": "SomeNotReady", "Ready": "False", "url": "https://milan:6443 http://proxy liqo-tenant-rome"}},
		"a node that is not there": {Facts{VirtualNodes: []offloadingv1beta1.VirtualNode{vnode("a", "Creating")}},
			map[string]string{"role": "Provider", "OffloadingVirtualNodeStatus": "NotReady", "OffloadingNodeStatus": "NotReady", "Ready": "False"}},
	} {
		t.Run(name, func(t *testing.T) {
			t0 := time.Unix(100, 0)
			status := Observe(corev1beta1.ForeignClusterStatus{}, 1, tc.facts, t0)
			got := map[string]string{"role": string(status.Role)}
			for _, list := range [][]corev1beta1.Condition{status.All(), status.Modules.Authentication.Conditions, status.Modules.Offloading.Conditions} {
				for _, c := range list {
					got[c.Type] = c.Status
					if c.Message == "" {
						t.Errorf("condition %s says nothing", c.Type)
					}
				}
			}
			if status.APIServerURL != "" {
				got["url"] = status.APIServerURL + " " + status.ForeignProxyURL + " " + status.TenantNamespace.Remote
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(status, Observe(status, 1, tc.facts, t0.Add(time.Hour))); diff != "" {
				t.Errorf("a second look changes %s", diff)
			}
			if gone := Observe(status, 1, Facts{}, t0); gone.Modules.Authentication.Enabled || gone.Modules.Offloading.Enabled || conditions.Find(gone.Conditions, corev1beta1.APIServerStatus) != nil {
				t.Errorf("what is gone is still reported: %+v", gone)
			}
		})
	}
}

// A peering that works is well for programs of Liqo v1, a revoked one is not hidden from them, and what an earlier version had among the
// conditions is taken out.
func TestProgramsOfV1FindAPeeringWell(t *testing.T) {
	t0 := time.Unix(100, 0)
	facts := Facts{Tenants: []authv1beta1.Tenant{tenant(true)}, Identities: []authv1beta1.Identity{controlPlane(true)}, Probe: Probe{Known: true, Connected: true},
		Slices:       []authv1beta1.ResourceSlice{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}},
		VirtualNodes: []offloadingv1beta1.VirtualNode{vnode("a", "Running")}, Nodes: map[string]*corev1.Node{"a": node("a", "True")}}
	earlier := Observe(corev1beta1.ForeignClusterStatus{}, 1, facts, t0)
	earlier.Conditions, earlier.Summary = earlier.All(), nil
	revoked := facts
	revoked.CutOff = "it was revoked"
	for sentence, test := range map[string]struct {
		before corev1beta1.ForeignClusterStatus
		facts  Facts
		ready  string
		said   int
	}{
		"one at work":                       {corev1beta1.ForeignClusterStatus{}, facts, "True", 1},
		"one that an earlier version wrote": {earlier, facts, "True", 1},
		"one that was revoked":              {corev1beta1.ForeignClusterStatus{}, revoked, "False", 2},
	} {
		t.Run(sentence, func(t *testing.T) {
			peer := &corev1beta1.ForeignCluster{Status: Observe(test.before, 1, test.facts, t0)}
			if faults := compat.Faults(peer); len(faults) > 0 || len(peer.Status.Conditions) != 1 {
				t.Errorf("found wrong: %q in %v", faults, peer.Status.Conditions)
			}
			if !conditions.Is(peer.Status.Summary, corev1beta1.ConditionReady, test.ready) || len(peer.Status.Summary) != test.said {
				t.Errorf("summed up as %v", peer.Status.Summary)
			}
		})
	}
}

type prober map[string]Probe

func (p prober) State(id string) (bool, string, string, bool) {
	return p[id].Connected, p[id].Reason, p[id].Message, p[id].Known
}

func (p prober) AnsweredSince(id string, _ time.Time) bool { return p[id].Connected }

func TestLifeCycle(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme, corev1beta1.AddToScheme, authv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	ctx := context.Background()
	id, vn := controlPlane(true), vnode("milan", "Running")
	foreign := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "byhand"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "byhand"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&id, &vn, node("milan", "True"), foreign).WithStatusSubresource(&corev1beta1.ForeignCluster{}).Build()
	probes := prober{"milan": {Known: true, Connected: true}}
	r := &reconciler{Client: c, Options: Options{ClusterID: "rome", Prober: probes, Clock: testclock.NewFakePassiveClock(time.Unix(100, 0))}, marks: map[types.UID]time.Time{}}
	look := func(name string) *corev1beta1.ForeignCluster {
		t.Helper()
		for range 3 {
			if _, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKey{Name: name}}); err != nil {
				t.Fatal(err)
			}
		}
		var fc corev1beta1.ForeignCluster
		if err := c.Get(ctx, client.ObjectKey{Name: name}, &fc); err != nil {
			return nil
		}
		return &fc
	}
	fc := look("milan")
	if fc == nil || !conditions.Is(fc.Status.Summary, "Ready", "True") || fc.Labels[corev1beta1.RemoteClusterIDLabel] != "milan" {
		t.Fatalf("the ForeignCluster is %+v", fc)
	}
	probes["milan"] = Probe{Known: true, Reason: corev1beta1.ReasonAPIServerUnreachable, Message: "no answer"}
	if fc = look("milan"); !conditions.Is(fc.Status.Conditions, corev1beta1.APIServerStatus, corev1beta1.StatusError) {
		t.Errorf("conditions %v", fc.Status.Conditions)
	}
	if again := look("milan"); again.ResourceVersion != fc.ResourceVersion {
		t.Error("it is written although nothing changed")
	}
	for _, o := range []client.Object{&id, &vn} {
		if err := c.Delete(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	if look("milan") != nil {
		t.Error("it stays although nothing refers to the peer any more")
	}
	if look("byhand") == nil || look("rome") != nil || look("nobody") != nil {
		t.Error("what a user made goes, or what nobody wants comes")
	}
}

func TestOfObject(t *testing.T) {
	vn := vnode("x", "")
	elsewhere := vn.DeepCopy()
	elsewhere.Namespace = "shop"
	elsewhere.Labels = map[string]string{"liqo.io/remote-cluster-id": "forged"}
	for name, tc := range map[string]struct {
		o    client.Object
		want string
	}{
		"by the tenant namespace":          {&vn, "milan"},
		"not by a label in some namespace": {elsewhere, ""},
		"a virtual Node":                   {node("milan", "True"), "milan"},
		"a real Node":                      {&corev1.Node{}, ""},
		"a tenant namespace":               {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-milan", Labels: map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "milan"}}}, "milan"},
		"a twin namespace":                 {&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop-milan", Labels: map[string]string{"liqo.io/remote-cluster-id": "milan"}}}, ""},
	} {
		if got := ofObject(tc.o).Name; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func TestLossAndReturnOfAProviderAreNews(t *testing.T) {
	peered := Facts{Identities: []authv1beta1.Identity{controlPlane(true)}}
	well, lost := Probe{Known: true, Connected: true}, Probe{Known: true, Reason: corev1beta1.ReasonAPIServerUnreachable, Message: "time-out"}
	revoked := Probe{Known: true, Connected: true, Reason: corev1beta1.ReasonRightsRevoked, Message: "they are gone"}
	for name, tc := range map[string]struct {
		before, now Probe
		want        []string
	}{
		"it answers for the first time":          {Probe{}, well, nil},
		"it is lost":                             {well, lost, []string{"Error APIServerUnreachable"}},
		"it stays lost":                          {lost, lost, nil},
		"it is lost, and we start again":         {lost, Probe{}, nil},
		"it is back":                             {lost, well, []string{"Established APIServerReady"}},
		"it took our rights":                     {well, revoked, []string{"Error RightsRevoked"}},
		"it took our rights, and we start again": {revoked, Probe{}, nil},
		"it gave them back":                      {revoked, well, []string{"Established IdentityReady"}},
	} {
		var status [2]corev1beta1.ForeignClusterStatus
		var last corev1beta1.ForeignClusterStatus
		for i, probe := range []Probe{tc.before, tc.now} {
			facts := peered
			facts.Probe = probe
			last = Observe(last, 1, facts, time.Unix(100, 0))
			status[i] = last
		}
		var got []string
		for _, n := range news(&status[0], &status[1]) {
			got = append(got, n.status+" "+n.reason)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
