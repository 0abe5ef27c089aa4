package keep

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"liqo.io/liqo/pkg/kube/reconcile"
)

const reason = "NameConflict"

var (
	ours = map[string]string{"liqo.io/managed": "true"}
	key  = client.ObjectKey{Namespace: "shop", Name: "logs"}
)

// role of our name, with the verbs that it gives.
func role(labels map[string]string, verbs ...string) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: labels},
		Rules: []rbacv1.PolicyRule{{Verbs: verbs, Resources: []string{"pods"}}}}
}

func owned(o *rbacv1.Role, owners ...metav1.OwnerReference) *rbacv1.Role {
	o.OwnerReferences = owners
	return o
}

func owner(name, uid string, controls bool) metav1.OwnerReference {
	one := metav1.OwnerReference{APIVersion: "v1", Kind: "Namespace", Name: name, UID: types.UID(uid)}
	if controls {
		one.Controller = ptr.To(true)
	}
	return one
}

// counting is a client that counts what it writes, and fails if it is told to.
type counting struct {
	client.Client
	writes []string
	fail   map[string]error
	// before is called once, before the first write.
	before func(c client.Client)
}

func world(objects ...client.Object) *counting {
	w := &counting{fail: map[string]error{}}
	write := func(c client.Client, verb string, do func() error) error {
		if before := w.before; before != nil {
			w.before = nil
			before(c)
		}
		if err := w.fail[verb]; err != nil {
			return err
		}
		w.writes = append(w.writes, verb)
		return do()
	}
	builder := fake.NewClientBuilder()
	for _, o := range objects {
		builder.WithObjects(o.DeepCopyObject().(client.Object))
	}
	w.Client = interceptor.NewClient(builder.Build(), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			return write(c, "create", func() error { return c.Create(ctx, o, options...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.UpdateOption) error {
			return write(c, "update", func() error { return c.Update(ctx, o, options...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			return write(c, "delete", func() error { return c.Delete(ctx, o, options...) })
		},
	})
	return w
}

func (w *counting) keeper() Keeper { return Keeper{Client: w, Reason: reason} }

// there is the object of a name, without its version; nil if there is none.
func there[T client.Object](t *testing.T, c client.Client, into T) (found T) {
	t.Helper()
	err := c.Get(t.Context(), key, into)
	if apierrors.IsNotFound(err) {
		return found
	}
	if err != nil {
		t.Fatal(err)
	}
	into.SetResourceVersion("")
	return into
}

func TestKeep(t *testing.T) {
	wanted := func() *rbacv1.Role { return owned(role(ours, "get"), owner("shop", "1", true)) }
	other := owner("other", "9", false)
	labelled := func(labels map[string]string, verbs ...string) *rbacv1.Role {
		return owned(role(labels, verbs...), owner("shop", "1", true))
	}
	for name, tc := range map[string]struct {
		live   *rbacv1.Role
		ours   func(client.Object) bool
		want   *rbacv1.Role
		writes []string
		class  reconcile.Class
	}{
		"what is absent is created":      {want: wanted(), writes: []string{"create"}},
		"what is as wanted is left":      {live: wanted(), want: wanted()},
		"what differs is written":        {live: labelled(ours, "list"), want: wanted(), writes: []string{"update"}},
		"a lost owner is restored":       {live: role(ours, "get"), want: wanted(), writes: []string{"update"}},
		"more labels and owners stay":    {live: owned(role(map[string]string{"a": "b", "liqo.io/managed": "true"}, "get"), other, owner("shop", "1", true)), want: owned(role(map[string]string{"a": "b", "liqo.io/managed": "true"}, "get"), other, owner("shop", "1", true))},
		"an earlier owner is replaced":   {live: owned(role(ours, "get"), owner("shop", "0", true), other), want: owned(role(ours, "get"), owner("shop", "1", true), other), writes: []string{"update"}},
		"another controller is replaced": {live: owned(role(ours, "get"), other, owner("else", "7", true)), want: owned(role(ours, "get"), other, owner("shop", "1", true)), writes: []string{"update"}},
		"a lost label, by controller":    {live: labelled(nil, "get"), want: wanted(), writes: []string{"update"}},
		"somebody else's":                {live: role(nil, "get"), want: role(nil, "get"), class: reconcile.Refused},
		"another controller's":           {live: owned(role(nil, "get"), owner("else", "7", true)), want: owned(role(nil, "get"), owner("else", "7", true)), class: reconcile.Refused},
		"labelled as not ours":           {live: labelled(map[string]string{"liqo.io/managed": "false"}, "get"), want: labelled(map[string]string{"liqo.io/managed": "false"}, "get"), class: reconcile.Refused},
		"a name that is ours alone":      {live: role(nil, "list"), ours: Whoever, want: wanted(), writes: []string{"update"}},
		"ours by its controller alone":   {live: role(ours, "list"), ours: ControlledBy(&metav1.ObjectMeta{UID: "1"}), want: role(ours, "list"), class: reconcile.Refused},
		"ours by its controller, indeed": {live: labelled(ours, "list"), ours: ControlledBy(&metav1.ObjectMeta{UID: "1"}), want: wanted(), writes: []string{"update"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			if tc.live != nil {
				w = world(tc.live)
			}
			object := wanted()
			wrote, err := w.keeper().Keep(t.Context(), Wanted{Object: object, Ours: tc.ours})
			if refused := tc.class == reconcile.Refused; refused != (err != nil) || refused && (reconcile.Classify(err) != tc.class || reconcile.ReasonOf(err) != reason ||
				err.Error() != reconcile.NotOurs(reason, "Role", key).Error()) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.writes, w.writes); diff != "" || wrote != (len(tc.writes) > 0) {
				t.Errorf("wrote %v: %s", wrote, diff)
			}
			if diff := cmp.Diff(tc.want, there(t, w, &rbacv1.Role{})); diff != "" {
				t.Error(diff)
			}
			if object.ResourceVersion = ""; err == nil && !cmp.Equal(tc.want, object) {
				t.Errorf("what is there is told as %v", object)
			}
			// Nothing is ever written twice.
			w.writes = nil
			if wrote, _ := w.keeper().Keep(t.Context(), Wanted{Object: wanted(), Ours: tc.ours}); wrote || w.writes != nil {
				t.Errorf("written again: %v", w.writes)
			}
		})
	}
}

func TestWhatIsOptionalIsNotMade(t *testing.T) {
	w := world()
	object := role(ours, "get")
	if wrote, err := w.keeper().Keep(t.Context(), Wanted{Object: object, Optional: true}); wrote || err != nil || w.writes != nil || object.ResourceVersion != "" {
		t.Errorf("wrote %v, error %v", w.writes, err)
	}
	w = world(role(ours, "list"))
	if wrote, err := w.keeper().Keep(t.Context(), Wanted{Object: object, Optional: true}); !wrote || err != nil || object.ResourceVersion == "" {
		t.Errorf("wrote %v, error %v", w.writes, err)
	}
}

func TestAValueIsKeptAgainWhenItsObjectIsGone(t *testing.T) {
	w, object := world(), role(ours, "get")
	for range 2 {
		if wrote, err := w.keeper().Keep(t.Context(), Wanted{Object: object}); !wrote || err != nil {
			t.Errorf("wrote %v, error %v", w.writes, err)
		}
		if err := w.Delete(t.Context(), role(nil)); err != nil {
			t.Fatal(err)
		}
	}
}

// What was read already is not read again.
func TestWhatIsKnownIsNotReadAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		known *rbacv1.Role
		wrote bool
		class reconcile.Class
	}{
		"absent":          {nil, true, reconcile.Transient},
		"as wanted":       {role(ours, "get"), false, reconcile.Transient},
		"different":       {role(ours, "list"), true, reconcile.Transient},
		"somebody else's": {role(nil, "get"), false, reconcile.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			if tc.known != nil {
				w = world(tc.known)
				tc.known = there(t, w, &rbacv1.Role{})
			}
			wrote, err := Known(t.Context(), Keeper{Client: w, Reader: past{}, Reason: reason}, tc.known, Wanted{Object: role(ours, "get")})
			if wrote != tc.wrote || (err != nil) != (tc.class == reconcile.Refused) || err != nil && reconcile.Classify(err) != tc.class {
				t.Errorf("wrote %v, error %v", wrote, err)
			}
		})
	}
}

