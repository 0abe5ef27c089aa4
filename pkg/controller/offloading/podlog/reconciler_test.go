package podlog

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
)

const twin = "shop-rome"

func shadowOf(name string, changes ...func(*offloadingv1beta1.ShadowPod)) *offloadingv1beta1.ShadowPod {
	s := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: name, UID: types.UID("shadow-" + name),
		Labels:      map[string]string{offloadingv1beta1.OriginLabel: "rome"},
		Annotations: map[string]string{offloadingv1beta1.LogsRequestedAnnotation: "true"}}}
	for _, change := range changes {
		change(s)
	}
	return s
}

func podOf(shadow *offloadingv1beta1.ShadowPod, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: shadow.Name, UID: types.UID("pod-" + shadow.Name),
		Labels:          map[string]string{offloadingv1beta1.OriginLabel: "rome", offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(shadow, offloadingv1beta1.GroupVersion.WithKind("ShadowPod"))}}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func TestReadable(t *testing.T) {
	silent := func(s *offloadingv1beta1.ShadowPod) { s.Annotations = nil }
	foreign := func(s *offloadingv1beta1.ShadowPod) { s.Labels[offloadingv1beta1.OriginLabel] = "naples" }
	for name, tc := range map[string]struct {
		shadow *offloadingv1beta1.ShadowPod
		pod    *corev1.Pod
		want   []string
	}{
		"asked for and ours":                          {shadowOf("web"), podOf(shadowOf("web")), []string{"web"}},
		"nobody asked":                                {shadowOf("web", silent), podOf(shadowOf("web")), nil},
		"V14: the pod has no owner":                   {shadowOf("web"), podOf(shadowOf("web"), func(p *corev1.Pod) { p.OwnerReferences = nil }), nil},
		"V14: the pod is an earlier ShadowPod's":      {shadowOf("web"), podOf(shadowOf("web", func(s *offloadingv1beta1.ShadowPod) { s.UID = "earlier" })), nil},
		"V14: the pod is not marked as a ShadowPod's": {shadowOf("web"), podOf(shadowOf("web"), func(p *corev1.Pod) { delete(p.Labels, offloadingv1beta1.ManagedByLabel) }), nil},
		"V14: the pod is another consumer's":          {shadowOf("web"), podOf(shadowOf("web"), func(p *corev1.Pod) { p.Labels[offloadingv1beta1.OriginLabel] = "naples" }), nil},
		"V14: the ShadowPod is another consumer's":    {shadowOf("web", foreign), podOf(shadowOf("web")), nil},
		"V14: a pod of another name":                  {shadowOf("web"), podOf(shadowOf("web"), func(p *corev1.Pod) { p.Name = "db" }), nil},
	} {
		t.Run(name, func(t *testing.T) {
			got := Readable("rome", []offloadingv1beta1.ShadowPod{*tc.shadow}, []corev1.Pod{*tc.pod})
			if diff := cmp.Diff(tc.want, got); diff != "" && len(got)+len(tc.want) > 0 {
				t.Error(diff)
			}
		})
	}
}

func TestReadableIsBounded(t *testing.T) {
	shadows, pods := make([]offloadingv1beta1.ShadowPod, 0, 2100), make([]corev1.Pod, 0, 2100)
	for i := range cap(shadows) {
		s := shadowOf(fmt.Sprintf("p-%04d", i))
		shadows, pods = append(shadows, *s), append(pods, *podOf(s))
	}
	got := Readable("rome", shadows, pods)
	if len(got) != maxNames || got[0] != "p-0000" || got[maxNames-1] != "p-1999" {
		t.Errorf("%d names from %s to %s", len(got), got[0], got[len(got)-1])
	}
}

// bench is one provider with counted writes.
type bench struct {
	*testing.T
	*reconciler
	writes []string
}

func newBench(t *testing.T, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	b := &bench{T: t}
	objects = append(objects, binding.New(twin, offloadingv1beta1.RemoteClusterRole, offloadingv1beta1.RemoteClusterRole, binding.Group("liqo.io:consumer:rome")))
	objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: twin, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "rome"},
		Annotations: map[string]string{offloadingv1beta1.ManagedByNamespaceMapAnnotation: "liqo-tenant-rome/milan"}}})
	b.reconciler = &reconciler{fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			b.writes = append(b.writes, fmt.Sprintf("create %T", o))
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			b.writes = append(b.writes, fmt.Sprintf("update %T", o))
			return c.Update(ctx, o, opts...)
		},
	}).Build()}
	return b
}

// pass reconciles and returns what was written.
func (b *bench) pass() []string {
	b.Helper()
	b.writes = nil
	if _, err := b.Reconcile(b.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: twin}}); err != nil {
		b.Fatal(err)
	}
	return b.writes
}

func (b *bench) rules() []rbacv1.PolicyRule {
	b.Helper()
	var role rbacv1.Role
	if err := b.Get(b.Context(), client.ObjectKey{Namespace: twin, Name: "liqo-pod-logs"}, &role); err != nil {
		b.Fatal(err)
	}
	return role.Rules
}

