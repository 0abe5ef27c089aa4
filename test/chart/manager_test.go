package chart

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

const managerUser = "system:serviceaccount:liqo:liqo-controller-manager"

var (
	managerAccount = rbacv1.Subject{Kind: "ServiceAccount", Namespace: "liqo", Name: "liqo-controller-manager"}
	kubeletAccount = rbacv1.Subject{Kind: "ServiceAccount", Namespace: "liqo-tenant-milan", Name: "milan"}
	gatewayAccount = rbacv1.Subject{Kind: "ServiceAccount", Namespace: "liqo-tenant-milan", Name: "gw-milan"}
	strayAccount   = rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "thief"}
)

func userNamed(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "User", Name: name}
}

func groupNamed(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: "Group", Name: name}
}

// binds is the attempt to bind a role, given as "ClusterRole name" or "Role name", in a namespace, or in all of them if that is nil.
func binds(namespace *corev1.Namespace, role string, subjects ...rbacv1.Subject) attempt {
	kind, name, _ := strings.Cut(role, " ")
	a := attempt{operation: admission.Create, group: rbacv1.GroupName, resource: "clusterrolebindings", namespace: namespace, name: "x",
		object: &rbacv1.ClusterRoleBinding{RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}, Subjects: subjects}}
	if namespace != nil {
		a.resource, a.object = "rolebindings", &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Labels: map[string]string{"offloading.liqo.io/component": "reflection"}},
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name}, Subjects: subjects}
	}
	return a
}

func tenantNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/tenant-namespace": "true", "liqo.io/remote-cluster-id": "milan"}}}
}

func twinNamed(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/managed": "true", "liqo.io/remote-cluster-id": "rome"},
		Annotations: map[string]string{"liqo.io/managed-by-namespace-map": "liqo-tenant-rome/rome"}}}
}

