package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/test/integration/fixture"
)

// peering is a consumer with everything that the provider milan gives it, and what the consumer must not touch.
type peering struct {
	// consumer is the ID of the hostile consumer.
	consumer string
	// tenant and slice are its identities, with real certificates.
	tenant, slice *fixture.User
	// tenantNamespace and twin are its namespaces at the provider.
	tenantNamespace, twin string
}

const sliceName = "slice"

func newPeering(t *testing.T) *peering {
	t.Helper()
	consumer := fixture.Unique("turin")
	p := &peering{consumer: consumer, tenantNamespace: corev1beta1.TenantNamespacePrefix + consumer, twin: fixture.Unique("twin")}
	p.tenant = env.Milan.WithCertificate(t, identity.TenantSubject(consumer))
	p.slice = env.Milan.WithCertificate(t, identity.SliceSubject(consumer, sliceName))
	for _, object := range append(fixture.TenantNamespace(consumer), fixture.TwinNamespace(p.twin, consumer)...) {
		p.provide(t, object)
	}
	env.Milan.AwaitServiceAccount(t, p.twin)
	// The API server learns of bindings in the background.
	fixture.Await(t, fixture.Patience, "the rights of consumer "+consumer, func(ctx context.Context) (bool, string) {
		err := errors.Join(p.tenant.List(ctx, &authv1beta1.ResourceSliceList{}, client.InNamespace(p.tenantNamespace)),
			p.mayRead(ctx, p.twin))
		return err == nil, fmt.Sprint(err)
	})
	return p
}

// mayRead tells whether the virtual kubelet has its rights in a namespace.
func (p *peering) mayRead(ctx context.Context, namespace string) error {
	return p.slice.List(ctx, &corev1.ConfigMapList{}, client.InNamespace(namespace))
}

// provide creates an object as the provider's administrator.
func (p *peering) provide(t *testing.T, object client.Object) {
	t.Helper()
	fixture.Must(t, "creating "+object.GetName()+" as the provider", env.Milan.Client.Create(t.Context(), object))
}

// honest are the marks that a consumer puts on what it replicates.
func (p *peering) honest() map[string]string {
	return map[string]string{
		corev1beta1.ReplicatedLabel: "true", corev1beta1.OriginIDLabel: p.consumer,
		corev1beta1.RemoteClusterIDLabel: p.consumer, corev1beta1.ReplicationLabel: "false",
	}
}

// outgoing are the marks of the other direction: what the provider, as a consumer itself, replicates to this peer.
func (p *peering) outgoing() map[string]string {
	return map[string]string{
		corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: p.consumer, corev1beta1.RemoteClusterIDLabel: p.consumer,
	}
}

func (p *peering) resourceSlice(name string, labels map[string]string) *authv1beta1.ResourceSlice {
	return &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.tenantNamespace, Labels: labels}}
}

func (p *peering) namespaceMap(name string, labels map[string]string) *offloadingv1beta1.NamespaceMap {
	return &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.tenantNamespace, Labels: labels}}
}

// reflected are the marks that a virtual kubelet puts on what it reflects.
func (p *peering) reflected() map[string]string {
	return map[string]string{offloadingv1beta1.OriginLabel: p.consumer, offloadingv1beta1.DestinationLabel: "milan"}
}

func (p *peering) configMap(name string, labels map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.twin, Labels: labels}, Data: map[string]string{"a": "b"}}
}

func (p *peering) secret(name string, kind corev1.SecretType, labels map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.twin, Labels: labels}, Type: kind}
}

func (p *peering) shadowPod(name string, labels map[string]string) *offloadingv1beta1.ShadowPod {
	return &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: p.twin, Labels: labels},
		Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}}
}

// Reasons that a refusal has: the policies' stable words, and what RBAC says.
const (
	rbac                = "cannot "
	notYourObject       = "NotYourObject"
	notYourNamespace    = "NotYourNamespace"
	finalizerNotAllowed = "FinalizerNotAllowed"
	ownerNotAllowed     = "OwnerNotAllowed"
	orphansNotAllowed   = "OrphansNotAllowed"
	cordonNotAllowed    = "CordonNotAllowed"
	secretTypeNot       = "SecretTypeNotAllowed"
)

