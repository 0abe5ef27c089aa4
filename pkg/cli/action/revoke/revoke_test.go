package revoke_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/revoke"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/identity"
)

const tenantNamespace = "liqo-tenant-rome"

// tenant is rome at milan, with a key of its own.
func tenant(t *testing.T) *authv1beta1.Tenant {
	t.Helper()
	key, err := identity.NewKeyPair(identity.AlgorithmEd25519)
	if err != nil {
		t.Fatal(err)
	}
	peering, err := identity.PeeringID(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	csr, err := identity.NewCSR(key.Signer(), identity.TenantSubject("rome").InPeering(peering))
	if err != nil {
		t.Fatal(err)
	}
	return &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: "rome"}, Spec: authv1beta1.TenantSpec{ClusterID: "rome", CSR: csr}}
}

// rights is a RoleBinding of ours to a subject.
func rights(namespace, name, subject string) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{corev1beta1.ManagedLabel: "true"}},
		Subjects: []rbacv1.Subject{{Kind: "Group", APIGroup: rbacv1.GroupName, Name: subject}}}
}

// provider is what rome has of its provider milan.
func provider() []client.Object {
	meta := metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", Labels: map[string]string{
		corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan"}}
	return []client.Object{
		&corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"},
			Status: corev1beta1.ForeignClusterStatus{Conditions: []corev1beta1.Condition{{Type: corev1beta1.APIServerStatus, Status: corev1beta1.StatusEstablished}}}},
		&authv1beta1.ResourceSlice{ObjectMeta: meta}, &offloadingv1beta1.NamespaceMap{ObjectMeta: meta},
		&offloadingv1beta1.VirtualNode{ObjectMeta: meta, Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan"}},
		&authv1beta1.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: "controlplane-milan"},
			Spec: authv1beta1.IdentitySpec{ClusterID: "milan", Type: authv1beta1.ControlPlaneIdentityType}},
	}
}

func TestAConsumersCertificatesLoseTheirRights(t *testing.T) {
	object := tenant(t)
	peering := identity.RequestPeering(object.Spec.CSR)
	// The controllers take the rights of the control plane, and of two twins one after the other.
	play := func(ctx context.Context, store client.Client, written client.Object) {
		if written, ok := written.(*authv1beta1.Tenant); !ok || !identity.AccessOf(&written.Spec).Revoked {
			return
		}
		for _, name := range []string{"liqo-remote-controlplane", "liqo-virtual-kubelet-remote"} {
			list := &rbacv1.RoleBindingList{}
			if err := store.List(ctx, list); err != nil {
				t.Error(err)
			}
			for i := range list.Items {
				if list.Items[i].Name == name {
					list.Items[i].Subjects = nil
					if err := store.Update(ctx, &list.Items[i]); err != nil {
						t.Error(err)
					}
				}
			}
		}
	}
	known := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "rome"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "rome"}}
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", React: play, Objects: []client.Object{object, known,
		rights(tenantNamespace, "liqo-remote-controlplane", identity.PeeringGroup(peering, identity.TenantUser("rome"))),
		rights("shop-rome", "liqo-virtual-kubelet-remote", identity.PeeringGroup(peering, identity.ConsumerGroup("rome"))),
		rights("shop-turin", "liqo-virtual-kubelet-remote", identity.ConsumerGroup("turin")),
	}})
	question := ""
	o := revoke.Options{Cluster: milan.Cluster, PeerID: "rome", Timeout: 20 * time.Second,
		Confirm: func(_ context.Context, asked string) error { question = asked; return nil }}
	report, err := revoke.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&revoke.Report{PeerID: "rome", Consumer: true}, report); diff != "" {
		t.Error(diff)
	}
	if want := "All certificates of rome lose their rights in milan. What it runs here goes on, until it is peered again."; question != want {
		t.Errorf("asked %q", question)
	}
	if err := milan.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil || object.Spec.RevokedPeering != peering {
		t.Errorf("revoked %q, want %s (%v)", object.Spec.RevokedPeering, peering, err)
	}
	// Its certificates say whether it is cut off: with another key it is not any more.
	if err := milan.Client.Get(t.Context(), client.ObjectKeyFromObject(known), known); err != nil || known.IsCutOff() ||
		!strings.HasPrefix(known.Annotations[corev1beta1.CutOffByAnnotation], "alice at ") {
		t.Errorf("the ForeignCluster has the annotations %v (%v)", known.Annotations, err)
	}
	before := len(milan.Writes())
	if _, err := revoke.Run(t.Context(), o); err != nil || len(milan.Writes()) != before {
		t.Errorf("the second run got %v, and wrote %v", err, milan.Writes()[before:])
	}
}

