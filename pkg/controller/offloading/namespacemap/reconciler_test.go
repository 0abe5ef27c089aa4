package namespacemap

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
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	testclock "k8s.io/utils/clock/testing"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/test/fakeapi"
)

var key = types.NamespacedName{Namespace: "liqo-tenant-rome", Name: "milan"}

type world struct {
	*testing.T
	*fakeapi.Server
	r      *reconciler
	result ctrl.Result
	last   error
}

var request = ctrl.Request{NamespacedName: key}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	return newWorldWith(t, func(*fakeapi.Options) {}, objects...)
}

// newWorldWith has an API server with options of its own.
func newWorldWith(t *testing.T, adjust func(*fakeapi.Options), objects ...client.Object) *world {
	t.Helper()
	w := &world{T: t}
	options := fakeapi.Options{
		Kinds: []func(*runtime.Scheme) error{offloadingv1beta1.AddToScheme, authv1beta1.AddToScheme}, Objects: objects,
		Build: func(b *fake.ClientBuilder) { b.WithStatusSubresource(&offloadingv1beta1.NamespaceMap{}) },
		Creating: func(o client.Object) error {
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", w.Writes)))
			if ns, ok := o.(*corev1.Namespace); ok && strings.HasPrefix(ns.Name, "stuck") {
				ns.Finalizers = []string{"test/stuck"}
			}
			return nil
		},
	}
	adjust(&options)
	w.Server = fakeapi.New(t, options)
	w.r = &reconciler{Client: w.Client, Options: Options{Live: w.Client, Clock: testclock.NewFakePassiveClock(time.Unix(0, 0)),
		Rules: placement.TwinRules{SystemNamespaces: []string{"liqo"}, MaxNamespaces: 5}, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"},
		Hard: corev1.ResourceList{"pods": resource.MustParse("10")}, Manager: binding.ServiceAccount("liqo", "liqo-controller-manager")}}
	return w
}

func (w *world) pass() {
	w.Helper()
	w.Rest(w, func() bool {
		w.result, w.last = w.r.Reconcile(context.Background(), request)
		return w.last != nil
	})
}

func mapOf(desired map[string]string) *offloadingv1beta1.NamespaceMap {
	return &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "map-uid",
		// V12: what the peer says of itself does not count.
		Labels: map[string]string{corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "forged", corev1beta1.RemoteClusterIDLabel: "forged"}},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: desired}}
}

func tenantNamespace() *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: key.Namespace, Labels: map[string]string{corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"}}}
}

func tenant(condition authv1beta1.TenantCondition) *authv1beta1.Tenant {
	return &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "rome"}, Spec: authv1beta1.TenantSpec{ClusterID: "rome", TenantCondition: condition}}
}

func (w *world) namespace(name string) *corev1.Namespace {
	w.Helper()
	var ns corev1.Namespace
	if err := w.Get(context.Background(), client.ObjectKey{Name: name}, &ns); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Fatal(err)
	}
	return &ns
}

func (w *world) nm() *offloadingv1beta1.NamespaceMap {
	w.Helper()
	var nm offloadingv1beta1.NamespaceMap
	if err := w.Get(context.Background(), key, &nm); err != nil {
		if apierrors.IsNotFound(err) {
			return nil
		}
		w.Fatal(err)
	}
	return &nm
}

func (w *world) desire(desired map[string]string) {
	w.Helper()
	nm := w.nm()
	nm.Spec.DesiredMapping = desired
	if err := w.Client.Update(context.Background(), nm); err != nil {
		w.Fatal(err)
	}
}

// answers are phase and reason by the consumer's name.
func (w *world) answers() map[string]string {
	out := map[string]string{}
	for local, a := range w.nm().Status.CurrentMapping {
		out[local] = strings.TrimSpace(a.RemoteNamespace + " " + string(a.Phase) + " " + a.Reason)
	}
	return out
}

func TestTwinIsMade(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.pass()
	if w.last != nil {
		t.Fatal(w.last)
	}
	if diff := cmp.Diff(map[string]string{"shop": "shop-rome Accepted"}, w.answers()); diff != "" {
		t.Error(diff)
	}
	ns := w.namespace("shop-rome")
	if diff := cmp.Diff([]map[string]string{
		{"liqo.io/managed": "true", "liqo.io/remote-cluster-id": "rome", "pod-security.kubernetes.io/enforce": "baseline"},
		{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/milan", "liqo.io/original-name": "shop", "liqo.io/origin-uid": "map-uid"},
	}, []map[string]string{ns.Labels, ns.Annotations}); diff != "" {
		t.Error(diff)
	}
	subjects := map[string][]rbacv1.Subject{}
	var list rbacv1.RoleBindingList
	if err := w.List(context.Background(), &list, client.InNamespace("shop-rome")); err != nil {
		t.Fatal(err)
	}
	for _, rb := range list.Items {
		subjects[rb.RoleRef.Name] = rb.Subjects
	}
	if diff := cmp.Diff(map[string][]rbacv1.Subject{
		"liqo-virtual-kubelet-remote":  {{Kind: "Group", APIGroup: "rbac.authorization.k8s.io", Name: "liqo.io:consumer:rome"}},
		"liqo-controller-manager-twin": {{Kind: "ServiceAccount", Namespace: "liqo", Name: "liqo-controller-manager"}},
	}, subjects); diff != "" {
		t.Error(diff)
	}
	var quota corev1.ResourceQuota
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "shop-rome", Name: "liqo"}, &quota); err != nil {
		t.Error(err)
	}
	before := w.Writes
	w.pass()
	if w.Writes != before {
		t.Errorf("%d writes at rest", w.Writes-before)
	}
}