// attempt is one thing that a consumer tries; reason is what refuses it, empty if it is allowed.
type attempt struct {
	reason string
	try    func(t *testing.T, p *peering) error
}

// seen checks the answer: allowed, or a 403 with the reason.
func (a attempt) check(t *testing.T, err error) {
	t.Helper()
	switch {
	case a.reason == "" && err != nil:
		t.Errorf("an honest request was refused: %v", err)
	case a.reason != "" && err == nil:
		t.Errorf("the API server let it happen, want a refusal because of %q", a.reason)
	case a.reason != "" && !apierrors.IsForbidden(err):
		t.Errorf("error = %v, want 403 Forbidden", err)
	case a.reason != "" && !strings.Contains(err.Error(), a.reason):
		t.Errorf("refused with %v, want reason %q", err, a.reason)
	}
}

// merge is a JSON merge patch.
func merge(patch string) client.Patch {
	return client.RawPatch(types.MergePatchType, []byte(patch))
}

// tenantAttempts are what the control plane identity tries in its tenant namespace. Each runs with objects of its own name.
var tenantAttempts = map[string]attempt{
	"honest: make, change and delete a ResourceSlice": {"", func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("honest", p.honest())
		fixture.Must(t, "creating it", p.tenant.Create(t.Context(), slice))
		slice.Spec.Resources = corev1.ResourceList{"cpu": resource.MustParse("2")}
		fixture.Must(t, "updating it", p.tenant.Update(t.Context(), slice))
		return p.tenant.Delete(t.Context(), slice)
	}},
	"honest: make a Renew": {"", func(t *testing.T, p *peering) error {
		return p.tenant.Create(t.Context(), &authv1beta1.Renew{
			ObjectMeta: metav1.ObjectMeta{Name: "renew", Namespace: p.tenantNamespace, Labels: p.honest()},
			Spec:       authv1beta1.RenewSpec{ConsumerClusterID: "a", PublicKey: []byte("a"), CSR: []byte("a"), IdentityType: authv1beta1.ControlPlaneIdentityType}})
	}},
	"honest: make, change and delete a NamespaceMap that the provider put a finalizer on": {"", func(t *testing.T, p *peering) error {
		m := p.namespaceMap("honest", p.honest())
		fixture.Must(t, "creating it", p.tenant.Create(t.Context(), m))
		fixture.Must(t, "adding the provider's finalizer", env.Milan.Client.Patch(t.Context(), m, merge(`{"metadata":{"finalizers":["`+offloadingv1beta1.NamespaceMapFinalizer+`"]}}`)))
		m.Spec.DesiredMapping = map[string]string{"a": "b"}
		fixture.Must(t, "updating it", p.tenant.Update(t.Context(), m))
		return p.tenant.Delete(t.Context(), m)
	}},
	"V8: grant itself resources in the status": {rbac, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("v8", p.honest())
		fixture.Must(t, "creating a slice", p.tenant.Create(t.Context(), slice))
		slice.Status.Resources = corev1.ResourceList{"cpu": resource.MustParse("1000")}
		return p.tenant.Status().Update(t.Context(), slice)
	}},
	"V8: read or write a Quota": {rbac, func(t *testing.T, p *peering) error {
		return p.tenant.List(t.Context(), &offloadingv1beta1.QuotaList{}, client.InNamespace(p.tenantNamespace))
	}},
	"V8: write a Quota": {rbac, func(t *testing.T, p *peering) error {
		return p.tenant.Create(t.Context(), &offloadingv1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: p.tenantNamespace},
			Spec: offloadingv1beta1.QuotaSpec{User: p.slice.Name, Resources: corev1.ResourceList{}}})
	}},
	"V10: lift a cordon": {cordonNotAllowed, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("v10-lift", p.honest())
		fixture.Must(t, "creating a slice", p.tenant.Create(t.Context(), slice))
		fixture.Must(t, "cordoning it", env.Milan.Client.Patch(t.Context(), slice, merge(`{"metadata":{"annotations":{"liqo.io/cordon":"true"}}}`)))
		return p.tenant.Patch(t.Context(), slice, merge(`{"metadata":{"annotations":{"liqo.io/cordon":null}}}`))
	}},
	"V10: lift a tenant's cordon with an update": {cordonNotAllowed, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("v10-tenant", p.honest())
		fixture.Must(t, "creating a slice", p.tenant.Create(t.Context(), slice))
		fixture.Must(t, "cordoning it", env.Milan.Client.Patch(t.Context(), slice, merge(`{"metadata":{"annotations":{"liqo.io/cordon-tenant":"true"}}}`)))
		slice.Annotations = nil
		return p.tenant.Update(t.Context(), slice)
	}},
	"V10: weaken a cordon to false": {cordonNotAllowed, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("v10-weaken", p.honest())
		fixture.Must(t, "creating a slice", p.tenant.Create(t.Context(), slice))
		fixture.Must(t, "cordoning it", env.Milan.Client.Patch(t.Context(), slice, merge(`{"metadata":{"annotations":{"liqo.io/cordon":"true"}}}`)))
		return p.tenant.Patch(t.Context(), slice, merge(`{"metadata":{"annotations":{"liqo.io/cordon":"false"}}}`))
	}},
	"V12: no marks": {notYourObject, func(t *testing.T, p *peering) error {
		return p.tenant.Create(t.Context(), p.namespaceMap("v12-none", nil))
	}},
	"V12: somebody else's origin": {notYourObject, func(t *testing.T, p *peering) error {
		labels := p.honest()
		labels[corev1beta1.OriginIDLabel] = "naples"
		return p.tenant.Create(t.Context(), p.namespaceMap("v12-naples", labels))
	}},
	"V12: give its own object to somebody else": {notYourObject, func(t *testing.T, p *peering) error {
		m := p.namespaceMap("v12-give", p.honest())
		fixture.Must(t, "creating a map", p.tenant.Create(t.Context(), m))
		return p.tenant.Patch(t.Context(), m, merge(`{"metadata":{"labels":{"liqo.io/originID":"naples"}}}`))
	}},
	"V12: have its copy replicated further": {notYourObject, func(t *testing.T, p *peering) error {
		labels := p.honest()
		labels[corev1beta1.ReplicationLabel] = "true"
		return p.tenant.Create(t.Context(), p.resourceSlice("v12-further", labels))
	}},
	"V12: delete the provider's own object through a collection": {rbac, func(t *testing.T, p *peering) error {
		return p.tenant.DeleteAllOf(t.Context(), &authv1beta1.ResourceSlice{}, client.InNamespace(p.tenantNamespace))
	}},
	"V13: change a ResourceSlice of the other direction": {notYourObject, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("v13-change", p.outgoing())
		p.provide(t, slice)
		return p.tenant.Patch(t.Context(), slice, merge(`{"spec":{"resources":{"cpu":"0"}}}`))
	}},
	"V13: take a ResourceSlice of the other direction over": {notYourObject, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("v13-take", p.outgoing())
		p.provide(t, slice)
		slice.Labels = p.honest()
		return p.tenant.Update(t.Context(), slice)
	}},
	"V13: delete a NamespaceMap of the other direction": {notYourObject, func(t *testing.T, p *peering) error {
		m := p.namespaceMap("v13-delete", p.outgoing())
		p.provide(t, m)
		return p.tenant.Delete(t.Context(), m)
	}},
	"V13: apply over a NamespaceMap of the other direction": {notYourObject, func(t *testing.T, p *peering) error {
		m := p.namespaceMap("v13-apply", p.outgoing())
		p.provide(t, m)
		return p.tenant.Patch(t.Context(), m, merge(`{"spec":{"desiredMapping":{"shop":"loot"}}}`))
	}},
	"V13: write the status of a NamespaceMap of the other direction": {rbac, func(t *testing.T, p *peering) error {
		m := p.namespaceMap("v13-status", p.outgoing())
		p.provide(t, m)
		m.Status.CurrentMapping = map[string]offloadingv1beta1.RemoteNamespaceStatus{"kube-system": {RemoteNamespace: "loot", Phase: offloadingv1beta1.MappingAccepted}}
		return p.tenant.Status().Update(t.Context(), m)
	}},
	"keep an object for ever with a finalizer": {finalizerNotAllowed, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("finalizer", p.honest())
		slice.Finalizers = []string{"turin.it/never"}
		return p.tenant.Create(t.Context(), slice)
	}},
	"remove the provider's finalizer": {finalizerNotAllowed, func(t *testing.T, p *peering) error {
		m := p.namespaceMap("finalizer", p.honest())
		fixture.Must(t, "creating a map", p.tenant.Create(t.Context(), m))
		fixture.Must(t, "adding the provider's finalizer", env.Milan.Client.Patch(t.Context(), m, merge(`{"metadata":{"finalizers":["`+offloadingv1beta1.NamespaceMapFinalizer+`"]}}`)))
		return p.tenant.Patch(t.Context(), m, merge(`{"metadata":{"finalizers":null}}`))
	}},
	"have the garbage collector delete for it": {ownerNotAllowed, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("owner", p.honest())
		slice.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
		return p.tenant.Create(t.Context(), slice)
	}},
	"read Secrets of its tenant namespace":    {rbac, listing(&corev1.SecretList{}, func(p *peering) string { return p.tenantNamespace })},
	"read ConfigMaps of its tenant namespace": {rbac, listing(&corev1.ConfigMapList{}, func(p *peering) string { return p.tenantNamespace })},
	"read Tenants":                       {rbac, listing(&authv1beta1.TenantList{}, func(p *peering) string { return p.tenantNamespace })},
	"read slices of all tenants":         {rbac, listing(&authv1beta1.ResourceSliceList{}, func(*peering) string { return "" })},
	"read slices of another tenant":      {rbac, listing(&authv1beta1.ResourceSliceList{}, func(*peering) string { return "liqo-tenant-prober" })},
	"read all namespaces":                {rbac, listing(&corev1.NamespaceList{}, func(*peering) string { return "" })},
	"use the slice's rights in the twin": {rbac, listing(&corev1.PodList{}, func(p *peering) string { return p.twin })},
	"read nodes":                         {rbac, listing(&corev1.NodeList{}, func(*peering) string { return "" })},
	"write a slice in another tenant's place": {rbac, func(t *testing.T, p *peering) error {
		slice := p.resourceSlice("escape", p.honest())
		slice.Namespace = "liqo-tenant-prober"
		return p.tenant.Create(t.Context(), slice)
	}},
}

