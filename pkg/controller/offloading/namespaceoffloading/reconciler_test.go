package namespaceoffloading

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/test/fakeapi"
)

var key = types.NamespacedName{Namespace: "shop", Name: "offloading"}

type world struct {
	*testing.T
	*fakeapi.Server
	r      *reconciler
	result ctrl.Result
	last   error
}

// newWorld is a consumer with the providers milan (two nodes, one of them with a GPU) and naples.
func newWorld(t *testing.T, nso *offloadingv1beta1.NamespaceOffloading, objects ...client.Object) *world {
	t.Helper()
	objects = append(objects, nso, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, vnode("milan", "milan", nil), vnode("milan", "milan-gpu", map[string]string{"gpu": "yes"}),
		vnode("naples", "naples", map[string]string{"region": "south"}), nsmap("milan"), nsmap("naples"))
	w := &world{T: t}
	w.Server = fakeapi.New(t, fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{offloadingv1beta1.AddToScheme, corev1beta1.AddToScheme}, Objects: objects,
		Build: func(b *fake.ClientBuilder) {
			b.WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
			b.WithStatusSubresource(&offloadingv1beta1.NamespaceOffloading{}, &offloadingv1beta1.NamespaceMap{})
		},
	})
	w.r = &reconciler{Client: w.Client, Options: Options{ClusterID: "rome", Live: w.Client, Clock: testclock.NewFakePassiveClock(time.Unix(1000, 0))}}
	return w
}

func vnode(cluster, name string, labels map[string]string) *offloadingv1beta1.VirtualNode {
	return &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + cluster, Name: name},
		Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: corev1beta1.ClusterID(cluster), Labels: labels}}
}

func nsmap(cluster string) *offloadingv1beta1.NamespaceMap {
	return &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + cluster, Name: cluster,
		Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: cluster}},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"other": "other-rome"}}}
}

func offloading(spec offloadingv1beta1.NamespaceOffloadingSpec) *offloadingv1beta1.NamespaceOffloading {
	return &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: spec}
}

func (w *world) pass() {
	w.Helper()
	w.Rest(w, func() bool {
		w.result, w.last = w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		return w.last != nil
	})
}

func (w *world) nso() *offloadingv1beta1.NamespaceOffloading {
	w.Helper()
	var nso offloadingv1beta1.NamespaceOffloading
	if err := w.Get(context.Background(), key, &nso); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Fatal(err)
	}
	return &nso
}

// answer is what a provider says about the namespace; an empty phase takes the answer away.
func (w *world) answer(cluster, twin string, phase offloadingv1beta1.MappingPhase) {
	w.Helper()
	nm := nsmap(cluster)
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(nm), nm); err != nil {
		w.Fatal(err)
	}
	nm.Status.CurrentMapping = map[string]offloadingv1beta1.RemoteNamespaceStatus{"kube-system": {RemoteNamespace: "stolen", Phase: "Accepted"}}
	if phase != "" {
		nm.Status.CurrentMapping["shop"] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: twin, Phase: phase, Message: "said so"}
	}
	if err := w.Status().Update(context.Background(), nm); err != nil {
		w.Fatal(err)
	}
}

// state is what others see: desired mappings, rights, label, phase and Ready.
func (w *world) state() map[string]string {
	w.Helper()
	out := map[string]string{}
	for _, cluster := range []string{"milan", "naples"} {
		nm := nsmap(cluster)
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(nm), nm); err != nil {
			w.Fatal(err)
		}
		if nm.Spec.DesiredMapping["other"] != "other-rome" {
			w.Errorf("another namespace's entry was lost: %v", nm.Spec.DesiredMapping)
		}
		if twin, there := nm.Spec.DesiredMapping["shop"]; there {
			out["map "+cluster] = twin
		}
	}
	var bindings rbacv1.RoleBindingList
	if err := w.List(context.Background(), &bindings, client.InNamespace("shop")); err != nil {
		w.Fatal(err)
	}
	for _, rb := range bindings.Items {
		var subjects []string
		for _, s := range rb.Subjects {
			subjects = append(subjects, s.Namespace+"/"+s.Name)
		}
		out["rights "+rb.Name] = rb.RoleRef.Name + " " + strings.Join(subjects, " ")
	}
	var ns corev1.Namespace
	if err := w.Get(context.Background(), client.ObjectKey{Name: "shop"}, &ns); err != nil {
		w.Fatal(err)
	}
	if ns.Labels[offloadingv1beta1.SchedulingLabel] == "true" {
		out["label"] = "true"
	}
	if nso := w.nso(); nso != nil {
		out["phase"] = string(nso.Status.OffloadingPhase)
		if c := meta.FindStatusCondition(nso.Status.Conditions, "Ready"); c != nil {
			out["ready"] = fmt.Sprintf("%s %s", c.Status, c.Reason)
		}
	}
	return out
}

