package namespacemap

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
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/fakeapi"
)

// With a twin goes all that is in it: a controller that starts with a cache of the past removes none that is wanted now.
func TestACacheOfThePastRemovesNoTwin(t *testing.T) {
	earlier := func(change func(*offloadingv1beta1.NamespaceMap)) func(*offloadingv1beta1.NamespaceMap, *authv1beta1.Tenant) {
		return func(nm *offloadingv1beta1.NamespaceMap, _ *authv1beta1.Tenant) { change(nm) }
	}
	for name, before := range map[string]func(*offloadingv1beta1.NamespaceMap, *authv1beta1.Tenant){
		"the map did not want it":        earlier(func(nm *offloadingv1beta1.NamespaceMap) { delete(nm.Spec.DesiredMapping, "shop") }),
		"the map wanted it as another":   earlier(func(nm *offloadingv1beta1.NamespaceMap) { nm.Spec.DesiredMapping["shop"] = "store" }),
		"nothing was wanted or answered": earlier(func(nm *offloadingv1beta1.NamespaceMap) { nm.Spec.DesiredMapping, nm.Status.CurrentMapping = nil, nil }),
		"the tenant was drained": func(_ *offloadingv1beta1.NamespaceMap, tenant *authv1beta1.Tenant) {
			tenant.Spec.TenantCondition = authv1beta1.TenantDrained
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome", "other": "other-rome"}), tenantNamespace(), tenant("Active"))
			w.pass()
			past := []client.Object{tenantNamespace(), w.namespace("shop-rome"), w.namespace("other-rome")}
			nm, tenant := w.nm(), tenant("Active")
			before(nm, tenant)
			w.r.Client = w.Lagging(t, append(past, nm, tenant)...)
			_, w.last = w.r.Reconcile(context.Background(), request)
			if diff := cmp.Diff(map[string]string{"shop": "shop-rome Accepted", "other": "other-rome Accepted"}, w.answers()); diff != "" || w.namespace("store") != nil {
				t.Errorf("by the past: %s", diff)
			}
			for _, twin := range []string{"shop-rome", "other-rome"} {
				if ns := w.namespace(twin); ns == nil || !ns.DeletionTimestamp.IsZero() {
					t.Errorf("the twin %s is removed", twin)
				}
			}
			w.r.Client = w.Client
			w.pass()
			if diff := cmp.Diff(map[string]string{"shop": "shop-rome Accepted", "other": "other-rome Accepted"}, w.answers()); diff != "" {
				t.Errorf("once the cache has caught up: %s", diff)
			}
		})
	}
}

// A map of the past with an answer and without a wish takes no answer away that was given since.
func TestACacheOfThePastTakesNoAnswer(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.pass()
	past := w.nm()
	w.desire(map[string]string{"shop": "shop-rome", "other": "other-rome"})
	w.pass()
	past.Spec.DesiredMapping = nil
	w.r.Client = w.Lagging(t, tenantNamespace(), tenant("Active"), past)
	_, w.last = w.r.Reconcile(context.Background(), request)
	if diff := cmp.Diff(map[string]string{"shop": "shop-rome Accepted", "other": "other-rome Accepted"}, w.answers()); diff != "" {
		t.Error(diff)
	}
}

// A twin that was made a moment ago, and is not seen yet, goes with its map.
func TestAMapWaitsForTwinsThatAreNotSeen(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.pass()
	if err := w.Client.Delete(context.Background(), w.nm()); err != nil {
		t.Fatal(err)
	}
	w.r.Client = w.Lagging(t, tenantNamespace(), tenant("Active"), w.nm())
	w.result, w.last = w.r.Reconcile(context.Background(), request)
	if w.nm() == nil || w.last != nil || w.result.RequeueAfter == 0 {
		t.Fatalf("the map is gone: %v, error %v, again in %s", w.nm() == nil, w.last, w.result.RequeueAfter)
	}
	w.r.Client = w.Client
	w.pass()
	if w.nm() != nil || w.namespace("shop-rome") != nil {
		t.Errorf("the map is there: %v, the twin: %v", w.nm() != nil, w.namespace("shop-rome") != nil)
	}
}

// A twin that the provider's admission does not let go is told about, and changes nothing for the others: those that are wanted stay
// answered, and those that are not are removed.
func TestATwinThatMayNotGoHindersNoOther(t *testing.T) {
	for name, end := range map[string]func(*world){
		"not wanted any more": func(w *world) { w.desire(map[string]string{"stays": "stays-rome"}) },
		"the map is deleted":  func(w *world) { _ = w.Client.Delete(context.Background(), w.nm()) },
	} {
		t.Run(name, func(t *testing.T) {
			refused := true
			w := newWorldWith(t, func(o *fakeapi.Options) {
				o.Deleting = func(o client.Object) error {
					if _, is := o.(*corev1.Namespace); is && o.GetName() == "a-rome" && refused {
						return apierrors.NewForbidden(corev1.Resource("namespaces"), o.GetName(), errors.New("it is protected"))
					}
					return nil
				}
			}, mapOf(map[string]string{"a": "a-rome", "b": "b-rome", "stays": "stays-rome"}), tenantNamespace(), tenant("Active"))
			w.pass()
			end(w)
			for range 3 {
				w.result, w.last = w.r.Reconcile(context.Background(), request)
			}
			if w.namespace("b-rome") != nil || w.namespace("a-rome") == nil {
				t.Error("the wrong twin was removed")
			}
			if w.last == nil && w.result.RequeueAfter == 0 {
				t.Error("it is not tried again")
			}
			if answer := w.nm().Status.CurrentMapping["a"]; answer.Phase != offloadingv1beta1.MappingTerminating || !strings.Contains(answer.Message, "it is protected") {
				t.Errorf("the consumer is told %+v", answer)
			}
			if deleted := !w.nm().DeletionTimestamp.IsZero(); !deleted && w.answers()["stays"] != "stays-rome Accepted" {
				t.Errorf("the answers are %v", w.answers())
			}
			refused = false
			w.pass()
			if w.namespace("a-rome") != nil {
				t.Error("the twin is still there")
			}
		})
	}
}

