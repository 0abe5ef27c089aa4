package namespaceoffloading

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// lags gives the controller a cache of the past, in which each object was what before makes of it; nil: it was not there. More objects were
// there.
func (w *world) lags(before func(client.Object) client.Object, objects ...client.Object) {
	w.Helper()
	for _, list := range []client.ObjectList{&offloadingv1beta1.NamespaceOffloadingList{}, &offloadingv1beta1.NamespaceMapList{}, &offloadingv1beta1.VirtualNodeList{},
		&corev1.NodeList{}, &corev1.NamespaceList{}, &rbacv1.RoleBindingList{}} {
		if err := w.List(context.Background(), list); err != nil {
			w.Fatal(err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if o := before(item.(client.Object)); o != nil {
				objects = append(objects, o)
			}
			return nil
		})
		if err != nil {
			w.Fatal(err)
		}
	}
	w.r.Client = w.Lagging(w, objects...)
}

// A controller that starts with a cache of the past takes a namespace away from no cluster that it is offloaded to now.
func TestACacheOfThePastWithdrawsNothing(t *testing.T) {
	for name, before := range map[string]func(client.Object) client.Object{
		"the namespace was offloaded to none": func(o client.Object) client.Object {
			if nso, is := o.(*offloadingv1beta1.NamespaceOffloading); is {
				nso.Spec.ClusterSelector.NodeSelectorTerms[0].MatchExpressions[0].Key = "none"
			}
			return o
		},
		"an earlier offloading was being undone": func(o client.Object) client.Object {
			if nso, is := o.(*offloadingv1beta1.NamespaceOffloading); is {
				nso.UID, nso.DeletionTimestamp = "earlier", new(metav1.Now())
			}
			return o
		},
		"the node had another label": func(o client.Object) client.Object {
			if node, is := o.(*corev1.Node); is {
				delete(node.Labels, "region")
			}
			return o
		},
		"the node was not there": func(o client.Object) client.Object {
			if _, is := o.(*corev1.Node); is {
				return nil
			}
			return o
		},
		"the virtual nodes were not there": func(o client.Object) client.Object {
			if _, is := o.(*offloadingv1beta1.VirtualNode); is {
				return nil
			}
			return o
		},
	} {
		t.Run(name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, "region": "south"}}}
			nso := offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()})
			nso.UID = "now"
			w := newWorld(t, nso, node)
			w.pass()
			wanted := w.state()
			w.lags(before)
			writes := w.Writes
			w.pass()
			if diff := cmp.Diff(wanted, w.state()); diff != "" || w.Writes != writes {
				t.Errorf("%d writes: %s", w.Writes-writes, diff)
			}
			if w.last != nil || w.result.RequeueAfter == 0 {
				t.Errorf("error %v, again in %s", w.last, w.result.RequeueAfter)
			}
			w.r.Client = w.Client
			w.expect("the cache has caught up", wanted)
		})
	}
}

// Neither the NamespaceMap nor the virtual nodes are seen as they are: no rights are taken away.
func TestACacheOfThePastTakesNoRights(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}))
	w.pass()
	wanted := w.state()
	w.lags(func(o client.Object) client.Object {
		switch past := o.(type) {
		case *offloadingv1beta1.VirtualNode:
			return nil
		case *offloadingv1beta1.NamespaceMap:
			delete(past.Spec.DesiredMapping, "shop")
		}
		return o
	})
	w.pass()
	if diff := cmp.Diff(wanted, w.state()); diff != "" || w.result.RequeueAfter == 0 {
		t.Errorf("again in %s: %s", w.result.RequeueAfter, diff)
	}
}

// The cache does not show yet that a provider was asked for a twin, or that it has one: the object stays, because nobody else would have the
// twin removed.
func TestUnoffloadingBeforeTheCacheShowsTheTwin(t *testing.T) {
	for name, change := range map[string]func(*world){
		"it is asked": func(*world) {},
		"it has answered": func(w *world) {
			w.answer("naples", "shop-rome", "Accepted")
			if err := w.r.want(context.Background(), nsmap("naples"), "shop", nil, nil); err != nil {
				w.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()}))
			w.pass()
			change(w)
			if err := w.Delete(context.Background(), w.nso()); err != nil {
				t.Fatal(err)
			}
			w.lags(func(o client.Object) client.Object {
				if nm, is := o.(*offloadingv1beta1.NamespaceMap); is {
					delete(nm.Spec.DesiredMapping, "shop")
					delete(nm.Status.CurrentMapping, "shop")
				}
				return o
			})
			w.result, w.last = w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
			if w.nso() == nil || w.last != nil || w.result.RequeueAfter == 0 {
				t.Fatalf("it is gone: %v, error %v, again in %s", w.nso() == nil, w.last, w.result.RequeueAfter)
			}
			w.r.Client = w.Client
			w.pass()
			w.answer("naples", "", "")
			w.pass()
			if w.nso() != nil {
				t.Error("it is still there")
			}
		})
	}
}

// A provider was marked as lost once and answers again: its volumes hold the namespace, whatever the cache shows.
func TestAClusterThatWasDeadHoldsItsVolumes(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{}), volumeAt("milan"))
	w.pass()
	if err := w.Delete(context.Background(), w.nso()); err != nil {
		t.Fatal(err)
	}
	dead := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan", Annotations: map[string]string{corev1beta1.PermanentlyUnreachableAnnotation: "true"}}}
	w.lags(func(o client.Object) client.Object { return o }, dead)
	w.result, w.last = w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: key})
	if _, mapped := w.state()["map milan"]; !mapped {
		t.Error("the twin with the volume is given up")
	}
}

// The virtual node of a cluster is drained: its pods leave one after another, so the twin stays until they have, with the rights of the
// virtual kubelet. Nothing new is offloaded to it.
func TestADrainedClusterKeepsItsTwin(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()}))
	w.pass()
	w.answer("naples", "shop-rome", "Accepted")
	w.pass()
	drained := vnode("naples", "naples", nil)
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(drained), drained); err != nil {
		t.Fatal(err)
	}
	drained.Finalizers = []string{"test/drains"}
	if err := w.Update(context.Background(), drained); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(context.Background(), drained); err != nil {
		t.Fatal(err)
	}
	w.expect("it is drained", map[string]string{"map naples": "shop-rome", "rights liqo-virtual-kubelet-naples": naplesRights, "label": "true",
		"phase": "Ready", "ready": "True OffloadingReady"})
	if c := meta.FindStatusCondition(w.nso().Status.Conditions, "Ready"); !strings.Contains(c.Message, "it leaves naples once") {
		t.Errorf("it says %q", c.Message)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "liqo-virtual-kubelet-naples"}}
	if err := w.Delete(context.Background(), binding); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if rights := w.state()["rights liqo-virtual-kubelet-naples"]; rights != naplesRights {
		t.Errorf("the rights of the virtual kubelet that is drained are %q", rights)
	}
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(drained), drained); err != nil {
		t.Fatal(err)
	}
	drained.Finalizers = nil
	if err := w.Update(context.Background(), drained); err != nil {
		t.Fatal(err)
	}
	w.expect("it is gone", map[string]string{"label": "true", "phase": "NoClusterSelected", "ready": "False NoClusterSelected"})
}