func listing(list client.ObjectList, namespace func(*peering) string) func(*testing.T, *peering) error {
	return func(t *testing.T, p *peering) error {
		return p.tenant.List(t.Context(), list.DeepCopyObject().(client.ObjectList), client.InNamespace(namespace(p)))
	}
}

func TestHostileTenant(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	for name, a := range tenantAttempts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a.check(t, a.try(t, p))
		})
	}
}

// A slice that is deleted and made again is a new object without the cordon's annotation: the cordon itself is in the Quota,
// which the consumer cannot touch.
func TestCordonSurvivesRecreation(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	cordoned := true
	quota := &offloadingv1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Name: "grant", Namespace: p.tenantNamespace},
		Spec: offloadingv1beta1.QuotaSpec{User: p.slice.Name, Resources: corev1.ResourceList{}, Cordoned: &cordoned}}
	p.provide(t, quota)
	for what, err := range map[string]error{
		"reading": p.tenant.Get(t.Context(), keyOf(quota), quota.DeepCopy()),
		"lifting": p.tenant.Patch(t.Context(), quota.DeepCopy(), merge(`{"spec":{"cordoned":false}}`)),
		"erasing": p.tenant.Delete(t.Context(), quota.DeepCopy()),
	} {
		attempt{reason: rbac}.check(t, err)
		if t.Failed() {
			t.Fatalf("while %s the Quota", what)
		}
	}
}