// Kubernetes gives a Service its address and its node ports, and it would refuse to take the address away.
func TestWhatIsSetIsAllThatChanges(t *testing.T) {
	wanted := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Labels: ours}}
	live := wanted.DeepCopy()
	live.Spec = corev1.ServiceSpec{ClusterIP: "10.1.1.1", Ports: []corev1.ServicePort{{Port: 80, NodePort: 30000}}, SessionAffinity: "None"}
	set := func(o client.Object) {
		service := o.(*corev1.Service)
		if len(service.Spec.Ports) != 1 {
			service.Spec.Ports = make([]corev1.ServicePort, 1)
		}
		service.Spec.Ports[0].Port = 443
	}
	for name, tc := range map[string]struct {
		live []client.Object
		want corev1.ServiceSpec
	}{
		"made":    {nil, corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}},
		"changed": {[]client.Object{live}, corev1.ServiceSpec{ClusterIP: "10.1.1.1", Ports: []corev1.ServicePort{{Port: 443, NodePort: 30000}}, SessionAffinity: "None"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(tc.live...)
			for _, wrote := range []bool{true, false} {
				if did, err := w.keeper().Keep(t.Context(), Wanted{Object: wanted.DeepCopy(), Set: set}); err != nil || did != wrote {
					t.Errorf("wrote %v, error %v", did, err)
				}
			}
			if diff := cmp.Diff(tc.want, there(t, w, &corev1.Service{}).Spec); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestABindingToAnotherRoleIsMadeAnew(t *testing.T) {
	meta, to := metav1.ObjectMeta{Name: key.Name, Labels: ours}, func(name string) rbacv1.RoleRef { return rbacv1.RoleRef{Kind: "ClusterRole", Name: name} }
	spaced := meta
	spaced.Namespace = key.Namespace
	w := world(&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: to("before")}, &rbacv1.RoleBinding{ObjectMeta: spaced, RoleRef: to("before")})
	both := func() []client.Object {
		return []client.Object{&rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: to("now")}, &rbacv1.RoleBinding{ObjectMeta: spaced, RoleRef: to("now")}}
	}
	for range 2 {
		if err := w.keeper().All(t.Context(), both()...); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"delete", "create", "delete", "create"}, w.writes); diff != "" {
		t.Error(diff)
	}
	if got := there(t, w, &rbacv1.RoleBinding{}).RoleRef; got != to("now") {
		t.Errorf("bound to %v", got)
	}
}

