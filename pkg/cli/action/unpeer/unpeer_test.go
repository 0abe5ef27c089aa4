package unpeer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
)

func tenantNamespace(id string) client.Object {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: "liqo-tenant-" + id, Labels: map[string]string{corev1beta1.TenantNamespaceLabel: "true", corev1beta1.RemoteClusterIDLabel: id},
	}}
}

// consumer is what cluster rome has of its provider milan.
func consumer() []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: "liqo-tenant-milan", Name: name, Annotations: map[string]string{authv1beta1.CreateVirtualNodeAnnotation: "true"},
			Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan", corev1beta1.RemoteClusterIDLabel: "milan"},
		}
	}
	return []client.Object{
		tenantNamespace("milan"), &authv1beta1.ResourceSlice{ObjectMeta: meta("milan")}, &offloadingv1beta1.NamespaceMap{ObjectMeta: meta("milan")},
		&offloadingv1beta1.VirtualNode{ObjectMeta: meta("milan"), Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"}},
		&offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "other"}, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "paris"}},
		&authv1beta1.Identity{ObjectMeta: meta("controlplane-milan"), Spec: authv1beta1.IdentitySpec{ClusterID: "milan", Type: authv1beta1.ControlPlaneIdentityType}},
		&corev1.Secret{ObjectMeta: meta(authv1beta1.SignedNonceSecret)},
	}
}

// provider is what cluster milan has of its consumer rome.
func provider() []client.Object {
	meta := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: name, Labels: map[string]string{
			corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: "rome", corev1beta1.RemoteClusterIDLabel: "rome",
		}}
	}
	return []client.Object{
		tenantNamespace("rome"), &authv1beta1.Tenant{ObjectMeta: meta("rome"), Spec: authv1beta1.TenantSpec{ClusterID: "rome"}},
		&corev1.Secret{ObjectMeta: meta(authv1beta1.NonceSecret)},
	}
}

func TestUnpeeringGoesBackwards(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "kind-rome", ClusterID: "rome", Objects: consumer()})
	milan := fixture.New(t, fixture.Options{Name: "kind-milan", ClusterID: "milan", Objects: provider()})
	recorder := &progress.Recorder{}
	report, err := unpeer.Run(context.Background(), unpeer.Options{
		Consumer: rome.Cluster, Provider: milan.Cluster, DeleteNamespaces: true, Observer: recorder, Timeout: 20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"done: Preconditions hold",
		"rome: done: Deleted VirtualNode liqo-tenant-milan/milan",
		"rome: done: Deleted NamespaceMap liqo-tenant-milan/milan",
		"rome: done: Deleted ResourceSlice liqo-tenant-milan/milan",
		"rome: done: Deleted Identity liqo-tenant-milan/controlplane-milan",
		"milan: done: Deleted Tenant liqo-tenant-rome/rome",
		"rome: done: Deleted Secret liqo-tenant-milan/liqo-signed-nonce",
		"milan: done: Deleted Secret liqo-tenant-rome/liqo-nonce",
		"rome: done: Deleted Namespace liqo-tenant-milan",
		"milan: done: Deleted Namespace liqo-tenant-rome",
		"rome: done: Nothing is left of milan",
		"milan: done: Nothing is left of rome",
	}
	if diff := cmp.Diff(want, recorder.Lines()); diff != "" || len(report.Residue) > 0 {
		t.Error(diff, report)
	}
	if first := rome.Writes()[0]; first != "patch ResourceSlice liqo-tenant-milan/milan (cluster rome)" {
		t.Errorf("the slice still asked for a virtual node: %s", first)
	}
	for _, write := range rome.Writes() {
		if strings.Contains(write, "/other") {
			t.Errorf("another provider's node was touched: %s", write)
		}
	}
}

// deleting is a client whose deletions may be refused.
type deleting struct {
	client.Client
	refuse func(object client.Object) error
}

func (d deleting) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	if err := d.refuse(object); err != nil {
		return err
	}
	return d.Client.Delete(ctx, object, options...)
}

// The API server learns in the background that the VirtualNodes are gone, without which it does not let the NamespaceMap go.
func TestUnpeeringWaitsUntilTheNamespaceMapMayGo(t *testing.T) {
	refused := 0
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: consumer()})
	rome.Client = deleting{rome.Client, func(object client.Object) error {
		if _, is := object.(*offloadingv1beta1.NamespaceMap); is && refused < 2 {
			refused++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "namespacemaps"}, object.GetName(), errors.New("PeeringNotEnded: with it would go all"))
		}
		return nil
	}}
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider()})
	report, err := unpeer.Run(context.Background(), unpeer.Options{Consumer: rome.Cluster, Provider: milan.Cluster, Timeout: 20 * time.Second})
	if err != nil || len(report.Residue) > 0 || refused != 2 {
		t.Errorf("error %v, left %v, refused %d times", err, report, refused)
	}
}

func TestUnpeeringKeepsTheNamespacesUnlessAsked(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: consumer()})
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider()})
	for range 2 {
		if _, err := unpeer.Run(context.Background(), unpeer.Options{Consumer: rome.Cluster, Provider: milan.Cluster}); err != nil {
			t.Fatal(err)
		}
	}
	for _, write := range append(rome.Writes(), milan.Writes()...) {
		if strings.Contains(write, "Namespace liqo-tenant") {
			t.Error(write)
		}
	}
}

