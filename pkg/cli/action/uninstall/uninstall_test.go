package uninstall_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/uninstall"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/progress"
)

// releases removes what the release holds.
type releases struct {
	helm.Client
	cluster *fixture.Cluster
	called  bool
}

func (r *releases) Uninstall(ctx context.Context, _ string, _ time.Duration) error {
	r.called = true
	for _, object := range fixture.Installed("rome", "", false) {
		if err := client.IgnoreNotFound(r.cluster.Client.Delete(ctx, object)); err != nil {
			return err
		}
	}
	return nil
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func TestRefusals(t *testing.T) {
	const end = "end each with 'liqoctl unpeer', or with 'liqoctl unpeer --force CLUSTER_ID' if the peer is dead"
	ofA := meta("liqo-tenant-a", "a")
	ofA.Labels = map[string]string{corev1beta1.RemoteClusterIDLabel: "a"}
	cases := map[string]struct {
		object client.Object
		want   string
	}{
		"ranges of a peer":       {&networkingv1beta1.Configuration{ObjectMeta: ofA}, "peerings are active (cluster rome): network of a (Configuration liqo-tenant-a/a): " + end},
		"a gateway server":       {&networkingv1beta1.GatewayServer{ObjectMeta: ofA}, "peerings are active (cluster rome): network of a (GatewayServer liqo-tenant-a/a): " + end},
		"a gateway client":       {&networkingv1beta1.GatewayClient{ObjectMeta: ofA}, "peerings are active (cluster rome): network of a (GatewayClient liqo-tenant-a/a): " + end},
		"an offloaded namespace": {&offloadingv1beta1.NamespaceOffloading{ObjectMeta: meta("shop", "offloading")}, "namespaces are offloaded (cluster rome): shop: liqoctl unoffload namespace shop"},
		"a consumer":             {&authv1beta1.Tenant{ObjectMeta: meta("liqo-tenant-a", "a"), Spec: authv1beta1.TenantSpec{ClusterID: "a"}}, "peerings are active (cluster rome): consumer a (Tenant liqo-tenant-a/a): " + end},
		"a provider":             {&authv1beta1.Identity{ObjectMeta: meta("liqo-tenant-a", "x"), Spec: authv1beta1.IdentitySpec{ClusterID: "a"}}, "peerings are active (cluster rome): provider a (Identity liqo-tenant-a/x): " + end},
		"a slice":                {&authv1beta1.ResourceSlice{ObjectMeta: meta("liqo-tenant-a", "x")}, "peerings are active (cluster rome): ResourceSlice liqo-tenant-a/x: " + end},
		"a virtual node":         {&offloadingv1beta1.VirtualNode{ObjectMeta: meta("liqo-tenant-a", "x")}, "peerings are active (cluster rome): VirtualNode liqo-tenant-a/x: " + end},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: []client.Object{test.object}})
			r := &releases{cluster: cluster}
			_, err := uninstall.Run(context.Background(), uninstall.Options{Cluster: cluster.Cluster, Helm: r})
			if failure.CodeOf(err) != failure.Precondition || err.Error() != test.want || r.called || len(cluster.Writes()) > 0 {
				t.Errorf("got %v; removed: %v; written: %v", err, r.called, cluster.Writes())
			}
		})
	}
}

// leftBehind is what controllers and users leave beside the release.
func leftBehind() []client.Object {
	certificate := &corev1.Secret{ObjectMeta: meta("liqo", "liqo-webhook-certs")}
	certificate.Labels = map[string]string{corev1beta1.WebhookLabel: "true"}
	tenant := &corev1.Namespace{ObjectMeta: meta("", "liqo-tenant-a")}
	tenant.Labels = map[string]string{corev1beta1.TenantNamespaceLabel: "true"}
	return []client.Object{&corev1.Namespace{ObjectMeta: meta("", "liqo")}, certificate, tenant}
}

func TestUninstallingLeavesNothingUnintended(t *testing.T) {
	removed := []string{"done: Nothing depends on Liqo", "done: Release removed"}
	cases := map[string]struct {
		purge   bool
		objects []client.Object
		want    []string
		kept    []string
	}{
		"namespaces stay": {false, leftBehind(), append(removed, "done: Removing what the controllers made", "done: Nothing of Liqo is left"), []string{"kube-system", "liqo", "liqo-tenant-a"}},
		"with purge they go": {true, leftBehind(), append(removed, "done: Removing the namespace of volumes", "done: Removing Liqo's objects", "done: Removing Liqo's definitions", "done: Removing tenant namespaces",
			"done: Removing what the controllers made", "done: Removing namespace liqo", "done: Nothing of Liqo is left"), []string{"kube-system"}},
		"a namespace with something else in it stays": {true, append(leftBehind(), &corev1.ConfigMap{ObjectMeta: meta("liqo", "mine")}),
			append(removed, "done: Removing the namespace of volumes", "done: Removing Liqo's objects", "done: Removing Liqo's definitions", "done: Removing tenant namespaces", "done: Removing what the controllers made",
				"warning: Namespace liqo is kept, because it holds ConfigMap liqo/mine (cluster rome)", "done: Removing namespace liqo", "done: Nothing of Liqo is left"), []string{"kube-system", "liqo"}},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: test.objects})
			recorder := &progress.Recorder{}
			report, err := uninstall.Run(context.Background(), uninstall.Options{Cluster: cluster.Cluster, Helm: &releases{cluster: cluster}, Purge: test.purge, Observer: recorder})
			if err != nil || report.ClusterID != "rome" || len(report.Residue) > 0 {
				t.Fatalf("%+v, %v", report, err)
			}
			for i := range test.want {
				test.want[i] = "rome: " + test.want[i]
			}
			if diff := cmp.Diff(test.want, recorder.Lines()); diff != "" {
				t.Error(diff)
			}
			list := &corev1.NamespaceList{}
			if err := cluster.Client.List(context.Background(), list); err != nil {
				t.Fatal(err)
			}
			var names []string
			for i := range list.Items {
				names = append(names, list.Items[i].Name)
			}
			if diff := cmp.Diff(test.kept, names); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whatever right is missing is found while the release, and all else, is still there.
func TestUninstallingWithoutARightTouchesNothing(t *testing.T) {
	for sentence, test := range map[string]struct {
		missing string
		purge   bool
		refused bool
	}{
		"who may not read the release":                             {"get secrets in namespace liqo", false, true},
		"who may not remove what it holds":                         {"delete validatingadmissionpolicies.admissionregistration.k8s.io", false, true},
		"who could not see what is left":                           {"list certificatesigningrequests.certificates.k8s.io", false, true},
		"who may not delete definitions, and wants to":             {"delete customresourcedefinitions.apiextensions.k8s.io", true, true},
		"who may not delete definitions, and leaves them in place": {"delete customresourcedefinitions.apiextensions.k8s.io", false, false},
	} {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Missing: []string{test.missing}})
			r := &releases{cluster: cluster}
			_, err := uninstall.Run(context.Background(), uninstall.Options{Cluster: cluster.Cluster, Helm: r, Purge: test.purge})
			if !test.refused {
				if err != nil || !r.called {
					t.Fatalf("got %v; removed: %v", err, r.called)
				}
				return
			}
			want := "you are not allowed to: " + test.missing + " (cluster rome): ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"
			if failure.CodeOf(err) != failure.Precondition || err.Error() != want || r.called || len(cluster.Writes()) > 0 {
				t.Errorf("got %v; removed: %v; written: %v", err, r.called, cluster.Writes())
			}
		})
	}
}
