package namespacemap

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// squatting wants five namespaces, with names of their own for each n; those of a prefix "stuck" do not go when they are deleted.
func squatting(prefix string, n int) map[string]string {
	m := map[string]string{}
	for i := range 5 {
		m[fmt.Sprintf("ns-%d-%d", n, i)] = fmt.Sprintf("%s-%d-%d", prefix, n, i)
	}
	return m
}

// squats are the namespaces that the tenant has.
func (w *world) squats() []string {
	w.Helper()
	var all corev1.NamespaceList
	if err := w.List(context.Background(), &all); err != nil {
		w.Fatal(err)
	}
	var names []string
	for i := range all.Items {
		if name := all.Items[i].Name; strings.HasPrefix(name, "squat-") || strings.HasPrefix(name, "stuck-") {
			names = append(names, name)
		}
	}
	return names
}

func (w *world) passOf(name string) {
	for range 6 {
		_, _ = w.r.Reconcile(context.Background(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: name}})
	}
}

// V11: the limit was counted per NamespaceMap, and a consumer may make several.
func TestTwinLimitIsPerTenant(t *testing.T) {
	several := func() []client.Object {
		objects := []client.Object{tenantNamespace(), tenant("Active")}
		for n := range 4 {
			nm := mapOf(squatting("squat", n))
			nm.Name, nm.UID = fmt.Sprintf("map-%d", n), types.UID(fmt.Sprintf("uid-of-map-%d", n))
			objects = append(objects, nm)
		}
		return objects
	}
	for name, tc := range map[string]struct {
		objects []client.Object
		attack  func(w *world)
		limit   int
	}{
		"several maps": {several(), func(w *world) {
			for n := range 4 {
				w.passOf(fmt.Sprintf("map-%d", n))
			}
		}, 5},
		"several maps, the last one first": {several(), func(w *world) {
			for n := range 4 {
				w.passOf(fmt.Sprintf("map-%d", 3-n))
			}
		}, 5},
		"a wish that changes while namespaces do not go": {[]client.Object{tenantNamespace(), tenant("Active"), mapOf(squatting("stuck", 0))}, func(w *world) {
			for n := range 4 {
				w.desire(squatting("stuck", n))
				w.passOf(key.Name)
			}
		}, 5},
		"a map that is deleted and made again while namespaces do not go": {[]client.Object{tenantNamespace(), tenant("Active"), mapOf(squatting("stuck", 0))}, func(w *world) {
			w.passOf(key.Name)
			if err := w.Client.Delete(context.Background(), w.nm()); err != nil {
				w.Fatal(err)
			}
			w.passOf(key.Name)
			second := mapOf(squatting("stuck", 1))
			second.Name, second.UID = "another", "uid-of-another"
			if err := w.Client.Create(context.Background(), second); err != nil {
				w.Fatal(err)
			}
			w.passOf(second.Name)
		}, 5},
		"a limit that the Tenant sets": {append(several()[2:], tenantNamespace(), limited(2)), func(w *world) {
			for n := range 4 {
				w.passOf(fmt.Sprintf("map-%d", n))
			}
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.objects...)
			tc.attack(w)
			if got := w.squats(); len(got) > tc.limit || len(got) == 0 {
				t.Errorf("the tenant has %d namespaces, %v, the rule allows %d", len(got), got, tc.limit)
			}
		})
	}
}

func limited(namespaces int32) *authv1beta1.Tenant {
	t := tenant("Active")
	t.Spec.Limits = &authv1beta1.TenantLimits{Namespaces: ptr.To(namespaces)}
	return t
}

// What the cache does not show yet counts, too.
func TestTwinLimitCountsWhatTheCacheDoesNotShow(t *testing.T) {
	w := newWorld(t, tenantNamespace(), tenant("Active"), mapOf(squatting("stuck", 0)))
	present := w.r.Client
	w.passOf(key.Name)
	w.r.Client = blind{present}
	w.desire(squatting("stuck", 1))
	w.passOf(key.Name)
	if got := w.squats(); len(got) != 5 {
		t.Errorf("the tenant has %d namespaces, %v, the rule allows 5", len(got), got)
	}
	if answer := w.nm().Status.CurrentMapping["ns-1-0"]; answer.Reason != offloadingv1beta1.ReasonNamespaceLimit {
		t.Errorf("the consumer is told %q: %s", answer.Reason, answer.Message)
	}
}

// blind is a cache that shows no namespaces of twins yet.
type blind struct{ client.Client }

func (b blind) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, namespaces := list.(*corev1.NamespaceList); namespaces {
		return nil
	}
	return b.Client.List(ctx, list, options...)
}

// A second map keeps the namespaces that it has from before, and is told where to ask for new ones.
func TestASecondMapGetsNothingNew(t *testing.T) {
	second := mapOf(map[string]string{"shop": "squat-shop"})
	second.Name, second.UID = "second", "uid-of-second"
	w := newWorld(t, tenantNamespace(), tenant("Active"), second)
	w.passOf(second.Name)
	first := mapOf(map[string]string{"bar": "squat-bar"})
	first.Name, first.UID = "first", "uid-of-first"
	if err := w.Client.Create(context.Background(), first); err != nil {
		t.Fatal(err)
	}
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(second), second); err != nil {
		t.Fatal(err)
	}
	second.Spec.DesiredMapping["stall"] = "squat-stall"
	if err := w.Client.Update(context.Background(), second); err != nil {
		t.Fatal(err)
	}
	w.passOf(second.Name)
	if err := w.Get(context.Background(), client.ObjectKeyFromObject(second), second); err != nil {
		t.Fatal(err)
	}
	kept, refused := second.Status.CurrentMapping["shop"], second.Status.CurrentMapping["stall"]
	if kept.Phase != offloadingv1beta1.MappingAccepted {
		t.Errorf("the namespace from before is %s: %s", kept.Phase, kept.Message)
	}
	if refused.Reason != offloadingv1beta1.ReasonNamespaceLimit || !strings.Contains(refused.Message, "first") {
		t.Errorf("the new one is answered with %s: %s", refused.Reason, refused.Message)
	}
}
