package earlier_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/charts"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/install/earlier"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/helm"
)

// manifest is what tells a release of ours.
const manifest = `kind: Deployment
metadata: {name: liqo-controller-manager, labels: {app.kubernetes.io/part-of: liqo, app.kubernetes.io/component: controller-manager}}
spec: {template: {spec: {containers: [{name: controller-manager, args: [--config=/etc/liqo/config.yaml]}]}}}`

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
func record(namespace, name, status string) client.Object {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "sh.helm.release.v1." + name + ".v1",
		Labels: map[string]string{"owner": "helm", "name": name, "status": status}}}
}

func annotated(d *appsv1.Deployment) client.Object {
	d.Annotations = map[string]string{offloadingv1beta1.RenderedHashAnnotation: "1234"}
	return d
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
	chart, err := helm.Load(charts.Liqo())
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := chart.Render("liqo", "liqo", map[string]any{"discovery": map[string]any{"config": map[string]any{"clusterID": "rome"}},
		"networking": map[string]any{"enabled": false}})
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, apiextensionsv1.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	manifests, now := helm.Manifests(rendered), metav1.Now()
	for sentence, test := range map[string]struct {
		present *helm.Release
		objects []client.Object
		want    string // nothing if it can be installed
	}{
		"an empty cluster": {},
		"this Liqo": {present: &helm.Release{Status: "deployed", Revision: 1, Manifest: manifest}, objects: []client.Object{
			runs("liqo", "controller-manager", "--config=/etc/liqo/config.yaml", nil), fabricOf("--overlay-port=6091"), record("liqo", "liqo", "deployed"),
			annotated(runs("liqo-tenant-milan", "milan", "--nodename=milan", kubelet)), annotated(runs("liqo-tenant-milan", "gw-milan", "--mode=server", gateway)),
		}},
		"other Deployments": {objects: []client.Object{runs("shop", "web", "--cluster-id=rome", map[string]string{"app": "web"})}},
		"a release that is gone and whose history is kept": {objects: []client.Object{record("liqo-system", "liqo", "uninstalled"), record("gitops", "liqo", "superseded")}},
		"a release of v1": {present: &helm.Release{Name: "liqo", Namespace: "liqo", Status: "deployed", AppVersion: "v1.2.0",
			Manifest: strings.ReplaceAll(manifest, "--config=/etc/liqo/config.yaml", "--cluster-id=$(CLUSTER_ID)")},
			want: "Helm release liqo in namespace liqo is one of Liqo v1 (v1.2.0), which this Liqo does not upgrade: " + v1Says},
		"a release of something else": {present: &helm.Release{Name: "liqo", Namespace: "liqo", Status: "deployed", AppVersion: "v0.1.0", Manifest: "kind: ConfigMap"},
			want: "Helm release liqo in namespace liqo is one of Liqo v1 (v0.1.0), which this Liqo does not upgrade: " + v1Says},
		"a release in another namespace": {objects: []client.Object{record("liqo-system", "liqo", "deployed")},
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
		"a definition with objects of a version that we do not serve": {objects: []client.Object{fixture.LeftDefinition(tenants, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.Status.StoredVersions = []string{"v1alpha1", "v1beta1"}
		})}, want: "definition tenants.authentication.liqo.io has objects stored as v1alpha1, which this Liqo does not read: have its objects stored anew and take v1alpha1 out of its status.storedVersions, or delete it if you need none of them (docs/guide/migration.md)"},
		"the same, of this release": {objects: []client.Object{fixture.LeftDefinition(tenants, func(crd *apiextensionsv1.CustomResourceDefinition) {
			fixture.HeldBy("liqo", "liqo")(crd)
			crd.Status.StoredVersions = []string{"v9"}
		})}, want: "definition tenants.authentication.liqo.io has objects stored as v9, which this Liqo does not read: have its objects stored anew and take v9 out of its status.storedVersions, or delete it if you need none of them (docs/guide/migration.md)"},
		"a definition of another scope": {objects: []client.Object{fixture.LeftDefinition(tenants, func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Scope = apiextensionsv1.ClusterScoped })},
			want: "definition tenants.authentication.liqo.io is Cluster in the cluster and Namespaced in the chart, which cannot be changed: save its objects and delete it with 'kubectl delete crd tenants.authentication.liqo.io' (docs/guide/migration.md)"},
		"a definition that is going": {objects: []client.Object{fixture.LeftDefinition(tenants, func(crd *apiextensionsv1.CustomResourceDefinition) {
			crd.DeletionTimestamp, crd.Finalizers = &now, []string{"customresourcecleanup.apiextensions.k8s.io"}
		})}, want: "definition tenants.authentication.liqo.io is being deleted: wait until it is gone with 'kubectl wait --for=delete crd/tenants.authentication.liqo.io'"},
		"a definition of another release that is there": {objects: []client.Object{fixture.LeftDefinition(tenants, fixture.HeldBy("definitions", "gitops")), record("gitops", "definitions", "deployed")},
			want: "CustomResourceDefinition tenants.authentication.liqo.io is of Helm release definitions in namespace gitops: uninstall that first with 'helm uninstall definitions --namespace gitops'"},
		"this Liqo, of Argo CD": {objects: []client.Object{fixture.LeftDefinition(tenants, nil), runs("gitops", "controller-manager", "--config=/etc/liqo/config.yaml", nil)},
			want: "Deployment gitops/liqo-controller-manager (cluster rome) was not installed by liqoctl or Helm, and its definitions are not taken from it: change it with what installed it, or have that remove it first"},
		"a namespace that is somebody else's": {objects: []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-storage"}}},
			want: "Namespace liqo-storage is there already and not Liqo's: choose another one with --set storage.storageNamespace=NAME"},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: "rome", Objects: test.objects, Scheme: scheme})
			err := earlier.RequireAlone(t.Context(), cluster.Cluster, test.present)
			if err == nil {
				_, err = earlier.Survey(t.Context(), cluster.Cluster, test.present, manifests)
			}
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (failure.CodeOf(err) != failure.Precondition || err.Error() != test.want):
				t.Errorf("code %d: %s", failure.CodeOf(err), cmp.Diff(test.want, err.Error()))
			}
			if len(cluster.Writes()) > 0 {
				t.Errorf("a check changed something: %v", cluster.Writes())
			}
		})
	}
}