func TestOneConflictDoesNotHinderOthers(t *testing.T) {
	foreign := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "taken"}}
	leftover := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "old", Labels: map[string]string{corev1beta1.ManagedLabel: "true"}, Annotations: map[string]string{
		offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-rome/milan", offloadingv1beta1.OriginalNameAnnotation: "left", corev1beta1.OriginUIDAnnotation: "earlier"}}}
	otherMap := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Labels: map[string]string{corev1beta1.ManagedLabel: "true"}, Annotations: map[string]string{
		offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-naples/milan", offloadingv1beta1.OriginalNameAnnotation: "x", corev1beta1.OriginUIDAnnotation: "map-uid"}}}
	w := newWorld(t, mapOf(map[string]string{"a": "taken", "b": "fine", "c": "kube-system", "d": "old", "e": "theirs"}), tenantNamespace(), tenant(""), foreign, leftover, otherMap)
	versions := []string{w.namespace("taken").ResourceVersion, w.namespace("old").ResourceVersion, w.namespace("theirs").ResourceVersion}
	w.pass()
	if diff := cmp.Diff(map[string]string{
		"a": "taken CreationLoopBackOff NamespaceConflict", "b": "fine Accepted", "c": "kube-system CreationLoopBackOff NamespaceNotAllowed",
		"d": "old CreationLoopBackOff NamespaceConflict", "e": "theirs CreationLoopBackOff NamespaceConflict",
	}, w.answers()); diff != "" {
		t.Error(diff)
	}
	if w.last != nil || w.result.RequeueAfter == 0 {
		t.Errorf("error %v, again in %s", w.last, w.result.RequeueAfter)
	}
	if diff := cmp.Diff(versions, []string{w.namespace("taken").ResourceVersion, w.namespace("old").ResourceVersion, w.namespace("theirs").ResourceVersion}); diff != "" {
		t.Errorf("somebody else's namespace was touched: %s", diff)
	}
	// Nor when the map goes, or does not want them any more.
	w.desire(nil)
	w.pass()
	_ = w.Client.Delete(context.Background(), w.nm())
	w.pass()
	if w.nm() != nil || w.namespace("taken") == nil || w.namespace("old") == nil || w.namespace("theirs") == nil || w.namespace("fine") != nil {
		t.Errorf("map gone %v", w.nm() == nil)
	}
}

func TestTenantsCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		tenant *authv1beta1.Tenant
		want   map[string]string
	}{
		"cordoned: what is there stays, nothing new comes": {tenant("Cordoned"), map[string]string{"shop": "shop-rome Accepted", "new": "new-rome CreationLoopBackOff Cordoned"}},
		"without a Tenant: the same":                       {nil, map[string]string{"shop": "shop-rome Accepted", "new": "new-rome CreationLoopBackOff TenantMissing"}},
		"a Tenant of another cluster is none":              {&authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: "x"}, Spec: authv1beta1.TenantSpec{ClusterID: "naples", TenantCondition: "Active"}}, map[string]string{"shop": "shop-rome Accepted", "new": "new-rome CreationLoopBackOff TenantMissing"}},
		"drained: the same, without pods":                  {tenant("Drained"), map[string]string{"shop": "shop-rome Accepted", "new": "new-rome CreationLoopBackOff Cordoned"}},
	} {
		t.Run(name, func(t *testing.T) {
			active := tenant("Active")
			w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), active)
			w.pass()
			for _, namespace := range []string{"shop-rome", "other"} {
				if err := w.Client.Create(context.Background(), &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Client.Delete(context.Background(), active); err != nil {
				t.Fatal(err)
			}
			if tc.tenant != nil {
				if err := w.Client.Create(context.Background(), tc.tenant); err != nil {
					t.Fatal(err)
				}
			}
			w.desire(map[string]string{"shop": "shop-rome", "new": "new-rome"})
			w.pass()
			if diff := cmp.Diff(tc.want, w.answers()); diff != "" {
				t.Error(diff)
			}
			if w.namespace("shop-rome") == nil {
				t.Error("the twin is gone")
			}
			drained := tc.tenant != nil && tc.tenant.Spec.TenantCondition == "Drained"
			for namespace, want := range map[string]bool{"shop-rome": !drained, "other": true} {
				err := w.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: "web"}, &offloadingv1beta1.ShadowPod{})
				if (err == nil) != want {
					t.Errorf("the ShadowPod in %s: %v", namespace, err)
				}
			}
		})
	}
}