func TestRightsThatAreNotTakenAreNamed(t *testing.T) {
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: []client.Object{tenant(t),
		rights("shop-rome", "liqo-pod-logs", identity.ConsumerGroup("rome"))}})
	report, err := revoke.Run(t.Context(), revoke.Options{Cluster: milan.Cluster, PeerID: "rome", Timeout: 5 * time.Second})
	if failure.CodeOf(err) != failure.Timeout || !strings.Contains(err.Error(), "RoleBinding shop-rome/liqo-pod-logs still gives it rights") || report.Consumer {
		t.Errorf("got %v, %+v", err, report)
	}
}

// A provider is cut off although it answers, and before anything that it could hear of.
func TestAProviderIsCutOff(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: provider()})
	report, err := revoke.Run(t.Context(), revoke.Options{Cluster: rome.Cluster, PeerID: "milan", Timeout: 20 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&revoke.Report{PeerID: "milan", Provider: true}, report); diff != "" {
		t.Error(diff)
	}
	want := []string{
		"patch ForeignCluster milan (cluster rome)",
		"delete VirtualNode liqo-tenant-milan/milan (cluster rome)",
		"delete NamespaceMap liqo-tenant-milan/milan (cluster rome)",
		"delete ResourceSlice liqo-tenant-milan/milan (cluster rome)",
		"delete Identity liqo-tenant-milan/controlplane-milan (cluster rome)",
	}
	if diff := cmp.Diff(want, rome.Writes()); diff != "" {
		t.Error(diff)
	}
	peer := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}}
	if err := rome.Client.Get(t.Context(), client.ObjectKeyFromObject(peer), peer); err != nil || !peer.IsCutOff() || !peer.IsDead() || !strings.HasPrefix(peer.WhyCutOff(), "milan was revoked by alice at ") {
		t.Errorf("the ForeignCluster has the annotations %v (%v)", peer.Annotations, err)
	}
}

// Whoever had the key of a gateway reaches pods. With the peering its tunnel goes, in either direction, and so it does where only the networks are
// connected.
func TestTheTunnelIsCut(t *testing.T) {
	for sentence, test := range map[string]struct {
		peer    string
		objects []client.Object
		want    revoke.Report
	}{
		"of a consumer": {"rome", []client.Object{tenant(t)}, revoke.Report{PeerID: "rome", Consumer: true, Network: true}},
		"of a provider": {"milan", provider(), revoke.Report{PeerID: "milan", Provider: true, Network: true}},
		"alone":         {"turin", nil, revoke.Report{PeerID: "turin", Network: true}},
	} {
		t.Run(sentence, func(t *testing.T) {
			meta := metav1.ObjectMeta{Namespace: "liqo-tenant-" + test.peer, Name: test.peer, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: test.peer}}
			gateway, key := &networkingv1beta1.GatewayServer{ObjectMeta: meta}, &networkingv1beta1.PublicKey{ObjectMeta: meta}
			ranges := &networkingv1beta1.Configuration{ObjectMeta: meta}
			home := fixture.New(t, fixture.Options{Name: "home", ClusterID: "home", Objects: append(test.objects, gateway, key, ranges)})
			question := ""
			o := revoke.Options{Cluster: home.Cluster, PeerID: test.peer, Timeout: 20 * time.Second,
				Confirm: func(_ context.Context, asked string) error { question = asked; return nil }}
			report, err := revoke.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(&test.want, report); diff != "" {
				t.Error(diff)
			}
			if !strings.HasSuffix(question, "Pods of home and "+test.peer+" do not reach each other any more.") {
				t.Errorf("asked %q", question)
			}
			for _, gone := range []client.Object{gateway, key} {
				if err := home.Client.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); !apierrors.IsNotFound(err) {
					t.Errorf("%T is still there: %v", gone, err)
				}
			}
			if err := home.Client.Get(t.Context(), client.ObjectKeyFromObject(ranges), ranges); err != nil {
				t.Errorf("the ranges are gone: %v", err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	no := errors.New("no")
	for sentence, test := range map[string]struct {
		peer    string
		missing []string
		confirm error
		want    string
	}{
		"nobody's ID":       {peer: "paris", want: "milan is not peered with paris, in either direction"},
		"no ID":             {peer: "Rome", want: "is not valid"},
		"rights missing":    {peer: "rome", missing: []string{"patch tenants.authentication.liqo.io in namespace liqo-tenant-rome"}, want: "you are not allowed to: patch tenants"},
		"thought better of": {peer: "rome", confirm: no, want: "no"},
	} {
		t.Run(sentence, func(t *testing.T) {
			milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: []client.Object{tenant(t)}, Missing: test.missing})
			_, err := revoke.Run(t.Context(), revoke.Options{Cluster: milan.Cluster, PeerID: test.peer, Timeout: 20 * time.Second,
				Confirm: func(context.Context, string) error { return test.confirm }})
			if err == nil || !strings.Contains(err.Error(), test.want) || len(milan.Writes()) > 0 {
				t.Errorf("got %v, wrote %v", err, milan.Writes())
			}
		})
	}
}