// What a thief of the controller manager's account tries in order to get Secrets of others; and what the controller manager does.
func TestTheControllerManagerIsHeldToWhatItNeeds(t *testing.T) {
	policy := policyNamed(t, valueSets["default"], "managerpolicies.yaml", "liqo-controller-manager")
	tenant, twin, system, shop := tenantNamed("liqo-tenant-milan"), twinNamed("shop-rome"), namespaced("kube-system"), namespaced("shop")
	posing, unnamed := tenantNamed("payroll"), twinNamed("shop-rome")
	former, unnamedFormer, unnamedTenant := twinNamed("shop-rome"), twinNamed("shop-rome"), tenantNamed("liqo-tenant-milan")
	for _, namespace := range []*corev1.Namespace{unnamed, unnamedFormer, unnamedTenant} {
		delete(namespace.Labels, "liqo.io/remote-cluster-id")
	}
	former.Annotations, unnamedFormer.Annotations = nil, nil
	const bindingRefused, namespaceRefused, nodeRefused = "BindingNotAllowed", "NamespaceNotAllowed", "NodeNotAllowed"
	for what, tc := range map[string]struct {
		attempt attempt
		want    string
	}{
		"its role for twins, everywhere":                 {binds(nil, "ClusterRole liqo-controller-manager-twin", managerAccount), bindingRefused},
		"its role for tenants, everywhere":               {binds(nil, "ClusterRole liqo-controller-manager-tenant", managerAccount), bindingRefused},
		"its role for twins in kube-system":              {binds(system, "ClusterRole liqo-controller-manager-twin", managerAccount), bindingRefused},
		"its role for tenants in a namespace":            {binds(shop, "ClusterRole liqo-controller-manager-tenant", managerAccount), bindingRefused},
		"the same where a label says tenant":             {binds(posing, "ClusterRole liqo-controller-manager-tenant", managerAccount), bindingRefused},
		"a consumer's role where no pods are looked at":  {binds(unnamed, "ClusterRole liqo-virtual-kubelet-remote", groupNamed("liqo.io:consumer:rome")), ""},
		"its role for twins where no pods are looked at": {binds(unnamed, "ClusterRole liqo-controller-manager-twin", managerAccount), bindingRefused},
		"its role for twins in a tenant's":               {binds(tenant, "ClusterRole liqo-controller-manager-twin", managerAccount), bindingRefused},
		"its role for twins for another account":         {binds(twin, "ClusterRole liqo-controller-manager-twin", strayAccount), bindingRefused},
		"the reflection's role for itself":               {binds(shop, "ClusterRole liqo-virtual-kubelet-local", managerAccount), bindingRefused},
		"the same beside a virtual kubelet":              {binds(shop, "ClusterRole liqo-virtual-kubelet-local", kubeletAccount, managerAccount), bindingRefused},
		"the same everywhere":                            {binds(nil, "ClusterRole liqo-virtual-kubelet-local", kubeletAccount), bindingRefused},
		"the same in kube-system":                        {binds(system, "ClusterRole liqo-virtual-kubelet-local", kubeletAccount), bindingRefused},
		"the same in Liqo's own":                         {binds(namespaced("liqo"), "ClusterRole liqo-virtual-kubelet-local", kubeletAccount), bindingRefused},
		"the same without its label":                     {unlabelled(binds(shop, "ClusterRole liqo-virtual-kubelet-local", kubeletAccount)), bindingRefused},
		"a consumer's role in a namespace":               {binds(shop, "ClusterRole liqo-virtual-kubelet-remote", groupNamed("liqo.io:consumer:rome")), bindingRefused},
		"a consumer's role for everybody":                {binds(twin, "ClusterRole liqo-virtual-kubelet-remote", groupNamed("system:authenticated")), bindingRefused},
		"an administrator's role":                        {binds(nil, "ClusterRole cluster-admin", kubeletAccount), bindingRefused},
		"a role of its own in a namespace":               {binds(shop, "Role secrets", managerAccount), bindingRefused},
		"its list of nodes, for users":                   {binds(namespaced("liqo"), "Role liqo-virtual-nodes", userNamed("kubernetes-admin")), bindingRefused},
		"its role in a tenant's":                         {binds(tenant, "ClusterRole liqo-controller-manager-tenant", managerAccount), ""},
		"a tenant's role":                                {binds(tenant, "ClusterRole liqo-remote-controlplane", userNamed("liqo.io:tenant:milan")), ""},
		"a tenant's role for a peering":                  {binds(tenant, "ClusterRole liqo-remote-controlplane", groupNamed("liqo.io:peering:0123456789abcdef:tenant:milan")), ""},
		"a tenant's role for nobody":                     {binds(tenant, "ClusterRole liqo-remote-controlplane"), ""},
		"a tenant's role for a peering's kubelet":        {binds(tenant, "ClusterRole liqo-remote-controlplane", groupNamed("liqo.io:peering:0123456789abcdef:consumer:milan")), bindingRefused},
		"a consumer's role for a peering":                {binds(twin, "ClusterRole liqo-virtual-kubelet-remote", groupNamed("liqo.io:peering:0123456789abcdef:consumer:rome")), ""},
		"a consumer's role for its control plane":        {binds(twin, "ClusterRole liqo-virtual-kubelet-remote", groupNamed("liqo.io:peering:0123456789abcdef:tenant:rome")), bindingRefused},
		"its role in a twin":                             {binds(twin, "ClusterRole liqo-controller-manager-twin", managerAccount), ""},
		"a consumer's role":                              {binds(twin, "ClusterRole liqo-virtual-kubelet-remote", groupNamed("liqo.io:consumer:rome")), ""},
		"a consumer's logs":                              {binds(twin, "Role liqo-pod-logs", groupNamed("liqo.io:consumer:rome")), ""},
		"a consumer's signs of life":                     {binds(tenant, "Role liqo-sign-of-life-user-01", groupNamed("liqo.io:consumer:milan")), ""},
		"a tenant's signs of life":                       {binds(tenant, "Role liqo-sign-of-life-user-01", userNamed("liqo.io:tenant:milan")), bindingRefused},
		"a consumer's signs of life elsewhere":           {binds(shop, "Role liqo-sign-of-life-user-01", groupNamed("liqo.io:consumer:milan")), bindingRefused},
		"a virtual kubelet's cluster-wide role":          {binds(nil, "ClusterRole liqo-virtual-kubelet", kubeletAccount), ""},
		"a virtual kubelet's certificate":                {binds(nil, "ClusterRole liqo-virtual-kubelet-bootstrap", kubeletAccount), ""},
		"a virtual kubelet's role in its own":            {binds(tenant, "ClusterRole liqo-virtual-kubelet-tenant", kubeletAccount), ""},
		"a virtual kubelet's kubeconfig":                 {binds(tenant, "Role milan-kubeconfig", kubeletAccount), ""},
		"a virtual kubelet's role for reflection":        {binds(shop, "ClusterRole liqo-virtual-kubelet-local", kubeletAccount), ""},
		"a virtual kubelet's role in a twin":             {binds(twin, "ClusterRole liqo-virtual-kubelet-local", kubeletAccount), ""},
		"a gateway's role":                               {binds(tenant, "Role gw-milan", gatewayAccount), ""},
		"a gateway's role in a namespace":                {binds(shop, "Role gw-milan", gatewayAccount), bindingRefused},
		"a gateway's role for another account":           {binds(tenant, "Role gw-milan", kubeletAccount), bindingRefused},
		"a gateway's role for another gateway":           {binds(tenant, "Role gw-rome", gatewayAccount), bindingRefused},
		"a gateway's role in another tenant's":           {binds(tenantNamed("liqo-tenant-rome"), "Role gw-milan", gatewayAccount), bindingRefused},
		"what all gateways may read":                     {binds(nil, "ClusterRole liqo-gateway", gatewayAccount), ""},
		"the same for itself":                            {binds(nil, "ClusterRole liqo-gateway", managerAccount), bindingRefused},
		"the same for a virtual kubelet":                 {binds(nil, "ClusterRole liqo-gateway", kubeletAccount), bindingRefused},
		"the same for itself beside a gateway":           {binds(nil, "ClusterRole liqo-gateway", gatewayAccount, managerAccount), bindingRefused},
		"a virtual kubelet's node":                       {binds(nil, "ClusterRole liqo-virtual-node:milan", kubeletAccount), ""},
		"a virtual kubelet's lease":                      {binds(namespaced("kube-node-lease"), "Role liqo-virtual-node:milan", kubeletAccount), ""},
		"the CA of clients":                              {binds(system, "Role extension-apiserver-authentication-reader", kubeletAccount), ""},
		"its list of nodes":                              {binds(namespaced("liqo"), "Role liqo-virtual-nodes", userNamed("system:node:milan")), ""},

		"a tenant namespace":                              {makes(tenant), ""},
		"a twin":                                          {makes(twin), ""},
		"a tenant namespace by another name":              {makes(posing), namespaceRefused},
		"a namespace of Kubernetes":                       {makes(twinNamed("kube-secret")), namespaceRefused},
		"a twin of a namespace that is there":             {changes(namespaced("shop"), twinNamed("shop")), namespaceRefused},
		"a tenant's of one that is there":                 {changes(namespaced("shop"), tenantNamed("shop")), namespaceRefused},
		"a tenant's by its name":                          {changes(namespaced("liqo-tenant-milan"), tenant), ""},
		"the labels of a twin":                            {changes(twin, relabelled(twin, "team", "a")), ""},
		"the label of a twin by which pods are looked at": {changes(twin, unnamed), namespaceRefused},
		"that label of what was a twin":                   {changes(former, unnamedFormer), namespaceRefused},
		"that label of a tenant namespace":                {changes(tenant, unnamedTenant), namespaceRefused},
		"that label where it is not":                      {changes(unnamed, twin), ""},
		"another label of a twin without it":              {changes(unnamed, relabelled(unnamed, "team", "a")), ""},
		"Liqo's label of a namespace":                     {changes(shop, relabelled(shop, "liqo.io/scheduling-enabled", "true")), ""},
		"pod security of a namespace":                     {changes(shop, relabelled(shop, "pod-security.kubernetes.io/enforce", "privileged")), namespaceRefused},
		"a label that ends in Liqo's":                     {changes(shop, relabelled(shop, "evil-liqo.io/x", "a")), namespaceRefused},
		"a label taken from a namespace":                  {changes(relabelled(shop, "istio-injection", "enabled"), shop), namespaceRefused},
		"the end of a twin":                               {attempt{operation: admission.Delete, resource: "namespaces", name: twin.Name, old: twin}, ""},
		"the end of a namespace":                          {attempt{operation: admission.Delete, resource: "namespaces", name: "shop", old: shop}, namespaceRefused},
		"the end of all namespaces":                       {attempt{operation: admission.Delete, resource: "namespaces"}, namespaceRefused},
		"a namespace without its finalizer":               {attempt{operation: admission.Update, resource: "namespaces/finalize", name: "shop", object: shop, old: shop}, namespaceRefused},
		"a virtual node":                                  {attempt{operation: admission.Create, resource: "nodes", name: "milan", object: nodeNamed("milan")}, ""},
		"a change of a virtual node":                      {attempt{operation: admission.Update, resource: "nodes", name: "milan", object: nodeNamed("milan"), old: nodeNamed("milan")}, ""},
		"the end of a virtual node":                       {attempt{operation: admission.Delete, resource: "nodes", name: "milan", old: nodeNamed("milan")}, ""},
		"a node that is not virtual":                      {attempt{operation: admission.Create, resource: "nodes", name: "a", object: realNode("a")}, nodeRefused},
		"the label of a real node":                        {attempt{operation: admission.Update, resource: "nodes", name: "a", object: nodeNamed("a"), old: realNode("a")}, nodeRefused},
		"the end of a real node":                          {attempt{operation: admission.Delete, resource: "nodes", name: "a", old: realNode("a")}, nodeRefused},
		"the addresses of a real node":                    {attempt{operation: admission.Update, resource: "nodes/status", name: "a", object: realNode("a"), old: realNode("a")}, nodeRefused},
		"the status of a virtual node":                    {attempt{operation: admission.Update, resource: "nodes/status", name: "milan", object: nodeNamed("milan"), old: nodeNamed("milan")}, ""},
		"a virtual node that becomes a real one":          {attempt{operation: admission.Update, resource: "nodes", name: "milan", object: realNode("milan"), old: nodeNamed("milan")}, nodeRefused},
	} {
		t.Run(what, func(t *testing.T) {
			tc.attempt.user = managerUser
			if got := policy.try(t, tc.attempt, nil); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("refused with %q, want %q", got, tc.want)
			}
			tc.attempt.user = "kubernetes-admin"
			if got := policy.try(t, tc.attempt, nil); got != "" {
				t.Errorf("an administrator is refused with %q", got)
			}
		})
	}
	// Where nobody offloaded anything the second policy has no parameter, and says no.
	offloaded := policyNamed(t, valueSets["default"], "managerpolicies.yaml", "liqo-controller-manager-offloaded")
	a := binds(shop, "ClusterRole liqo-virtual-kubelet-local", kubeletAccount)
	a.user = managerUser
	for name, want := range map[string]string{"offloading": "", "other": "NotOffloaded"} {
		nso := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if got := offloaded.try(t, a, nso); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("with NamespaceOffloading %s: refused with %q, want %q", name, got, want)
		}
	}
}

func unlabelled(a attempt) attempt {
	a.object.(*rbacv1.RoleBinding).Labels = nil
	return a
}

func makes(namespace *corev1.Namespace) attempt {
	return attempt{operation: admission.Create, resource: "namespaces", name: namespace.Name, object: namespace}
}

func changes(old, object *corev1.Namespace) attempt {
	return attempt{operation: admission.Update, resource: "namespaces", name: old.Name, object: object, old: old}
}

func relabelled(namespace *corev1.Namespace, key, value string) *corev1.Namespace {
	namespace = namespace.DeepCopy()
	metav1.SetMetaDataLabel(&namespace.ObjectMeta, key, value)
	return namespace
}

// realNode is a node of the cluster's own.
func realNode(name string) runtime.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
}