func (b *bench) equal(want, got any) {
	b.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		b.Error(diff)
	}
}

func TestRoleFollowsWhatIsAskedFor(t *testing.T) {
	web := shadowOf("web")
	pod := podOf(web)
	b := newBench(t)
	b.equal([]string(nil), b.pass())

	for _, o := range []client.Object{web.DeepCopy(), pod.DeepCopy()} {
		if err := b.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	b.equal([]string{"create *v1.Role", "create *v1.RoleBinding"}, b.pass())
	b.equal([]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods/log"}, ResourceNames: []string{"web"}, Verbs: []string{"get"}}}, b.rules())
	var live rbacv1.RoleBinding
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: twin, Name: "liqo-pod-logs"}, &live); err != nil {
		t.Fatal(err)
	}
	b.equal(rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "liqo-pod-logs"}, live.RoleRef)
	b.equal([]rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "liqo.io:consumer:rome"}}, live.Subjects)
	b.equal([]string(nil), b.pass())

	// Whoever may work in the twin may read its logs, and nobody once that was revoked.
	admitted := binding.New(twin, offloadingv1beta1.RemoteClusterRole, offloadingv1beta1.RemoteClusterRole)
	if err := b.Update(t.Context(), admitted); err != nil {
		t.Fatal(err)
	}
	b.equal([]string{"update *v1.RoleBinding"}, b.pass())
	live = rbacv1.RoleBinding{}
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: twin, Name: "liqo-pod-logs"}, &live); err != nil {
		t.Fatal(err)
	}
	b.equal([]rbacv1.Subject(nil), live.Subjects)
	b.equal([]string(nil), b.pass())

	if err := b.Delete(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	b.equal([]string{"update *v1.Role"}, b.pass())
	b.equal([]rbacv1.PolicyRule(nil), b.rules()) // no rule, because one without names would mean all pods
	b.equal([]string(nil), b.pass())
}

func TestForeignRoleIsLeftAlone(t *testing.T) {
	web := shadowOf("web")
	b := newBench(t, web, podOf(web), &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: twin, Name: "liqo-pod-logs"}})
	_, err := b.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Name: twin}})
	if err == nil && len(b.writes) > 0 {
		t.Errorf("written: %v", b.writes)
	}
	b.equal([]rbacv1.PolicyRule(nil), b.rules())
	if err := b.Get(t.Context(), client.ObjectKey{Namespace: twin, Name: "liqo-pod-logs"}, &rbacv1.RoleBinding{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Role that is not ours was bound: %v", err)
	}
}

func TestNamespacesThatAreNoTwins(t *testing.T) {
	web := shadowOf("web")
	b := newBench(t, web, podOf(web))
	ns := &corev1.Namespace{}
	if err := b.Get(t.Context(), client.ObjectKey{Name: twin}, ns); err != nil {
		t.Fatal(err)
	}
	ns.Annotations = nil
	if err := b.Update(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	b.equal([]string(nil), b.pass())
}

func TestOnlyEventsThatMatterWakeTheController(t *testing.T) {
	silent := shadowOf("web", func(s *offloadingv1beta1.ShadowPod) { s.Annotations = nil })
	asking := shadowOf("web")
	pod, started := podOf(asking), podOf(asking, func(p *corev1.Pod) { p.Status.Phase = corev1.PodRunning })
	orphan := podOf(asking, func(p *corev1.Pod) { p.OwnerReferences = nil })
	for name, tc := range map[string]struct{ want, got bool }{
		"a ShadowPod begins to ask":    {true, wishes().Update(event.UpdateEvent{ObjectOld: silent, ObjectNew: asking})},
		"a ShadowPod ceases to ask":    {true, wishes().Update(event.UpdateEvent{ObjectOld: asking, ObjectNew: silent})},
		"one that asks is unchanged":   {false, wishes().Update(event.UpdateEvent{ObjectOld: asking, ObjectNew: asking})},
		"one that does not ask comes":  {false, wishes().Create(event.CreateEvent{Object: silent})},
		"one that asks goes":           {true, wishes().Delete(event.DeleteEvent{Object: asking})},
		"a pod starts":                 {false, comings().Update(event.UpdateEvent{ObjectOld: pod, ObjectNew: started})},
		"a pod loses its owner":        {true, comings().Update(event.UpdateEvent{ObjectOld: pod, ObjectNew: orphan})},
		"a pod comes":                  {true, comings().Create(event.CreateEvent{Object: pod})},
		"its ShadowPod asks":           {true, len(newBench(t, asking).ofPod(t.Context(), pod)) == 1},
		"its ShadowPod does not ask":   {false, len(newBench(t, silent).ofPod(t.Context(), pod)) == 1},
		"its ShadowPod does not exist": {false, len(newBench(t).ofPod(t.Context(), pod)) == 1},
	} {
		if tc.got != tc.want {
			t.Errorf("%s: woken %v, want %v", name, tc.got, tc.want)
		}
	}
}
