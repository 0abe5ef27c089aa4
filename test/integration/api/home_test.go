package api

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/test/integration/fixture"
)

var home = placement.HomeNamespaces{Liqo: fixture.Namespace}

// offloadingOf asks for a namespace to be offloaded, as its users do.
func offloadingOf(namespace string) *offloadingv1beta1.NamespaceOffloading {
	return &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
}

// The API server itself refuses what holds private keys: no process of ours runs here.
func TestNamespacesThatAreNeverOffloaded(t *testing.T) {
	t.Parallel()
	tenant := map[string]string{corev1beta1.TenantNamespaceLabel: "true"}
	named, labelled, plain := corev1beta1.TenantNamespacePrefix+fixture.Unique("x"), fixture.Unique("labelled"), fixture.Unique("shop")
	for name, labels := range map[string]map[string]string{named: nil, labelled: tenant, plain: nil, "liqo-storage": nil} {
		object := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}
		fixture.Must(t, "creating Namespace "+name, client.IgnoreAlreadyExists(env.Milan.Client.Create(t.Context(), object)))
	}
	for namespace, labels := range map[string]map[string]string{
		fixture.Namespace: nil, named: nil, labelled: tenant, "liqo-storage": nil, metav1.NamespaceSystem: nil, metav1.NamespacePublic: nil, plain: nil,
	} {
		t.Run(namespace, func(t *testing.T) {
			t.Parallel()
			want := home.WhyNeverOffloaded(namespace, labels)
			fixture.Await(t, fixture.Patience, "the answer for namespace "+namespace, func(ctx context.Context) (bool, string) {
				err := env.Milan.Client.Create(ctx, offloadingOf(namespace), client.DryRunAll)
				if want == "" {
					return err == nil, fmt.Sprint(err)
				}
				return err != nil && strings.Contains(err.Error(), "NamespaceNeverOffloaded: "+want), fmt.Sprint(err)
			})
		})
	}
}

// What was offloaded before it became one of these cannot be changed any more, but undone.
func TestAnOffloadedNamespaceThatBecomesATenantNamespace(t *testing.T) {
	t.Parallel()
	name := newNamespace(t, env.Milan)
	offloading := offloadingOf(name)
	offloading.Finalizers = []string{offloadingv1beta1.NamespaceOffloadingFinalizer}
	fixture.Must(t, "offloading the namespace", env.Milan.Client.Create(t.Context(), offloading))
	label := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"liqo.io/tenant-namespace":"true"}}}`))
	fixture.Must(t, "labelling it", env.Milan.Client.Patch(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, label))
	change := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"podOffloadingStrategy":"Remote"}}`))
	fixture.Await(t, fixture.Patience, "the API server to refuse a change", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Patch(ctx, offloadingOf(name), change, client.DryRunAll)
		return err != nil && strings.Contains(err.Error(), "NamespaceNeverOffloaded"), fmt.Sprint(err)
	})
	fixture.Must(t, "deleting it", env.Milan.Client.Delete(t.Context(), offloadingOf(name)))
	undo := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	fixture.Must(t, "taking its finalizer away", env.Milan.Client.Patch(t.Context(), offloadingOf(name), undo))
}

// Nor does a line in a NamespaceMap, written by hand, let them cross; a peer's map names the peer's namespaces.
func TestMappingsOfNamespacesThatAreNeverOffloaded(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	live := p.namespaceMap(fixture.Unique("map"), p.outgoing())
	live.Spec.DesiredMapping = map[string]string{"shop": "shop-milan"}
	p.provide(t, live)
	for namespace, mine := range map[string]bool{
		fixture.Namespace: true, "liqo-storage": true, "kube-system": true, "liqo-tenant-rome": true, "stall": true, "liqo-tenant-turin": false, "kube-public": false,
	} {
		t.Run(fmt.Sprintf("%s, of this cluster: %v", namespace, mine), func(t *testing.T) {
			t.Parallel()
			object := p.namespaceMap("new-"+namespace, p.outgoing())
			if !mine {
				object.Labels = p.honest()
			}
			object.Spec.DesiredMapping = map[string]string{namespace: "loot"}
			refused := mine && home.WhyNeverOffloaded(namespace, nil) != ""
			fixture.Await(t, fixture.Patience, "the answers for a map of "+namespace, func(ctx context.Context) (bool, string) {
				created := env.Milan.Client.Create(ctx, object.DeepCopy(), client.DryRunAll)
				patched := env.Milan.Client.Patch(ctx, live.DeepCopy(), client.RawPatch("application/merge-patch+json",
					[]byte(`{"spec":{"desiredMapping":{"`+namespace+`":"loot"}}}`)), client.DryRunAll)
				ok := denied(created) == refused && denied(patched) == (home.WhyNeverOffloaded(namespace, nil) != "")
				return ok, fmt.Sprint(created, patched)
			})
		})
	}
}

func denied(err error) bool {
	return err != nil && strings.Contains(err.Error(), "NamespaceNeverOffloaded: namespace ")
}
