package greed

import (
	"fmt"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// S12, Q5: what a consumer makes in its tenant namespace is counted by the API server.
func TestATenantsObjectsAreCounted(t *testing.T) {
	c := env.NewTenant(t)
	kinds := map[string]func(name string) client.Object{
		"ResourceSlices": func(name string) client.Object { return c.Slice(name, nil, world.Quantities("cpu", "1")) },
		"NamespaceMaps": func(name string) client.Object {
			return &offloadingv1beta1.NamespaceMap{ObjectMeta: c.Marks(name)}
		},
	}
	for kind, render := range kinds {
		var err error
		made := 0
		for ; made < 200 && err == nil; made++ {
			err = c.User.Create(t.Context(), render(fmt.Sprintf("flood-%d", made)))
		}
		if made >= 200 {
			t.Errorf("a consumer made %d %s", made, kind)
		}
	}
	slices, answered := &authv1beta1.ResourceSliceList{}, 0
	fixture.Must(t, "listing ResourceSlices", c.User.List(t.Context(), slices, client.InNamespace(c.Namespace)))
	for i := range slices.Items {
		if world.Status(&slices.Items[i], authv1beta1.ResourcesCondition).Status == authv1beta1.Accepted {
			answered++
		}
	}
	if answered > 16 {
		t.Errorf("%d ResourceSlices of one consumer were granted", answered)
	}
}
