package virtualnode

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/fakeapi"
)

var key = types.NamespacedName{Namespace: "liqo-tenant-milan", Name: "milan"}

type world struct {
	*testing.T
	*fakeapi.Server
	r       *reconciler
	clock   *testclock.FakePassiveClock
	evicted []string
	pdb     bool
	last    error
	result  ctrl.Result
}

func tenantNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-milan", Labels: map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "milan"}}}
}

// virtualNodes is the list of virtual nodes, as the chart makes it.
func virtualNodes(nodes ...string) *rbacv1.RoleBinding {
	list := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: offloadingv1beta1.VirtualNodesPolicy},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: offloadingv1beta1.VirtualNodesPolicy}}
	for _, node := range nodes {
		list.Subjects = append(list.Subjects, rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "system:node:" + node})
	}
	return list
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	options := &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: "virtual-kubelet-default"}, Spec: *template()}
	w := &world{T: t, clock: testclock.NewFakePassiveClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))}
	w.Server = fakeapi.New(t, fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{offloadingv1beta1.AddToScheme, corev1beta1.AddToScheme, authv1beta1.AddToScheme, networkingv1beta1.AddToScheme}, Objects: append(objects, options, virtualNodes()),
		Build: func(b *fake.ClientBuilder) {
			b.WithStatusSubresource(&offloadingv1beta1.VirtualNode{})
			b.WithIndex(&corev1.Pod{}, "spec.nodeName", func(o client.Object) []string { return []string{o.(*corev1.Pod).Spec.NodeName} })
		},
		Creating: func(o client.Object) error {
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", w.Writes)))
			return nil
		},
		Evict: func(ctx context.Context, c client.Client, o client.Object) error {
			if w.pdb {
				return apierrors.NewTooManyRequests("budget", 1)
			}
			w.evicted = append(w.evicted, o.GetName())
			return c.Delete(ctx, o)
		},
	})
	w.r = &reconciler{Client: w.Client, Options: Options{ClusterID: "rome", Clock: w.clock}.withDefaults(w.Client)}
	return w
}

// pass reconciles until nothing is written any more.
func (w *world) pass() {
	w.Helper()
	w.Rest(w, func() bool {
		w.result, w.last = w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
		return w.last != nil
	})
}

func (w *world) is(o client.Object, name string) bool {
	w.Helper()
	k := key
	if name != "" {
		k.Name = name
	}
	switch o.(type) {
	case *corev1.Node, *rbacv1.ClusterRoleBinding, *corev1beta1.ForeignCluster:
		k.Namespace = ""
	}
	err := w.Get(context.Background(), k, o)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

// all tells which of the objects exist that a VirtualNode brings about.
func (w *world) all() map[string]bool {
	return map[string]bool{
		"Node": w.is(&corev1.Node{}, ""), "Deployment": w.is(&appsv1.Deployment{}, ""), "NamespaceMap": w.is(&offloadingv1beta1.NamespaceMap{}, ""),
		"ServiceAccount": w.is(&corev1.ServiceAccount{}, ""), "ClusterRoleBinding": w.is(&rbacv1.ClusterRoleBinding{}, "liqo-virtual-kubelet-milan"),
		"bootstrap":   w.is(&rbacv1.ClusterRoleBinding{}, "liqo-virtual-bootstrap:milan"),
		"RoleBinding": w.is(&rbacv1.RoleBinding{}, "liqo-virtual-kubelet-milan"), "secret Role": w.is(&rbacv1.Role{}, "milan-kubeconfig"),
		"secret RoleBinding": w.is(&rbacv1.RoleBinding{}, "milan-kubeconfig"), "VirtualNode": w.is(&offloadingv1beta1.VirtualNode{}, ""),
	}
}

func each(value bool, keys map[string]bool, except ...string) map[string]bool {
	out := map[string]bool{}
	for k := range keys {
		out[k] = value
	}
	for _, k := range except {
		out[k] = !value
	}
	return out
}

func (w *world) condition(conditionType string) string {
	var vn offloadingv1beta1.VirtualNode
	w.is(&vn, "")
	c := conditions.Find(vn.Status.All(), conditionType)
	if c == nil {
		return ""
	}
	if conditionType == "Ready" {
		return c.Status + " " + c.Reason + ": " + c.Message
	}
	return c.Status
}

// serve makes the virtual kubelet and the Node ready, as the cluster would.
func (w *world) serve() {
	w.Helper()
	var d appsv1.Deployment
	var node corev1.Node
	if !w.is(&d, "") || !w.is(&node, "") {
		w.Fatal("there is nothing to make ready")
	}
	d.Status.AvailableReplicas = 1
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if err := errors.Join(w.Status().Update(context.Background(), &d), w.Status().Update(context.Background(), &node)); err != nil {
		w.Fatal(err)
	}
}

func (w *world) begone() {
	w.Helper()
	if err := w.Client.Delete(context.Background(), virtualNode()); err != nil {
		w.Fatal(err)
	}
}

func ready(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	w := newWorld(t, append(objects, virtualNode(), tenantNamespace())...)
	w.pass()
	w.serve()
	w.pass()
	if w.last != nil || !strings.HasPrefix(w.condition("Ready"), "True") {
		t.Fatalf("error %v, ready %s", w.last, w.condition("Ready"))
	}
	return w
}

func TestVirtualNodeComesUp(t *testing.T) {
	w := newWorld(t, virtualNode(), tenantNamespace())
	w.pass()
	if diff := cmp.Diff(each(true, w.all()), w.all()); diff != "" {
		t.Error(diff)
	}
	if got := []string{w.condition("VirtualKubelet"), w.condition("Node"), w.condition("Ready")}; got[0] != "Creating" || got[1] != "Creating" || !strings.HasPrefix(got[2], "False VirtualKubeletStarting") {
		t.Errorf("conditions %q", got)
	}
	w.serve()
	w.pass()
	if got := []string{w.condition("VirtualKubelet"), w.condition("Node"), w.condition("Ready")}; got[0] != "Running" || got[1] != "Running" || !strings.HasPrefix(got[2], "True VirtualNodeReady") {
		t.Errorf("conditions %q", got)
	}
	var role rbacv1.Role
	w.is(&role, "milan-kubeconfig")
	if diff := cmp.Diff([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"kubeconfig-resourceslice-milan"}, Verbs: []string{"get", "list", "watch"}}}, role.Rules); diff != "" {
		t.Error(diff)
	}
	// Acceptance 6: a restart makes no write.
	w.r = &reconciler{Client: w.Client, Options: w.r.Options}
	before := w.Writes
	w.pass()
	if w.Writes != before {
		t.Errorf("%d writes at rest", w.Writes-before)
	}
}