// C3: the consumer learns in the next pass that somebody else deletes a twin which it had.
func TestATwinThatSomebodyDeletesIsTold(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "stuck"}), tenantNamespace(), tenant("Active"))
	w.pass()
	if diff := cmp.Diff(map[string]string{"shop": "stuck Accepted"}, w.answers()); diff != "" {
		t.Fatal(diff)
	}
	if err := w.Client.Delete(context.Background(), w.namespace("stuck")); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if diff := cmp.Diff(map[string]string{"shop": "stuck Terminating RemoteNamespaceTerminating"}, w.answers()); diff != "" {
		t.Error(diff)
	}
}

// C3: a twin that does not go names what keeps it, and the finalizer of the map waits for it.
func TestStuckTwinNamesItsBlocker(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "stuck"}), tenantNamespace(), tenant("Active"))
	w.pass()
	ns := w.namespace("stuck")
	ns.Status.Conditions = []corev1.NamespaceCondition{{Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, Message: "configmaps. has 1 resource instances with finalizer x"}}
	if err := w.Status().Update(context.Background(), ns); err != nil {
		t.Fatal(err)
	}
	_ = w.Client.Delete(context.Background(), w.nm())
	w.pass()
	if diff := cmp.Diff(map[string]string{"shop": "stuck Terminating RemoteNamespaceTerminating"}, w.answers()); diff != "" {
		t.Error(diff)
	}
	if message := w.nm().Status.CurrentMapping["shop"].Message; !strings.Contains(message, "finalizer x") || w.result.RequeueAfter == 0 {
		t.Errorf("message %q, again in %s", message, w.result.RequeueAfter)
	}
	ns = w.namespace("stuck")
	ns.Finalizers = nil
	if err := w.Client.Update(context.Background(), ns); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if w.nm() != nil {
		t.Error("the map is held although its twins are gone")
	}
}

func TestRenamedTwin(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.pass()
	w.desire(map[string]string{"shop": "store"})
	w.pass()
	if diff := cmp.Diff(map[string]string{"shop": "store Accepted"}, w.answers()); diff != "" || w.namespace("shop-rome") != nil {
		t.Errorf("the old one is there: %v; %s", w.namespace("shop-rome") != nil, diff)
	}
}

func TestWhatPeopleChangeComesBack(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.pass()
	ns := w.namespace("shop-rome")
	ns.Labels = map[string]string{"user": "keeps"}
	rb := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "liqo-virtual-kubelet-remote"}}
	if err := w.Get(ctx, client.ObjectKeyFromObject(rb), rb); err != nil {
		t.Fatal(err)
	}
	rb.Subjects = append(rb.Subjects, binding.Group("liqo.io:consumer:naples"))
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "liqo"}}
	for _, err := range []error{w.Client.Update(ctx, ns), w.Client.Update(ctx, rb), w.Client.Delete(ctx, quota)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	w.pass()
	ns = w.namespace("shop-rome")
	_ = w.Get(ctx, client.ObjectKeyFromObject(rb), rb)
	if err := w.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil || ns.Labels["user"] != "keeps" || ns.Labels["liqo.io/remote-cluster-id"] != "rome" || len(rb.Subjects) != 1 {
		t.Errorf("error %v, labels %v, subjects %v", err, ns.Labels, rb.Subjects)
	}
}

// Without knowing whose the namespace is, nothing is done and nothing undone.
func TestNoTenantNamespace(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.pass()
	tn := w.namespace(key.Namespace)
	tn.Labels = nil
	if err := w.Client.Update(context.Background(), tn); err != nil {
		t.Fatal(err)
	}
	w.desire(map[string]string{"new": "new-rome"})
	before := w.Writes
	w.pass()
	if w.last == nil || w.Writes != before || w.namespace("shop-rome") == nil || w.namespace("new-rome") != nil {
		t.Errorf("error %v, %d writes", w.last, w.Writes-before)
	}
}

func TestWhoIsWokenUp(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	ctx := context.Background()
	named := func(name string, annotations map[string]string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}}
	}
	ours := []ctrl.Request{{NamespacedName: key}}
	for name, tc := range map[string]struct{ got, want []ctrl.Request }{
		"a twin":                       {w.r.ofNamespace(ctx, named("x", map[string]string{offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-rome/milan"})), ours},
		"a namespace of a wanted name": {w.r.ofNamespace(ctx, named("shop-rome", nil)), ours},
		"the tenant namespace":         {w.r.ofNamespace(ctx, tenantNamespace()), ours},
		"any other namespace":          {w.r.ofNamespace(ctx, named("y", nil)), nil},
		"the tenant":                   {watch.Requests(ctx, w.r.Client, &offloadingv1beta1.NamespaceMapList{}, ofTenant(tenant("Active"))...), ours},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
