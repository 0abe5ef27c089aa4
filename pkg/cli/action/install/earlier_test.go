package install_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
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

// runs is a Deployment with the labels that the charts of both projects give, and an argument.
func runs(namespace, component, arg string, pod map[string]string) *appsv1.Deployment {
	labels := map[string]string{
		"app.kubernetes.io/part-of": "liqo", "app.kubernetes.io/name": component, "app.kubernetes.io/component": component, "app.kubernetes.io/managed-by": "Helm",
	}
	if pod != nil {
		labels = nil
	}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "liqo-" + component, Labels: labels},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: component, Args: []string{arg}}}}}}}
}

func fabricOf(arg string) *appsv1.DaemonSet {
	d := runs("liqo", "fabric", arg, nil)
	return &appsv1.DaemonSet{ObjectMeta: d.ObjectMeta, Spec: appsv1.DaemonSetSpec{Template: d.Spec.Template}}
}

// record is what Helm keeps of a release; its content is not read.
func record(namespace, name string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sh.helm.release.v1." + name + ".v1",
		Labels: map[string]string{"owner": "helm", "name": name, "status": "deployed"}}}
}

// leftover is a definition as v1's chart leaves it in a cluster.
func leftover(name string, change func(*apiextensionsv1.CustomResourceDefinition)) *apiextensionsv1.CustomResourceDefinition {
	plural, group, _ := strings.Cut(name, ".")
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"kept": "as it was"}},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural}},
		Status: apiextensionsv1.CustomResourceDefinitionStatus{StoredVersions: []string{"v1beta1"}}}
	if change != nil {
		change(crd)
	}
	return crd
}

func heldBy(release, namespace string) func(*apiextensionsv1.CustomResourceDefinition) {
	return func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Labels = map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		crd.Annotations = map[string]string{"meta.helm.sh/release-name": release, "meta.helm.sh/release-namespace": namespace}
	}
}

func annotated(d *appsv1.Deployment) client.Object {
	d.Annotations = map[string]string{offloadingv1beta1.RenderedHashAnnotation: "1234"}
	return d
}

// rome is a cluster with a worker and what an earlier Liqo left, and what is to be installed there.
func rome(t *testing.T, r *releases, objects ...client.Object) (*fixture.Cluster, install.Options) {
	t.Helper()
	cluster := fixture.New(t, fixture.Options{Name: "rome", Objects: append([]client.Object{worker}, objects...)})
	cluster.Config.Host = "https://10.0.0.1:6443"
	return cluster, install.Options{Cluster: cluster.Cluster, Chart: charts.Liqo(), Helm: r, Wishes: install.Wishes{ServiceCIDR: "10.11.0.0/16"}, ClusterID: "rome"}
}

const (
	tenants = "tenants.authentication.liqo.io"
	v1Says  = "end its peerings and uninstall it with the liqoctl of Liqo v1, then run the same command again (docs/guide/migration.md)"
)

var (
	kubelet = map[string]string{"offloading.liqo.io/component": "virtual-kubelet"}
	gateway = map[string]string{"networking.liqo.io/component": "gateway"}
)