// escalations are refused to both identities of a consumer, in its own namespaces and cluster-wide.
var escalations = map[string]func(ctx context.Context, u *fixture.User, namespace string) error{
	"bind a role": func(ctx context.Context, u *fixture.User, namespace string) error {
		return u.Create(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: namespace},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: u.Name}}})
	},
	"make a role": func(ctx context.Context, u *fixture.User, namespace string) error {
		return u.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: namespace}})
	},
	"change its own binding": func(ctx context.Context, u *fixture.User, namespace string) error {
		own := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: offloadingv1beta1.TenantClusterRole, Namespace: namespace}}
		return u.Patch(ctx, own, merge(`{"subjects":[]}`))
	},
	"bind a cluster role": func(ctx context.Context, u *fixture.User, _ string) error {
		return u.Create(ctx, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "mine"},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"}})
	},
	"impersonate an administrator": func(ctx context.Context, u *fixture.User, _ string) error {
		return u.Impersonate(ctx, "kubernetes-admin", "system:masters")
	},
	"impersonate another consumer": func(ctx context.Context, u *fixture.User, _ string) error {
		return u.Impersonate(ctx, identity.TenantUser("prober"), identity.TenantsGroup)
	},
	"ask for a certificate": func(ctx context.Context, u *fixture.User, _ string) error {
		return u.Create(ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{GenerateName: "mine-"},
			Spec: certificatesv1.CertificateSigningRequestSpec{Request: []byte("x"), SignerName: certificatesv1.KubeAPIServerClientSignerName, Usages: identity.ClientUsages()}})
	},
	"approve a certificate": func(ctx context.Context, u *fixture.User, _ string) error {
		_, err := u.Kube.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, "any",
			&certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "any"}}, metav1.UpdateOptions{})
		return err
	},
	"get a token of a ServiceAccount": func(ctx context.Context, u *fixture.User, namespace string) error {
		_, err := u.Kube.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, "default", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		return err
	},
	"make a ServiceAccount": func(ctx context.Context, u *fixture.User, namespace string) error {
		return u.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: namespace}})
	},
	"make a pod directly": func(ctx context.Context, u *fixture.User, namespace string) error {
		return u.Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: namespace},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}})
	},
	"make a namespace": func(ctx context.Context, u *fixture.User, _ string) error {
		return u.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "mine"}})
	},
	"relabel its namespace": func(ctx context.Context, u *fixture.User, namespace string) error {
		own := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
		return u.Patch(ctx, own, merge(`{"metadata":{"labels":{"liqo.io/remote-cluster-id":"naples"}}}`))
	},
	"lift the namespace's ResourceQuota": func(ctx context.Context, u *fixture.User, namespace string) error {
		return u.Create(ctx, &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: namespace}})
	},
	"read a Secret of Liqo": func(ctx context.Context, u *fixture.User, _ string) error {
		return u.Get(ctx, client.ObjectKey{Namespace: fixture.Namespace, Name: "liqo-webhook-certs"}, &corev1.Secret{})
	},
	"read a Secret of kube-system": func(ctx context.Context, u *fixture.User, _ string) error {
		return u.List(ctx, &corev1.SecretList{}, client.InNamespace("kube-system"))
	},
	"make itself a Tenant": func(ctx context.Context, u *fixture.User, namespace string) error {
		return u.Create(ctx, &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: namespace},
			Spec: authv1beta1.TenantSpec{ClusterID: "naples", AuthzPolicy: authv1beta1.TolerateNoHandshake}})
	},
	"switch a policy off": func(ctx context.Context, u *fixture.User, _ string) error {
		return u.Kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Delete(ctx, "liqo-tenant-objects", metav1.DeleteOptions{})
	},
}

func TestEscalation(t *testing.T) {
	t.Parallel()
	p := newPeering(t)
	for name, try := range escalations {
		for _, as := range []struct {
			user       *fixture.User
			namespaces []string
		}{{p.tenant, []string{p.tenantNamespace, "default"}}, {p.slice, []string{p.twin, "kube-system"}}} {
			for _, namespace := range as.namespaces {
				t.Run(name+" as "+as.user.Name+" in "+namespace, func(t *testing.T) {
					t.Parallel()
					attempt{reason: rbac}.check(t, try(t.Context(), as.user, namespace))
				})
			}
		}
	}
}