const (
	milanRights  = "liqo-virtual-kubelet-local liqo-tenant-milan/milan liqo-tenant-milan/milan-gpu"
	naplesRights = "liqo-virtual-kubelet-local liqo-tenant-naples/naples"
)

func south() corev1.NodeSelector {
	return corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "region", Operator: "In", Values: []string{"south"}}}}}}
}

func (w *world) expect(what string, want map[string]string) {
	w.Helper()
	w.pass()
	if diff := cmp.Diff(want, w.state()); diff != "" {
		w.Errorf("%s: %s", what, diff)
	}
}

func TestOffloadingToAll(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}))
	want := map[string]string{"map milan": "shop-rome", "map naples": "shop-rome", "rights liqo-virtual-kubelet-milan": milanRights,
		"rights liqo-virtual-kubelet-naples": naplesRights, "label": "true", "phase": "InProgress", "ready": "False RemoteNamespacePending"}
	w.expect("asked", want)
	w.answer("milan", "shop-rome", "Accepted")
	w.expect("one answered", want)
	w.answer("naples", "shop-rome", "CreationLoopBackOff")
	want["phase"], want["ready"] = "SomeFailed", "False RemoteNamespaceFailed"
	w.expect("one refused", want)
	w.answer("naples", "shop-rome", "Accepted")
	want["phase"], want["ready"] = "Ready", "True OffloadingReady"
	w.expect("all accepted", want)
	if twins := w.nso().Status.RemoteNamespacesConditions; len(twins) != 2 || w.nso().Status.RemoteNamespaceName != "shop-rome" {
		t.Errorf("status %+v", w.nso().Status)
	}
	before := w.Writes
	w.pass()
	if w.Writes != before {
		t.Errorf("%d writes at rest", w.Writes-before)
	}
}