// Where Liqo v1 is, or something that cannot become ours, nothing is changed, and one sentence says how to go on.
func TestAnEarlierLiqoIsInTheWay(t *testing.T) {
	now := metav1.Now()
	for sentence, test := range map[string]struct {
		present *helm.Release
		objects []client.Object
		want    string // nothing if it can be installed
	}{
		"an empty cluster": {},
		"this Liqo": {present: &helm.Release{Status: "deployed", Revision: 1}, objects: []client.Object{
			runs("liqo", "controller-manager", "--config=/etc/liqo/config.yaml", nil), fabricOf("--overlay-port=6091"), record("liqo", "liqo"),
			annotated(runs("liqo-tenant-milan", "milan", "--nodename=milan", kubelet)), annotated(runs("liqo-tenant-milan", "gw-milan", "--mode=server", gateway)),
		}},
		"other Deployments": {objects: []client.Object{runs("shop", "web", "--cluster-id=rome", map[string]string{"app": "web"})}},
		"a release of v1": {present: &helm.Release{Name: "liqo", Namespace: "liqo", Status: "deployed", AppVersion: "v1.2.0",
			Manifest: strings.ReplaceAll(manifest, "--config=/etc/liqo/config.yaml", "--cluster-id=$(CLUSTER_ID)")},
			want: "Helm release liqo in namespace liqo is one of Liqo v1 (v1.2.0), which this Liqo does not upgrade: " + v1Says},
		"a release of something else": {present: &helm.Release{Name: "liqo", Namespace: "liqo", Status: "deployed", AppVersion: "v0.1.0", Manifest: "kind: ConfigMap"},
			want: "Helm release liqo in namespace liqo is one of Liqo v1 (v0.1.0), which this Liqo does not upgrade: " + v1Says},
		"a release in another namespace": {objects: []client.Object{record("liqo-system", "liqo")},
			want: "there is a Helm release liqo in namespace liqo-system, and a cluster has one Liqo: install into that one with -n liqo-system, or uninstall it first (docs/guide/migration.md if it is Liqo v1)"},
		"v1's controller manager": {objects: []client.Object{runs("liqo", "controller-manager", "--cluster-id=$(CLUSTER_ID)", nil)},
			want: "Deployment liqo/liqo-controller-manager (cluster rome) is of Liqo v1, and two controllers must not work on the same objects: " + v1Says},
		"v1's CRD replicator elsewhere": {objects: []client.Object{runs("liqo-system", "crd-replicator", "--cluster-id=$(CLUSTER_ID)", nil)},
			want: "Deployment liqo-system/liqo-crd-replicator (cluster rome) is of Liqo v1, and two controllers must not work on the same objects: " + v1Says},
		"v1's IPAM":         {objects: []client.Object{runs("liqo", "ipam", "", nil)}, want: "Deployment liqo/liqo-ipam (cluster rome) is of Liqo v1, and two controllers must not work on the same objects: " + v1Says},
		"v1's metric agent": {objects: []client.Object{runs("liqo", "metric-agent", "", nil)}, want: "Deployment liqo/liqo-metric-agent (cluster rome) is of Liqo v1, and two controllers must not work on the same objects: " + v1Says},
		"v1's webhook":      {objects: []client.Object{runs("liqo", "webhook", "", nil)}, want: "Deployment liqo/liqo-webhook (cluster rome) is of Liqo v1, and two controllers must not work on the same objects: " + v1Says},
		"v1's proxy":        {objects: []client.Object{runs("liqo", "proxy", "", nil)}, want: "Deployment liqo/liqo-proxy (cluster rome) is of Liqo v1, and two controllers must not work on the same objects: " + v1Says},
		"v1's fabric":       {objects: []client.Object{fabricOf("--nodename=$(NODE_NAME)")}, want: "DaemonSet liqo/liqo-fabric (cluster rome) is of Liqo v1, and two agents must not work on the same nodes: " + v1Says},
		"a virtual kubelet of v1": {objects: []client.Object{runs("liqo-tenant-milan", "milan", "--nodename=milan", kubelet)},
			want: "Deployment liqo-tenant-milan/liqo-milan (cluster rome) is of Liqo v1, and two controllers must not work on the same objects: " + v1Says},
		"a gateway of v1": {objects: []client.Object{runs("liqo-tenant-milan", "gw-milan", "--gateway-uid=1", gateway)},
			want: "Deployment liqo-tenant-milan/liqo-gw-milan (cluster rome) is of Liqo v1, and two controllers must not work on the same objects: " + v1Says},
		"a virtual kubelet of v1 that would run again": {objects: []client.Object{&offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"},
			Spec: offloadingv1beta1.VirtualNodeSpec{Template: &offloadingv1beta1.DeploymentTemplate{}}}},
			want: "VirtualNode liqo-tenant-milan/milan (cluster rome) was left by an earlier Liqo with a virtual kubelet of its own, which would run again: delete it, and peer again once Liqo is installed (docs/guide/migration.md)"},
		"a definition with objects of a version that we do not serve": {objects: []client.Object{leftover(tenants, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
		})}, want: "definition tenants.authentication.liqo.io has objects stored as v1alpha1, which this Liqo does not read: have its objects stored anew and take v1alpha1 out of its status.storedVersions, or delete it if you need none of them (docs/guide/migration.md)"},
		"the same, of this release": {objects: []client.Object{leftover(tenants, func(crd *apiextensionsv1.CustomResourceDefinition) {
			heldBy("liqo", "liqo")(crd)
			crd.Status.StoredVersions = []string{"v9"}
		})}, want: "definition tenants.authentication.liqo.io has objects stored as v9, which this Liqo does not read: have its objects stored anew and take v9 out of its status.storedVersions, or delete it if you need none of them (docs/guide/migration.md)"},
		"a definition of another scope": {objects: []client.Object{leftover(tenants, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped })},
			want: "definition tenants.authentication.liqo.io is Cluster in the cluster and Namespaced in the chart, which cannot be changed: save its objects and delete it with 'kubectl delete crd tenants.authentication.liqo.io' (docs/guide/migration.md)"},
		"a definition that is going": {objects: []client.Object{leftover(tenants, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.DeletionTimestamp, crd.Finalizers = &now, []string{"customresourcecleanup.apiextensions.k8s.io"}
		})}, want: "definition tenants.authentication.liqo.io is being deleted: wait until it is gone with 'kubectl wait --for=delete crd/tenants.authentication.liqo.io'"},
		"a definition of another release that is there": {objects: []client.Object{leftover(tenants, heldBy("definitions", "gitops")), record("gitops", "definitions")},
			want: "CustomResourceDefinition tenants.authentication.liqo.io is of Helm release definitions in namespace gitops: uninstall that first with 'helm uninstall definitions --namespace gitops'"},
		"a namespace that is somebody else's": {objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-storage"}}},
			want: "Namespace liqo-storage is there already and not Liqo's: choose another one with --set storage.storageNamespace=NAME"},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &releases{present: test.present}
			cluster, o := rome(t, r, test.objects...)
			_, err := install.Prepare(t.Context(), o)
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (failure.CodeOf(err) != failure.Precondition || err.Error() != test.want):
				t.Errorf("code %d: %s", failure.CodeOf(err), cmp.Diff(test.want, err.Error()))
			}
			if len(cluster.Writes())+len(r.calls) > 0 {
				t.Errorf("a check changed something: %v %v", cluster.Writes(), r.calls)
			}
		})
	}
}

// What v1's chart leaves in a cluster becomes the release's, with all that it is besides; nothing else is touched, and nothing before the checks.
func TestLeftoversAreAdopted(t *testing.T) {
	scoped := func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped }
	storage := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-storage", Labels: map[string]string{offloadingv1beta1.StorageProvisionerLabel: "true"}}}
	left := []client.Object{
		leftover(tenants, nil), leftover("foreignclusters.core.liqo.io", scoped), leftover("ips.ipam.liqo.io", func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.StoredVersions = []string{"v1alpha1"}
		}),
		leftover("identities.authentication.liqo.io", heldBy("liqo", "liqo-system")), storage,
	}
	others := []client.Object{
		leftover("virtualnodes.offloading.liqo.io", heldBy("liqo", "liqo")), leftover("genevetunnels.networking.liqo.io", nil), leftover("things.other.liqo.io", nil), leftover("certificates.cert-manager.io", nil),
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
		o.Objects = append(o.Objects, leftover(tenants, nil))
		o.Missing = []string{"patch customresourcedefinitions.apiextensions.k8s.io"}
	}))
	if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), "you are not allowed to: patch customresourcedefinitions.apiextensions.k8s.io") {
		t.Errorf("got %v", err)
	}
}