func TestWhatPeopleDeleteComesBack(t *testing.T) {
	for name, o := range map[string]client.Object{
		"C12: the Node":      &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan"}},
		"the Deployment":     &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "milan"}},
		"the NamespaceMap":   &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "milan"}},
		"the ServiceAccount": &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "milan"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(t)
			if err := w.Client.Delete(context.Background(), o); err != nil {
				t.Fatal(err)
			}
			w.pass()
			if diff := cmp.Diff(each(true, w.all()), w.all()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A NamespaceMap that the peer made first is not adopted, nothing is built on it, and it does not go with the VirtualNode.
func TestThePeersMapDoesNotBecomeOurs(t *testing.T) {
	for name, labels := range map[string]map[string]string{
		"as a peer makes it":          {corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "milan", corev1beta1.ReplicationLabel: "false"},
		"without saying of whom":      {corev1beta1.ReplicatedLabel: "true"},
		"adopted by an older version": {corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "milan", corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(t)
			ctx := context.Background()
			ours := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "milan"}}
			if err := w.Client.Delete(ctx, ours); err != nil {
				t.Fatal(err)
			}
			peers := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "milan", Labels: labels},
				Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"payroll": "loot"}}}
			if err := w.Create(ctx, peers); err != nil {
				t.Fatal(err)
			}
			w.pass()
			live := &offloadingv1beta1.NamespaceMap{}
			if w.is(live, ""); !cmp.Equal(live.Labels, labels) {
				t.Errorf("the peer's map has labels %v", live.Labels)
			}
			if got := w.condition(corev1beta1.ConditionReady); !strings.Contains(got, offloadingv1beta1.ReasonNameConflict) {
				t.Errorf("the VirtualNode is %s", got)
			}
			vn := &offloadingv1beta1.VirtualNode{}
			w.is(vn, "")
			if err := w.Client.Delete(ctx, vn); err != nil {
				t.Fatal(err)
			}
			w.pass()
			if !w.is(live, "") {
				t.Error("the peer's map was deleted")
			}
		})
	}
}