// tenantLabel says of the namespace whether it is a tenant namespace.
func (w *world) tenantLabel(value string) {
	w.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"liqo.io/tenant-namespace":"`+value+`"}}}`))
	if err := w.Patch(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, patch); err != nil {
		w.Fatal(err)
	}
}

// A namespace that turns out to hold what must never cross is taken back, and says why; nothing is done for it any more.
func TestANamespaceThatIsNeverOffloaded(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}))
	w.pass()
	w.answer("milan", "shop-rome", "Accepted")
	w.answer("naples", "shop-rome", "Accepted")
	w.pass()
	if got := w.state()["ready"]; got != "True OffloadingReady" {
		t.Fatalf("ready is %q before", got)
	}
	w.tenantLabel("true")
	w.answer("milan", "shop-rome", "")
	w.answer("naples", "shop-rome", "")
	w.expect("labelled", map[string]string{"phase": "NoClusterSelected", "ready": "False NamespaceNeverOffloaded"})
	if c := meta.FindStatusCondition(w.nso().Status.Conditions, "Ready"); !strings.Contains(c.Message, "namespace shop can never be offloaded: it is the tenant namespace of a peering") {
		t.Errorf("message %q", c.Message)
	}
	w.r.Home.Liqo = "shop"
	w.tenantLabel("false")
	w.expect("Liqo's own", map[string]string{"phase": "NoClusterSelected", "ready": "False NamespaceNeverOffloaded"})
}

func TestSelectorChanges(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south(), NamespaceMappingStrategy: "EnforceSameName"}))
	want := map[string]string{"map naples": "shop", "rights liqo-virtual-kubelet-naples": naplesRights, "label": "true", "phase": "InProgress", "ready": "False RemoteNamespacePending"}
	w.expect("one is selected", want)
	change := func(change func(*offloadingv1beta1.NamespaceOffloadingSpec)) {
		nso := w.nso()
		change(&nso.Spec)
		if err := w.Client.Update(context.Background(), nso); err != nil {
			t.Fatal(err)
		}
	}
	change(func(s *offloadingv1beta1.NamespaceOffloadingSpec) {
		s.ClusterSelector.NodeSelectorTerms[0].MatchExpressions[0].Operator = "Near"
	})
	want["ready"] = "False InvalidClusterSelector"
	w.pass()
	if diff := cmp.Diff(map[string]string{"map naples": "shop", "rights liqo-virtual-kubelet-naples": naplesRights, "label": "true", "phase": "InProgress"}, without(w.state(), "ready")); diff != "" {
		t.Errorf("a selector that cannot be parsed changed something: %s", diff)
	}
	change(func(s *offloadingv1beta1.NamespaceOffloadingSpec) {
		s.ClusterSelector.NodeSelectorTerms[0].MatchExpressions[0] = corev1.NodeSelectorRequirement{Key: "gpu", Operator: "Exists"}
		s.PodOffloadingStrategy = "Local"
	})
	w.expect("another is selected, pods stay here", map[string]string{"map milan": "shop", "rights liqo-virtual-kubelet-milan": milanRights, "phase": "InProgress", "ready": "False RemoteNamespacePending"})
	change(func(s *offloadingv1beta1.NamespaceOffloadingSpec) {
		s.ClusterSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = "none"
	})
	w.expect("none is selected", map[string]string{"phase": "NoClusterSelected", "ready": "False NoClusterSelected"})
}

func without(m map[string]string, key string) map[string]string {
	delete(m, key)
	return m
}

func TestUserLabelsOfTheNodeSelectToo(t *testing.T) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, "region": "south"}}}
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()}), node)
	w.pass()
	if state := w.state(); state["map milan"] != "shop-rome" || state["map naples"] != "shop-rome" {
		t.Errorf("state %v", state)
	}
}

// offloaded tells whether the namespace says that virtual kubelets may get tokens for its pods.
func (w *world) offloaded() bool {
	w.Helper()
	var ns corev1.Namespace
	if err := w.Get(context.Background(), client.ObjectKey{Name: "shop"}, &ns); err != nil {
		w.Fatal(err)
	}
	return ns.Labels[offloadingv1beta1.OffloadedLabel] == "true"
}

// T13: pods get tokens as long as anything of them is at a provider, in whatever strategy, and where nothing ever was they get none.
func TestTokensLastAsLongAsAnythingIsOffloaded(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south(), PodOffloadingStrategy: offloadingv1beta1.LocalPodOffloadingStrategyType}))
	if w.offloaded() {
		t.Error("it says so before")
	}
	w.pass()
	w.answer("naples", "shop-rome", "Accepted")
	w.pass()
	if state := w.state(); !w.offloaded() || state["label"] != "" {
		t.Errorf("it does not, while pods stay at home by default: %v", state)
	}
	if err := w.Client.Delete(context.Background(), w.nso()); err != nil {
		t.Fatal(err)
	}
	if w.pass(); !w.offloaded() {
		t.Error("it does not any more, while there is a twin")
	}
	w.answer("naples", "", "")
	if w.pass(); w.offloaded() || w.nso() != nil {
		t.Error("it says so afterwards")
	}
	never := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()}))
	never.r.Home.Liqo = "shop"
	if never.pass(); never.offloaded() {
		t.Error("a namespace that can never be offloaded says so")
	}
}

// Pods that waited before anybody labelled their namespace, while the controller manager did not run or was an earlier one, are looked at once.
func TestALargePodThatWaits(t *testing.T) {
	pod := func(name, node, cpu string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse(cpu)}}}}}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"a large one":           {pod("db", "", "2"), "true"},
		"a small one":           {pod("web", "", "500m"), ""},
		"a large one that runs": {pod("db", "rome-1", "2"), ""},
	} {
		w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}), tc.pod)
		label := func() string {
			var ns corev1.Namespace
			if err := w.Get(t.Context(), client.ObjectKey{Name: "shop"}, &ns); err != nil {
				t.Fatal(err)
			}
			return ns.Labels[offloadingv1beta1.LargePodsLabel]
		}
		w.pass()
		if got := label(); got != tc.want {
			t.Errorf("%s: the label is %q, want %q", name, got, tc.want)
		}
		if err := w.Client.Create(t.Context(), pod("more", "", "2")); err != nil {
			t.Fatal(err)
		}
		if w.pass(); label() != tc.want {
			t.Errorf("%s: pods are looked at at every pass", name)
		}
		w.answer("milan", "", "")
		w.answer("naples", "", "")
		if err := w.Client.Delete(t.Context(), w.nso()); err != nil {
			t.Fatal(err)
		}
		if w.pass(); w.nso() != nil || label() != "" {
			t.Errorf("%s: the label is %q after the end", name, label())
		}
	}
}

func TestUnoffloading(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()}))
	w.pass()
	w.answer("naples", "shop-rome", "Accepted")
	w.pass()
	if err := w.Client.Delete(context.Background(), w.nso()); err != nil {
		t.Fatal(err)
	}
	w.expect("it waits for the provider", map[string]string{"phase": "Terminating", "ready": "False RemoteNamespaceTerminating"})
	if w.last != nil || w.result.RequeueAfter == 0 {
		t.Errorf("error %v, again in %s", w.last, w.result.RequeueAfter)
	}
	w.answer("naples", "", "")
	w.expect("the twin is gone", map[string]string{})
	if w.nso() != nil {
		t.Error("the NamespaceOffloading is still held")
	}
}

// Virtual kubelets that are no nodes get tokens for their pods, as long as the namespace is offloaded to them.
func TestRightsOfAccounts(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()}))
	w.r.NodeIdentity = v1alpha1.NodeIdentityServiceAccount
	want := map[string]string{"map naples": "shop-rome", "rights liqo-virtual-kubelet-naples": naplesRights, "label": "true", "phase": "InProgress",
		"rights liqo-virtual-tokens:naples": "liqo-virtual-kubelet-tokens liqo-tenant-naples/naples", "ready": "False RemoteNamespacePending"}
	w.expect("offloaded", want)
	w.r.NodeIdentity = v1alpha1.NodeIdentityNode
	delete(want, "rights liqo-virtual-tokens:naples")
	w.expect("they become nodes", want)
	w.r.NodeIdentity = v1alpha1.NodeIdentityServiceAccount
	w.pass()
	if err := w.Client.Delete(context.Background(), w.nso()); err != nil {
		t.Fatal(err)
	}
	w.expect("not offloaded any more", map[string]string{})
}

// C8: a dead provider is not waited for.
func TestUnoffloadingFromADeadProvider(t *testing.T) {
	fc := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "naples", Annotations: map[string]string{corev1beta1.PermanentlyUnreachableAnnotation: "true"}}}
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}), fc)
	w.pass()
	w.answer("naples", "shop-rome", "Accepted")
	_ = w.Client.Delete(context.Background(), w.nso())
	w.pass()
	if w.nso() != nil {
		t.Error("the NamespaceOffloading is held by a dead provider")
	}
}

// C10: flapping ends in the last state.
func TestFlapping(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}))
	for range 20 {
		w.pass()
		_ = w.Client.Delete(context.Background(), w.nso())
		w.pass()
		if err := w.Client.Create(context.Background(), offloading(offloadingv1beta1.NamespaceOffloadingSpec{})); err != nil {
			t.Fatal(err)
		}
	}
	_ = w.Client.Delete(context.Background(), w.nso())
	w.expect("nothing is left", map[string]string{})
}

func TestForeignRoleBindingIsLeftAlone(t *testing.T) {
	rb := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "liqo-virtual-kubelet-naples"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "admin"}}
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()}), rb)
	w.expect("a conflict is reported", map[string]string{"rights liqo-virtual-kubelet-naples": "admin ", "label": "true", "phase": "InProgress", "ready": "False RemoteNamespacePending"})
}

func TestWhoIsWokenUp(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}))
	list := &offloadingv1beta1.NamespaceOffloadingList{}
	found := func(options ...client.ListOption) []ctrl.Request {
		return watch.Requests(context.Background(), w.r.Client, list, options...)
	}
	one := []ctrl.Request{{NamespacedName: key}}
	hostile, empty := nsmap("milan"), nsmap("milan")
	hostile.Status.CurrentMapping = map[string]offloadingv1beta1.RemoteNamespaceStatus{"kube-system": {}, "default": {}}
	empty.Spec.DesiredMapping = nil
	mine := nsmap("milan")
	mine.Spec.DesiredMapping["shop"] = "x"
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "liqo-virtual-kubelet-milan", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}}}
	tokens := binding.DeepCopy()
	tokens.Name = "liqo-virtual-tokens:milan"
	for name, tc := range map[string]struct{ got, want []ctrl.Request }{
		"W1: names that a provider invents": {found(ofMap(hostile)...), nil},
		"a new map":                         {found(ofMap(empty)...), one},
		"a map with the namespace":          {found(ofMap(mine)...), one},
		"a peer that dies":                  {found(watch.If(leaving)), nil},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for name, tc := range map[string]struct{ got, want client.ObjectKey }{
		"our RoleBinding":            {ofBinding(binding), key},
		"our RoleBinding for tokens": {ofBinding(tokens), key},
		"another RoleBinding":        {ofBinding(&rbacv1.RoleBinding{}), client.ObjectKey{}},
		"the namespace":              {ofNamespace(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}), key},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: %s", name, tc.got)
		}
	}
}