// A map of the past that was deleted does not take the twins of the present one of its name with it.
func TestAnEarlierMapTakesNothingWithIt(t *testing.T) {
	w := newWorld(t, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.pass()
	nm := w.nm()
	nm.UID, nm.DeletionTimestamp = "earlier", new(metav1.Now())
	w.r.Client = w.Lagging(t, tenantNamespace(), w.namespace("shop-rome"), nm, tenant("Active"))
	_, w.last = w.r.Reconcile(context.Background(), request)
	if w.namespace("shop-rome") == nil {
		t.Error("the twin is removed")
	}
	w.r.Client = w.Client
	w.pass()
	if diff := cmp.Diff(map[string]string{"shop": "shop-rome Accepted"}, w.answers()); diff != "" {
		t.Errorf("once the cache has caught up: %s", diff)
	}
}

// Before Kubernetes 1.33 a namespace's RoleBindings may go before its pods. None of those that are left when a twin is deleted waits for a
// right of ours; what others hold up, they hold up.
func TestATwinThatIsDeletedHasNoPodThatWaitsForUs(t *testing.T) {
	for name, end := range map[string]func(*world){
		"not wanted any more": func(w *world) { w.desire(nil) },
		"the map is deleted":  func(w *world) { _ = w.Client.Delete(context.Background(), w.nm()) },
	} {
		t.Run(name, func(t *testing.T) {
			pod := func(namespace, name string, finalizers ...string) *corev1.Pod {
				return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Finalizers: finalizers,
					Labels: map[string]string{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}}}
			}
			var w *world
			var seen []string
			w = newWorldWith(t, func(o *fakeapi.Options) {
				o.Deleting = func(o client.Object) error {
					if _, is := o.(*corev1.Namespace); !is {
						return nil
					}
					pods := &corev1.PodList{}
					if err := w.Client.List(context.Background(), pods, client.InNamespace(o.GetName())); err != nil {
						return err
					}
					for i := range pods.Items {
						seen = append(seen, strings.Join(append([]string{pods.Items[i].Name}, pods.Items[i].Finalizers...), " "))
					}
					return nil
				}
			}, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"),
				pod("shop-rome", "job", offloadingv1beta1.ShadowPodRecordFinalizer), pod("shop-rome", "held", offloadingv1beta1.ShadowPodRecordFinalizer, "test/held"),
				pod("shop-rome", "web"), pod("elsewhere", "job", offloadingv1beta1.ShadowPodRecordFinalizer))
			w.pass()
			end(w)
			w.pass()
			if diff := cmp.Diff([]string{"held test/held", "job", "web"}, seen); diff != "" || w.namespace("shop-rome") != nil {
				t.Errorf("when the twin was deleted its pods were (-want +got):\n%s", diff)
			}
			other := pod("elsewhere", "job")
			if err := w.Get(context.Background(), client.ObjectKeyFromObject(other), other); err != nil || len(other.Finalizers) != 1 {
				t.Errorf("a pod elsewhere has finalizers %v, error %v", other.Finalizers, err)
			}
		})
	}
}

// Rights of ours that are away for a moment, as in an upgrade, are nothing that a consumer has to stop its work for; what was not accepted
// before is not accepted.
func TestATwinThatWasAcceptedStaysSoWhileOurRightsAreAway(t *testing.T) {
	away := false
	w := newWorldWith(t, func(o *fakeapi.Options) {
		creating := o.Creating
		o.Creating = func(o client.Object) error {
			if _, is := o.(*rbacv1.RoleBinding); is && away {
				return apierrors.NewForbidden(rbacv1.Resource("rolebindings"), o.GetName(), errors.New("no rights"))
			}
			return creating(o)
		}
	}, mapOf(map[string]string{"shop": "shop-rome"}), tenantNamespace(), tenant("Active"))
	w.pass()
	away = true
	lost := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: offloadingv1beta1.RemoteClusterRole}}
	if err := w.Delete(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	w.desire(map[string]string{"shop": "shop-rome", "new": "new-rome"})
	for range 3 {
		w.result, w.last = w.r.Reconcile(t.Context(), request)
	}
	want := map[string]string{"shop": "shop-rome Accepted", "new": "new-rome CreationLoopBackOff Forbidden"}
	if diff := cmp.Diff(want, w.answers()); diff != "" {
		t.Error(diff)
	}
	away = false
	w.pass()
	want["new"] = "new-rome Accepted"
	if diff := cmp.Diff(want, w.answers()); diff != "" {
		t.Error(diff)
	}
	if err := w.Get(t.Context(), client.ObjectKeyFromObject(lost), lost); err != nil {
		t.Error(err)
	}
}