func TestWhatRestartsTheVirtualKubelet(t *testing.T) {
	for name, tc := range map[string]struct {
		patch    *offloadingv1beta1.OffloadingPatch
		template func(*offloadingv1beta1.VkOptionsTemplateSpec)
		restarts bool
	}{
		"another image": {nil, func(s *offloadingv1beta1.VkOptionsTemplateSpec) { s.ContainerImage = "virtual-kubelet:next" }, true},
		"an offloading patch, which it reads itself": {
			&offloadingv1beta1.OffloadingPatch{LabelsNotReflected: []string{"secret"}}, func(*offloadingv1beta1.VkOptionsTemplateSpec) {}, false},
		"how kinds are reflected, which it reads itself": {nil, func(s *offloadingv1beta1.VkOptionsTemplateSpec) {
			s.ReflectorsConfig = map[string]offloadingv1beta1.ReflectorConfig{"secret": {NumWorkers: 0}}
			s.LabelsNotReflected = []string{"secret"}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(t)
			ctx := context.Background()
			var before, after appsv1.Deployment
			w.is(&before, "")
			var vn offloadingv1beta1.VirtualNode
			w.is(&vn, "")
			vn.Spec.OffloadingPatch = tc.patch
			var template offloadingv1beta1.VkOptionsTemplate
			if err := w.Client.Get(ctx, client.ObjectKey{Namespace: "liqo", Name: offloadingv1beta1.DefaultVkOptionsTemplate}, &template); err != nil {
				t.Fatal(err)
			}
			tc.template(&template.Spec)
			for _, o := range []client.Object{&vn, &template} {
				if err := w.Client.Update(ctx, o); err != nil {
					t.Fatal(err)
				}
			}
			w.pass()
			w.is(&after, "")
			if restarts := !cmp.Equal(before.Spec.Template, after.Spec.Template); restarts != tc.restarts {
				t.Errorf("the pod template changed: %t, want %t", restarts, tc.restarts)
			}
		})
	}
}

func TestInvalidVirtualNodes(t *testing.T) {
	noSecret, wrongCluster, noTemplate := virtualNode(), virtualNode(), virtualNode()
	noSecret.Spec.KubeconfigSecretRef = nil
	wrongCluster.Spec.ClusterID = "naples"
	noTemplate.Spec.VkOptionsTemplateRef = &corev1.ObjectReference{Name: "none"}
	for name, tc := range map[string]struct {
		vn     *offloadingv1beta1.VirtualNode
		others []client.Object
		want   string
	}{
		"without a kubeconfig":               {noSecret, nil, "False InvalidVirtualNode: spec.kubeconfigSecretRef is required"},
		"in another cluster's namespace":     {wrongCluster, nil, "False InvalidVirtualNode: namespace liqo-tenant-milan is not the tenant namespace of cluster naples"},
		"with a template that is missing":    {noTemplate, nil, "False VkOptionsTemplateMissing: waiting for VkOptionsTemplate liqo/none"},
		"C6: with the name of a real node":   {virtualNode(), []client.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}}, "False InvalidVirtualNode: Node milan exists"},
		"C6: with the name of a Deployment":  {virtualNode(), []client.Object{&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "milan"}}}, "False InvalidVirtualNode: Deployment liqo-tenant-milan/milan exists"},
		"C6: with the name of a RoleBinding": {virtualNode(), []client.Object{&rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "milan-kubeconfig"}}}, "False NameConflict: RoleBinding"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, append(tc.others, tc.vn, tenantNamespace())...)
			w.pass()
			if got := w.condition("Ready"); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			for _, o := range tc.others {
				if node, ok := o.(*corev1.Node); ok && w.is(node, "") && len(node.Labels) > 0 {
					t.Error("somebody else's Node was touched")
				}
			}
		})
	}
}

func podOn(name string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)}, Spec: corev1.PodSpec{NodeName: "milan"}}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

// held is a pod that does not go before somebody lets it.
func held(p *corev1.Pod) { p.Finalizers = []string{"test/held"} }

func TestDeletionDrainsAndRemovesAll(t *testing.T) {
	daemon := podOn("daemon", func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: ptr.To(true)}}
	})
	w := ready(t, podOn("a"), podOn("b", held), daemon)
	w.begone()
	w.pass()
	var node corev1.Node
	if !w.is(&node, "") || !node.Spec.Unschedulable || w.condition("Node") != "Draining" {
		t.Errorf("the Node is not cordoned and draining: %s", w.condition("Node"))
	}
	if w.last != nil || w.result.RequeueAfter != poll || !strings.Contains(w.condition("Ready"), "waiting for 1 pods to leave Node milan (shop/b)") {
		t.Errorf("error %v, again in %s, ready %s", w.last, w.result.RequeueAfter, w.condition("Ready"))
	}
	b := podOn("b")
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(b), b); err != nil {
		t.Fatal(err)
	}
	b.Finalizers = nil
	if err := w.Client.Update(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if diff := cmp.Diff(each(false, w.all()), w.all()); diff != "" || w.last != nil {
		t.Errorf("error %v, left %s", w.last, diff)
	}
	if diff := cmp.Diff([]string{"a", "b"}, w.evicted); diff != "" {
		t.Error(diff)
	}
}

