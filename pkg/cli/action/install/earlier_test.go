package install_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/charts"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/install"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/helm"
)

// rome is a cluster with a worker and what an earlier Liqo left, and what is to be installed there.
func rome(t *testing.T, r *releases, objects ...client.Object) (*fixture.Cluster, install.Options) {
	t.Helper()
	cluster := fixture.New(t, fixture.Options{Name: "rome", Objects: append([]client.Object{worker}, objects...)})
	cluster.Config.Host = "https://10.0.0.1:6443"
	return cluster, install.Options{Cluster: cluster.Cluster, Chart: charts.Liqo(), Helm: r, Wishes: install.Wishes{ServiceCIDR: "10.11.0.0/16"}, ClusterID: "rome"}
}

const tenants = "tenants.authentication.liqo.io"

// What v1's chart leaves in a cluster becomes the release's, with all that it is besides; nothing else is touched, and nothing before the checks.
func TestLeftoversAreAdopted(t *testing.T) {
	scoped := func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }
	storage := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-storage", Labels: map[string]string{offloadingv1beta1.StorageProvisionerLabel: "true"}}}
	left := []client.Object{
		fixture.LeftDefinition(tenants, nil), fixture.LeftDefinition("foreignclusters.core.liqo.io", scoped), fixture.LeftDefinition("ips.ipam.liqo.io", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.StoredVersions = []string{"v1alpha1"}
		}),
		fixture.LeftDefinition("identities.authentication.liqo.io", fixture.HeldBy("liqo", "liqo-system")), storage,
	}
	others := []client.Object{
		fixture.LeftDefinition("virtualnodes.offloading.liqo.io", fixture.HeldBy("liqo", "liqo")), fixture.LeftDefinition("advertisements.sharing.liqo.io", nil), fixture.LeftDefinition("things.other.liqo.io", nil), fixture.LeftDefinition("certificates.cert-manager.io", nil),
		&corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}},
	}
	r := &releases{fails: errors.New("so that nothing is waited for")}
	cluster, o := rome(t, r, slices.Concat(left, others)...)
	plan, err := install.Prepare(t.Context(), o)
	if err != nil || len(cluster.Writes()) > 0 {
		t.Fatal(err, cluster.Writes())
	}
	if _, err := plan.Render(t.Context()); err != nil || !r.adopts {
		t.Errorf("a rendering asks whose the definitions are: %v", err)
	}
	if _, err := plan.Apply(t.Context()); !errors.Is(err, r.fails) {
		t.Error(err)
	}
	var want []string
	for _, object := range left {
		want = append(want, "patch "+cluster.Describe(object))
		live := object.DeepCopyObject().(client.Object)
		if _, err := cluster.Get(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		if live.GetLabels()["app.kubernetes.io/managed-by"] != "Helm" || live.GetAnnotations()["meta.helm.sh/release-name"] != "liqo" ||
			live.GetAnnotations()["meta.helm.sh/release-namespace"] != "liqo" || live.GetAnnotations()["kept"] != object.GetAnnotations()["kept"] {
			t.Errorf("%s has labels %v, annotations %v", object.GetName(), live.GetLabels(), live.GetAnnotations())
		}
	}
	got := cluster.Writes()
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"install"}, r.calls); diff != "" {
		t.Error(diff)
	}
}

// Whoever may not take over what is left learns it before anything is changed.
func TestLeftoversNeedARight(t *testing.T) {
	r := &releases{}
	_, err := install.Prepare(t.Context(), options(t, r, func(o *fixture.Options) {
		o.Objects = append(o.Objects, fixture.LeftDefinition(tenants, nil))
		o.Missing = []string{"patch customresourcedefinitions.apiextensions.k8s.io"}
	}))
	if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), "you are not allowed to: patch customresourcedefinitions.apiextensions.k8s.io") {
		t.Errorf("got %v", err)
	}
}

// Where Liqo v1 is, nothing is prepared, and nothing changed.
func TestNothingIsInstalledOverLiqoV1(t *testing.T) {
	r := &releases{present: &helm.Release{Name: "liqo", Namespace: "liqo", Revision: 1, Status: "deployed", AppVersion: "v1.2.0", Manifest: "kind: ConfigMap"}}
	cluster, o := rome(t, r)
	_, err := install.Run(t.Context(), o)
	if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), "Helm release liqo in namespace liqo is one of Liqo v1 (v1.2.0)") {
		t.Errorf("got %v", err)
	}
	if len(cluster.Writes())+len(r.calls) > 0 {
		t.Errorf("a check changed something: %v %v", cluster.Writes(), r.calls)
	}
}