func TestMutualPeeringsNeedTheirNamespaces(t *testing.T) {
	both := append(consumer(), &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}})
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: both})
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider()})
	_, err := unpeer.Run(context.Background(), unpeer.Options{Consumer: rome.Cluster, Provider: milan.Cluster, DeleteNamespaces: true})
	want := "milan also uses resources of rome, which needs the tenant namespaces: leave --delete-namespaces out, or end the other peering first"
	if failure.CodeOf(err) != failure.Precondition || err.Error() != want || len(rome.Writes()) > 0 {
		t.Errorf("got %v, written %v", err, rome.Writes())
	}
}

func foreign(id string) client.Object {
	return &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: id}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: corev1beta1.ClusterID(id)}}
}

func TestForceFromEitherSide(t *testing.T) {
	cases := map[string]struct {
		home, peer string
		objects    []client.Object
		want       []string
	}{
		"the provider is dead": {"rome", "milan", consumer(), []string{
			"rome: done: Marking milan as permanently unreachable",
			"rome: done: Deleted VirtualNode liqo-tenant-milan/milan",
			"rome: done: Deleted NamespaceMap liqo-tenant-milan/milan",
			"rome: done: Deleted ResourceSlice liqo-tenant-milan/milan",
			"rome: done: Deleted Identity liqo-tenant-milan/controlplane-milan",
			"rome: done: Deleted Namespace liqo-tenant-milan",
		}},
		"the consumer is dead": {"milan", "rome", append(provider(),
			&offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "milan", Labels: map[string]string{corev1beta1.ReplicatedLabel: "true"}}},
			&authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "milan", Labels: map[string]string{corev1beta1.ReplicatedLabel: "true"}}},
		), []string{
			"milan: done: Marking rome as permanently unreachable",
			"milan: done: Deleted Tenant liqo-tenant-rome/rome",
			"milan: done: Deleted NamespaceMap liqo-tenant-rome/milan",
			"milan: done: Deleted ResourceSlice liqo-tenant-rome/milan",
			"milan: done: Deleted Namespace liqo-tenant-rome",
		}},
		"only its namespace is left": {"rome", "milan", []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: "liqo-tenant-milan", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan", corev1beta1.TenantNamespaceLabel: "true"},
		}}}, []string{"rome: There is no ForeignCluster for milan", "rome: done: Deleted Namespace liqo-tenant-milan", "rome: done: Nothing is left of milan"}},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			objects, timeout := test.objects, 20*time.Second
			if len(objects) > 1 {
				objects = append(objects, foreign(test.peer))
				timeout = 10 * time.Second // It ends by this, see below.
			}
			cluster := fixture.New(t, fixture.Options{Name: test.home, ClusterID: test.home, Objects: objects})
			recorder := &progress.Recorder{}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			_, err := unpeer.Force(ctx, unpeer.ForceOptions{Cluster: cluster.Cluster, PeerID: test.peer, Timeout: timeout, Observer: recorder})
			lines := recorder.Lines()
			// A fake client collects no garbage: the Secrets in the deleted namespace stay, and have to be told.
			if len(lines) > len(test.want) {
				if failure.CodeOf(err) == failure.OK {
					t.Error("residue was not told")
				}
				lines = lines[:len(test.want)]
			}
			if diff := cmp.Diff(test.want, lines); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What has a consumer's requests served apart is in no namespace: if nothing removed it with the Tenant, nothing will.
func TestALevelThatOutlivesItsConsumerIsTold(t *testing.T) {
	meta := metav1.ObjectMeta{Name: "liqo-consumer-rome", Labels: map[string]string{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: "rome"}}
	left := []client.Object{&flowcontrolv1.FlowSchema{ObjectMeta: meta}, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: meta}}
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: left})
	report, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: milan.Cluster, PeerID: "rome", Timeout: 3 * time.Second})
	want := []string{"flowschemas liqo-consumer-rome", "prioritylevelconfigurations liqo-consumer-rome"}
	if failure.CodeOf(err) != failure.Problems {
		t.Fatalf("%v, want problems", err)
	}
	if diff := cmp.Diff(want, report.Residue["milan"]); diff != "" {
		t.Error(diff)
	}
}

// A cluster ID that is misspelt is not told to be gone: there never was one.
func TestForceOfNoPeerIsRefused(t *testing.T) {
	cases := map[string]struct {
		peers []client.Object
		want  string
	}{
		"a misspelt one": {[]client.Object{foreign("milan"), foreign("turin")},
			"cluster rome has no peer mailn, and nothing is left of one: did you mean milan?"},
		"one like no other": {[]client.Object{foreign("zurich"), foreign("turin")},
			"cluster rome has no peer mailn, and nothing is left of one: give the ID of a peer: turin, zurich"},
		"no peers at all": {nil, "cluster rome has no peer mailn, and nothing is left of one: it has no peers"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: test.peers})
			_, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: cluster.Cluster, PeerID: "mailn"})
			if err == nil || err.Error() != test.want || failure.CodeOf(err) != failure.Precondition {
				t.Errorf("%v, want %s", err, test.want)
			}
			if writes := cluster.Writes(); len(writes) > 0 {
				t.Errorf("wrote %v", writes)
			}
		})
	}
}

func TestForceRefusals(t *testing.T) {
	cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome"})
	for id, want := range map[string]string{
		"rome": "rome is this cluster's own ID: give the ID of the peer; list them with 'liqoctl info'",
		"":     "the cluster ID is empty: give one of 1 to 51 lower-case letters, digits and '-': list the peers with 'liqoctl info'",
	} {
		_, err := unpeer.Force(context.Background(), unpeer.ForceOptions{Cluster: cluster.Cluster, PeerID: id})
		if err == nil || err.Error() != want || failure.CodeOf(err) != failure.Usage {
			t.Errorf("%q: %v", id, err)
		}
	}
}