func TestBudgetsAreRespectedUntilTheDeadline(t *testing.T) {
	w := ready(t, podOn("a"))
	w.pdb = true
	w.begone()
	w.pass()
	if !strings.Contains(w.condition("Ready"), "PodDisruptionBudget") || !w.all()["VirtualNode"] {
		t.Errorf("ready %s", w.condition("Ready"))
	}
	w.clock.SetTime(time.Now().Add(time.Hour))
	w.pass()
	w.pass()
	if diff := cmp.Diff(each(false, w.all()), w.all()); diff != "" {
		t.Error(diff)
	}
}

// C8: a provider that is given up does not hold anything.
func TestDeadProvider(t *testing.T) {
	fc := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan", Annotations: map[string]string{corev1beta1.PermanentlyUnreachableAnnotation: "true"}}}
	w := ready(t, fc, podOn("a"))
	w.pdb = true
	w.begone()
	w.pass()
	w.pass()
	if diff := cmp.Diff(each(false, w.all()), w.all()); diff != "" || len(w.evicted) > 0 {
		t.Errorf("evicted %v, left %s", w.evicted, diff)
	}
}

// The annotation has no effect as long as the peer answers.
func TestLivingProviderIsNotForced(t *testing.T) {
	fc := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan", Annotations: map[string]string{corev1beta1.PermanentlyUnreachableAnnotation: "true"}},
		Status: corev1beta1.ForeignClusterStatus{Conditions: []corev1beta1.Condition{{Type: corev1beta1.APIServerStatus, Status: corev1beta1.StatusEstablished}}}}
	w := ready(t, fc, podOn("a"))
	w.pdb = true
	w.begone()
	w.pass()
	if !w.all()["VirtualNode"] {
		t.Error("the pods of a living provider were removed by force")
	}
}

func TestSiblingKeepsTheNamespaceMap(t *testing.T) {
	sibling := virtualNode()
	sibling.Name, sibling.UID = "milan-2", "other"
	w := ready(t, sibling)
	w.begone()
	w.pass()
	if diff := cmp.Diff(each(false, w.all(), "NamespaceMap"), w.all()); diff != "" {
		t.Error(diff)
	}
}

func TestVirtualKubeletsPodsAreAwaited(t *testing.T) {
	kubelet := podOn("vk", held, func(p *corev1.Pod) {
		p.Namespace, p.Spec.NodeName, p.Labels = key.Namespace, "worker", selectorOf(virtualNode())
	})
	w := ready(t, kubelet)
	w.begone()
	_ = w.Client.Delete(context.Background(), kubelet)
	w.clock.SetTime(time.Now())
	w.pass()
	if got := w.all(); got["Deployment"] || !got["Node"] || !got["ServiceAccount"] || w.condition("VirtualKubelet") != "Deleting" {
		t.Errorf("exist %v, virtual kubelet %s", got, w.condition("VirtualKubelet"))
	}
	w.clock.SetTime(time.Now().Add(stopTimeout + time.Minute))
	w.pass()
	if diff := cmp.Diff(each(false, w.all()), w.all()); diff != "" {
		t.Error(diff)
	}
}

func TestWithoutNode(t *testing.T) {
	w := ready(t, podOn("a"))
	var vn offloadingv1beta1.VirtualNode
	w.is(&vn, "")
	vn.Spec.CreateNode = ptr.To(false)
	if err := w.Client.Update(context.Background(), &vn); err != nil {
		t.Fatal(err)
	}
	w.pass()
	var d appsv1.Deployment
	w.is(&d, "")
	d.Status.AvailableReplicas = 1
	_ = w.Status().Update(context.Background(), &d)
	w.pass()
	if diff := cmp.Diff(each(true, w.all(), "Node"), w.all()); diff != "" || len(w.evicted) != 1 || w.condition("Node") != "None" {
		t.Errorf("node %s, evicted %v, %s", w.condition("Node"), w.evicted, diff)
	}
}

func TestVirtualKubeletThatDoesNotStart(t *testing.T) {
	kubelet := podOn("vk", func(p *corev1.Pod) {
		p.Namespace, p.Spec.NodeName, p.Labels = key.Namespace, "worker", selectorOf(virtualNode())
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
	})
	w := newWorld(t, virtualNode(), tenantNamespace(), kubelet)
	w.pass()
	if got := w.condition("Ready"); !strings.Contains(got, "pod vk: ImagePullBackOff: no such image") || w.result.RequeueAfter == 0 {
		t.Errorf("ready %s, again in %s", got, w.result.RequeueAfter)
	}
}