func TestUnstructuredObjectsAreKept(t *testing.T) {
	object := func(value string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"data": map[string]any{"a": value}}}
		o.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		o.SetNamespace(key.Namespace)
		o.SetName(key.Name)
		o.SetLabels(ours)
		return o
	}
	w := world()
	for _, value := range []string{"1", "1", "2", "2"} {
		if err := w.keeper().All(t.Context(), object(value)); err != nil {
			t.Fatal(err)
		}
		if got := there(t, w, &corev1.ConfigMap{}).Data["a"]; got != value {
			t.Errorf("it is %q, want %q", got, value)
		}
	}
	if diff := cmp.Diff([]string{"create", "update"}, w.writes); diff != "" {
		t.Error(diff)
	}
}

// What others do at the same time is never overwritten.
func TestOthersWriteMeanwhile(t *testing.T) {
	never := errors.New("no")
	for name, tc := range map[string]struct {
		live   *rbacv1.Role
		before func(c client.Client) error
		fail   map[string]error
		is     func(error) bool
		class  reconcile.Class
	}{
		"it is changed": {role(ours, "list"), func(c client.Client) error { return c.Update(context.Background(), role(ours, "watch")) }, nil, apierrors.IsConflict, reconcile.Transient},
		"it is removed": {role(ours, "list"), func(c client.Client) error { return c.Delete(context.Background(), role(ours)) }, nil, apierrors.IsNotFound, reconcile.Transient},
		"it is made":    {nil, func(c client.Client) error { return c.Create(context.Background(), role(ours, "list")) }, nil, apierrors.IsAlreadyExists, reconcile.Transient},
		"no right to create": {nil, nil, map[string]error{"create": apierrors.NewForbidden(schema.GroupResource{}, "logs", never)},
			apierrors.IsForbidden, reconcile.Refused},
		"no right to update": {role(ours, "list"), nil, map[string]error{"update": apierrors.NewForbidden(schema.GroupResource{}, "logs", never)},
			apierrors.IsForbidden, reconcile.Refused},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			if tc.live != nil {
				w = world(tc.live)
			}
			w.fail = tc.fail
			w.before = func(c client.Client) {
				if tc.before != nil {
					if err := tc.before(c); err != nil {
						t.Error(err)
					}
				}
			}
			wrote, err := w.keeper().Keep(t.Context(), Wanted{Object: role(ours, "get")})
			if wrote || err == nil || !tc.is(err) || reconcile.Classify(err) != tc.class {
				t.Errorf("wrote %v, %s error %v", wrote, reconcile.Classify(err), err)
			}
		})
	}
}

// past is a cache that shows nothing yet.
type past struct{ client.Reader }

func (past) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return apierrors.NewNotFound(schema.GroupResource{}, "")
}

func TestWhatACacheDoesNotShowIsReadLive(t *testing.T) {
	for name, tc := range map[string]struct {
		live  *rbacv1.Role
		class reconcile.Class
		wrote bool
	}{
		"as wanted":       {role(ours, "get"), reconcile.Transient, false},
		"ours, different": {role(ours, "list"), reconcile.Transient, true},
		"somebody else's": {role(nil, "get"), reconcile.Refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(tc.live)
			wrote, err := Keeper{Client: w, Reader: past{}, Live: w, Reason: reason}.Keep(t.Context(), Wanted{Object: role(ours, "get")})
			if wrote != tc.wrote || (err != nil) != (tc.class == reconcile.Refused) || err != nil && reconcile.Classify(err) != tc.class {
				t.Errorf("wrote %v, error %v", wrote, err)
			}
		})
	}
}

