package virtualnode

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// A virtual kubelet may ask for its certificate once the admission policy knows its node, and never before.
func TestANodeIsListedBeforeItGetsItsIdentity(t *testing.T) {
	list := client.ObjectKey{Namespace: "liqo", Name: offloadingv1beta1.VirtualNodesPolicy}
	w := newWorld(t, virtualNode(), tenantNamespace())
	var live rbacv1.RoleBinding
	if err := w.Get(context.Background(), list, &live); err != nil {
		t.Fatal(err)
	}
	live.Subjects = virtualNodes("turin").Subjects
	if err := w.Update(context.Background(), &live); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if err := w.Get(context.Background(), list, &live); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(virtualNodes("turin", "milan").Subjects, live.Subjects); diff != "" {
		t.Error(diff)
	}

	w = newWorld(t, virtualNode(), tenantNamespace())
	if err := w.Delete(context.Background(), virtualNodes()); err != nil {
		t.Fatal(err)
	}
	w.pass()
	if w.exists(&rbacv1.ClusterRoleBinding{}, "", bootstrapRights+"milan") {
		t.Error("without the list the virtual kubelet may ask for the node's certificate")
	}
	if got := w.condition("Ready"); !strings.HasPrefix(got, "False AdmissionPolicyMissing: the RoleBinding liqo/liqo-virtual-nodes") {
		t.Errorf("got %q", got)
	}
}
