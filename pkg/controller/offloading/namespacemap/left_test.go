package namespacemap

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// A map that goes takes its twins along if the consumer, which has rights, deleted it. Where the provider ended the peering, nobody decided
// about data: twins that hold some stay, without rights and pods, and an Event says how they are lost. The consumer's next map takes them up.
func TestDataStaysWhereTheProviderEndsThePeering(t *testing.T) {
	gone := func(w *world, change func(*authv1beta1.Tenant)) {
		w.Helper()
		rome := tenant("Active")
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(rome), rome); err != nil {
			w.Fatal(err)
		}
		if change == nil {
			if err := w.Client.Delete(context.Background(), rome); err != nil {
				w.Fatal(err)
			}
			return
		}
		change(rome)
		if err := w.Client.Update(context.Background(), rome); err != nil {
			w.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		end    func(*world)
		claims bool
		kept   bool
	}{
		"the consumer ends it":           {end: func(*world) {}, claims: true},
		"the Tenant is deleted":          {end: func(w *world) { gone(w, nil) }, claims: true, kept: true},
		"the Tenant is deleted, no data": {end: func(w *world) { gone(w, nil) }},
		"the Tenant is drained before": {end: func(w *world) {
			gone(w, func(t *authv1beta1.Tenant) { t.Spec.TenantCondition = authv1beta1.TenantDrained })
		}, claims: true, kept: true},
		"the Tenant is revoked before": {end: func(w *world) { gone(w, func(t *authv1beta1.Tenant) { t.Spec.RevokedPeering = "p0" }) }, claims: true, kept: true},
		"a cache shows the Tenant as it was": {end: func(w *world) {
			nm := w.nm()
			nm.DeletionTimestamp = new(metav1.Now())
			rights := &rbacv1.RoleBinding{}
			if err := w.Get(context.Background(), client.ObjectKey{Namespace: "shop-rome", Name: offloadingv1beta1.RemoteClusterRole}, rights); err != nil {
				w.Fatal(err)
			}
			w.r.Client = w.Lagging(w, tenantNamespace(), w.namespace("shop-rome"), rights, nm, tenant("Active"))
			gone(w, nil)
		}, claims: true, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mapOf(nil), tenantNamespace(), tenant("Active"))
			told := events.NewFakeRecorder(10)
			w.r.Events = told
			w.say("p0", map[string]string{"shop": "shop-rome"}, map[string]string{"shop": "a"})
			objects := []client.Object{&offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "web"}}}
			if tc.claims {
				objects = append(objects, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "data"}})
			}
			for _, object := range objects {
				if err := w.Client.Create(context.Background(), object); err != nil {
					t.Fatal(err)
				}
			}
			first := w.namespace("shop-rome").UID
			if err := w.Client.Delete(context.Background(), w.nm()); err != nil {
				t.Fatal(err)
			}
			tc.end(w)
			_, w.last = w.r.Reconcile(context.Background(), request)
			w.r.Client = w.Client
			w.pass()
			if w.nm() != nil {
				t.Fatalf("the map waits: %v", w.last)
			}
			if twin := w.namespace("shop-rome"); (twin != nil) != tc.kept {
				t.Fatalf("the twin is there: %t", twin != nil)
			}
			if !tc.kept {
				return
			}
			rights := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: offloadingv1beta1.RemoteClusterRole}}
			for _, object := range []client.Object{rights, objects[0]} {
				if err := w.Get(context.Background(), client.ObjectKeyFromObject(object), object); err == nil {
					t.Errorf("%T %s is still there", object, object.GetName())
				}
			}
			want := "Warning TwinHoldsData namespace shop-rome of the provider stays, because it holds data: 1 claim (data); the peering was ended here, and rome takes it up when it peers again; " +
				"to lose it, run: liqoctl unpeer --force rome --delete-volumes"
			if len(told.Events) != 1 {
				t.Fatalf("%d Events", len(told.Events))
			}
			if got := <-told.Events; got != want {
				t.Errorf("it tells %q, want %q", got, want)
			}
			w.isTakenUp(first)
		})
	}
}

// isTakenUp has the consumer peer again, and offload the same namespace, or another of its name.
func (w *world) isTakenUp(first any) {
	w.Helper()
	rome := tenant("Active")
	if err := w.Client.Delete(context.Background(), tenant("Active")); client.IgnoreNotFound(err) != nil {
		w.Fatal(err)
	}
	again := mapOf(map[string]string{"shop": "shop-rome"})
	again.UID, again.Annotations = "map-uid-2", map[string]string{corev1beta1.OriginPeeringAnnotation: "p1"}
	again.Spec.OriginUIDs = map[string]string{"shop": "b"}
	for _, object := range []client.Object{rome, again} {
		if err := w.Client.Create(context.Background(), object); err != nil {
			w.Fatal(err)
		}
	}
	w.pass()
	if got := w.nm().Status.CurrentMapping["shop"]; got.Reason != offloadingv1beta1.ReasonNamespaceConflict || !strings.Contains(got.Message, "liqoctl peer --delete-volumes") {
		w.Errorf("another namespace of that name gets %+v", got)
	}
	w.say("p1", map[string]string{"shop": "shop-rome"}, map[string]string{"shop": "a"})
	twin := w.namespace("shop-rome")
	if got := w.answers()["shop"]; got != "shop-rome Accepted" || twin.UID != first || !isTwinOf(twin, w.nm()) || twin.Annotations[corev1beta1.OriginPeeringAnnotation] != "p1" {
		w.Errorf("the same namespace gets %q and a twin with %v", got, twin.Annotations)
	}
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "shop-rome", Name: offloadingv1beta1.RemoteClusterRole}, &rbacv1.RoleBinding{}); err != nil {
		w.Error(err)
	}
}