func TestRemove(t *testing.T) {
	deleted := role(ours)
	deleted.Finalizers = []string{"liqo.io/stays"}
	for name, tc := range map[string]struct {
		live   *rbacv1.Role
		ours   func(client.Object) bool
		before func(c client.Client) error
		writes []string
		fails  func(error) bool
		stays  bool
	}{
		"ours goes":                    {live: role(ours), writes: []string{"delete"}},
		"there is none":                {},
		"somebody else's stays":        {live: role(nil), stays: true},
		"ours by its controller":       {live: owned(role(nil), owner("shop", "1", true)), ours: ControlledBy(&metav1.ObjectMeta{UID: "1"}), writes: []string{"delete"}},
		"another controller's stays":   {live: owned(role(ours), owner("shop", "2", true)), ours: ControlledBy(&metav1.ObjectMeta{UID: "1"}), stays: true},
		"it is gone meanwhile":         {live: role(ours), before: func(c client.Client) error { return c.Delete(context.Background(), role(nil)) }, writes: []string{"delete"}},
		"somebody takes it meanwhile":  {live: role(ours), before: func(c client.Client) error { return c.Update(context.Background(), role(nil)) }, writes: []string{"delete"}, fails: apierrors.IsConflict, stays: true},
		"what is going is left to end": {live: deleted, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := world()
			if tc.live != nil {
				w = world(tc.live)
			}
			if tc.live == deleted {
				if err := w.Delete(t.Context(), role(nil)); err != nil {
					t.Fatal(err)
				}
				w.writes = nil
			}
			w.before = func(c client.Client) {
				if tc.before != nil {
					if err := tc.before(c); err != nil {
						t.Error(err)
					}
				}
			}
			remove := w.keeper().Remove
			if tc.ours != nil {
				remove = func(ctx context.Context, objects ...client.Object) error {
					return w.keeper().RemoveIf(ctx, tc.ours, objects...)
				}
			}
			if err := remove(t.Context(), role(nil)); (err != nil) != (tc.fails != nil) || err != nil && !tc.fails(err) {
				t.Errorf("error %v", err)
			}
			if diff := cmp.Diff(tc.writes, w.writes); diff != "" {
				t.Error(diff)
			}
			if there(t, w, &rbacv1.Role{}) != nil != tc.stays {
				t.Errorf("it stays: %v, want %v", !tc.stays, tc.stays)
			}
		})
	}
}

func TestDeleteTakesWhatWasRead(t *testing.T) {
	for name, tc := range map[string]struct {
		live   []client.Object
		as     []client.DeleteOption
		err    string
		reason func(error) bool
	}{
		"it is there": {[]client.Object{role(ours)}, nil, "", nil},
		"it is gone":  {nil, nil, "", nil},
		"it was changed, and its version counts": {[]client.Object{role(ours)}, []client.DeleteOption{client.Preconditions{ResourceVersion: ptr.To("1")}},
			"deleting Role shop/logs: ", apierrors.IsConflict},
	} {
		t.Run(name, func(t *testing.T) {
			w := world(tc.live...)
			err := Delete(t.Context(), w, role(ours), tc.as...)
			if (err != nil) != (tc.err != "") || err != nil && (!strings.HasPrefix(err.Error(), tc.err) || !tc.reason(err)) {
				t.Errorf("error %v", err)
			}
			if there(t, w, &rbacv1.Role{}) != nil != (tc.err != "") {
				t.Errorf("error %v, and it is there: %v", err, tc.err == "")
			}
		})
	}
}

func TestMakeLeavesWhatIsThere(t *testing.T) {
	w := world(role(nil, "list"))
	if err := Make(t.Context(), w, role(ours, "get"), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(role(nil, "list"), there(t, w, &rbacv1.Role{})); diff != "" || there(t, w, &corev1.ConfigMap{}) == nil {
		t.Errorf("the other one was not made, or this one changed: %s", diff)
	}
	w.fail["create"] = errors.New("no")
	if err := Make(t.Context(), w, role(ours, "get")); err == nil || err.Error() != "creating Role shop/logs: no" {
		t.Errorf("error %v", err)
	}
}

// Texts say kinds as users know them, those of removals too.
func TestErrorsNameTheObject(t *testing.T) {
	w := world(role(ours, "list"))
	w.fail = map[string]error{"update": errors.New("no"), "delete": errors.New("no")}
	_, err := w.keeper().Keep(t.Context(), Wanted{Object: role(ours, "get")})
	if err == nil || err.Error() != "changing Role shop/logs: no" {
		t.Errorf("error %v", err)
	}
	if err := w.keeper().Remove(t.Context(), role(nil)); err == nil || err.Error() != "deleting Role shop/logs: no" {
		t.Errorf("error %v", err)
	}
}
