package chart

import (
	"maps"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"
)

func namespaced(name string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func podOn(node string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: node}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func nodeNamed(name string, change ...func(*corev1.Node)) *corev1.Node {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"liqo.io/type": "virtual-node", "liqo.io/remote-cluster-id": "milan"}}}
	for _, c := range change {
		c(node)
	}
	return node
}

// leaseOf is a Lease in kube-node-lease.
func leaseOf(name string) *coordinationv1.Lease {
	return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-node-lease", Name: name}}
}

// N9: what a thief of a virtual node's identity tries, as a node and as a ServiceAccount; and what the virtual kubelet does.
func TestVirtualNodesMayDoLittle(t *testing.T) {
	policy := policyNamed(t, valueSets["default"], "virtualnodes.yaml", "liqo-virtual-nodes")
	list := &rbacv1.RoleBinding{Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "system:node:milan"}}}
	labelled := func(p *corev1.Pod) { p.Labels["k8s-app"] = "dns" }
	shop, leases, tenant := relabelled(namespaced("shop"), "liqo.io/scheduling-enabled", "true"), namespaced("kube-node-lease"), namespaced("liqo-tenant-milan")
	for what, tc := range map[string]struct {
		attempt attempt
		want    string
	}{
		"a mirror pod":             {attempt{operation: admission.Create, resource: "pods", namespace: namespaced("kube-system"), object: podOn("milan")}, "NotForVirtualNodes"},
		"a pod's binding":          {attempt{operation: admission.Create, resource: "pods/binding", namespace: shop, object: &corev1.Binding{}}, "NotForVirtualNodes"},
		"a pod's eviction":         {attempt{operation: admission.Create, resource: "pods/eviction", namespace: shop, object: podOn("milan")}, "NotForVirtualNodes"},
		"an ephemeral container":   {attempt{operation: admission.Update, resource: "pods/ephemeralcontainers", namespace: shop, object: podOn("milan"), old: podOn("milan")}, "NotForVirtualNodes"},
		"a pod's label":            {attempt{operation: admission.Update, resource: "pods", namespace: shop, object: podOn("milan", labelled), old: podOn("milan")}, "NotForVirtualNodes"},
		"a label with a status":    {attempt{operation: admission.Update, resource: "pods/status", namespace: shop, object: podOn("milan", labelled), old: podOn("milan")}, "StatusOnly"},
		"an owner with a status":   {attempt{operation: admission.Update, resource: "pods/status", namespace: shop, object: podOn("milan", func(p *corev1.Pod) { p.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }), old: podOn("milan")}, "StatusOnly"},
		"a finalizer that goes":    {attempt{operation: admission.Update, resource: "pods/status", namespace: shop, object: podOn("milan"), old: podOn("milan", func(p *corev1.Pod) { p.Finalizers = []string{"a.b/c"} })}, "StatusOnly"},
		"another node's pod":       {attempt{operation: admission.Update, resource: "pods/status", namespace: shop, object: podOn("other"), old: podOn("other")}, "NotYourPod"},
		"a pod that has no node":   {attempt{operation: admission.Update, resource: "pods/status", namespace: shop, object: podOn(""), old: podOn("")}, "NotYourPod"},
		"another node's pod's end": {attempt{operation: admission.Delete, resource: "pods", namespace: shop, old: podOn("other")}, "NotYourPod"},
		"all pods' end":            {attempt{operation: admission.Delete, resource: "pods", namespace: shop}, "NotYourPod"},
		"the status of its pod":    {attempt{operation: admission.Update, resource: "pods/status", namespace: shop, object: podOn("milan", func(p *corev1.Pod) { p.Status.Phase = "Running" }), old: podOn("milan")}, ""},
		"the end of its pod":       {attempt{operation: admission.Delete, resource: "pods", namespace: shop, old: podOn("milan")}, ""},

		"a label of its Node":        {attempt{operation: admission.Update, resource: "nodes", name: "milan", object: nodeNamed("milan", func(n *corev1.Node) { n.Labels["liqo.io/remote-cluster-id"] = "turin" }), old: nodeNamed("milan")}, "NotForVirtualNodes"},
		"a label with its status":    {attempt{operation: admission.Update, resource: "nodes/status", name: "milan", object: nodeNamed("milan", func(n *corev1.Node) { n.Labels["liqo.io/remote-cluster-id"] = "turin" }), old: nodeNamed("milan")}, "StatusOnly"},
		"an annotation with it":      {attempt{operation: admission.Update, resource: "nodes/status", name: "milan", object: nodeNamed("milan", func(n *corev1.Node) { n.Annotations = map[string]string{"a": "b"} }), old: nodeNamed("milan")}, "StatusOnly"},
		"a taint that goes":          {attempt{operation: admission.Update, resource: "nodes", name: "milan", object: nodeNamed("milan"), old: nodeNamed("milan", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "a"}} })}, "NotForVirtualNodes"},
		"a Node of its own making":   {attempt{operation: admission.Create, resource: "nodes", name: "milan", object: nodeNamed("milan")}, "NotForVirtualNodes"},
		"its Node's end":             {attempt{operation: admission.Delete, resource: "nodes", name: "milan", old: nodeNamed("milan")}, "NotForVirtualNodes"},
		"the status of another Node": {attempt{operation: admission.Update, resource: "nodes/status", name: "other", object: nodeNamed("other"), old: nodeNamed("other")}, "NotYourNode"},
		"the status of its Node":     {attempt{operation: admission.Update, resource: "nodes/status", name: "milan", object: nodeNamed("milan", func(n *corev1.Node) { n.Status.Phase = "Running" }), old: nodeNamed("milan")}, ""},

		"devices":                        {attempt{operation: admission.Create, group: "resource.k8s.io", resource: "resourceslices", name: "x", object: &resourcev1.ResourceSlice{}}, "NotForVirtualNodes"},
		"a claim's devices":              {attempt{operation: admission.Update, group: "resource.k8s.io", resource: "resourceclaims/status", namespace: shop, object: &resourcev1.ResourceClaim{}, old: &resourcev1.ResourceClaim{}}, "NotForVirtualNodes"},
		"CSI drivers":                    {attempt{operation: admission.Create, group: "storage.k8s.io", resource: "csinodes", name: "milan", object: &storagev1.CSINode{}}, "NotForVirtualNodes"},
		"a claim's size":                 {attempt{operation: admission.Update, resource: "persistentvolumeclaims/status", namespace: shop, object: &corev1.PersistentVolumeClaim{}, old: &corev1.PersistentVolumeClaim{}}, "NotForVirtualNodes"},
		"an approval":                    {attempt{operation: admission.Update, group: "certificates.k8s.io", resource: "certificatesigningrequests/approval", name: "x", object: &certificatesv1.CertificateSigningRequest{}, old: &certificatesv1.CertificateSigningRequest{}}, "NotForVirtualNodes"},
		"a pod's certificate":            {attempt{operation: admission.Create, group: "certificates.k8s.io", resource: "podcertificaterequests", namespace: shop, object: &certificatesv1.CertificateSigningRequest{}}, "NotForVirtualNodes"},
		"a request for its certificate":  {attempt{operation: admission.Create, group: "certificates.k8s.io", resource: "certificatesigningrequests", name: "x", object: &certificatesv1.CertificateSigningRequest{}}, ""},
		"its lease":                      {attempt{operation: admission.Update, group: "coordination.k8s.io", resource: "leases", namespace: leases, object: leaseOf("milan"), old: leaseOf("milan")}, ""},
		"another node's lease":           {attempt{operation: admission.Update, group: "coordination.k8s.io", resource: "leases", namespace: leases, object: leaseOf("other"), old: leaseOf("other")}, "NotYourNode"},
		"its lease's end":                {attempt{operation: admission.Delete, group: "coordination.k8s.io", resource: "leases", namespace: leases, old: leaseOf("milan")}, "NotYourNode"},
		"an election in its namespace":   {attempt{operation: admission.Create, group: "coordination.k8s.io", resource: "leases", namespace: tenant, object: leaseOf("mirror-milan")}, ""},
		"a token for nobody":             {attempt{operation: admission.Create, resource: "serviceaccounts/token", namespace: shop, name: "default", object: &authenticationv1.TokenRequest{}}, "UnboundToken"},
		"a token for a pod":              {attempt{operation: admission.Create, resource: "serviceaccounts/token", namespace: shop, name: "default", object: bound("Pod")}, ""},
		"a token that a Secret outlives": {attempt{operation: admission.Create, resource: "serviceaccounts/token", namespace: shop, name: "default", object: bound("Secret")}, "UnboundToken"},
		"a token where offloading ends":  {attempt{operation: admission.Create, resource: "serviceaccounts/token", namespace: relabelled(namespaced("shop"), "liqo.io/offloaded", "true"), name: "default", object: bound("Pod")}, ""},
		"a token of a DaemonSet's pod":   {attempt{operation: admission.Create, resource: "serviceaccounts/token", namespace: namespaced("kube-system"), name: "cni", object: bound("Pod")}, "NotOffloaded"},
		"a token where nothing crosses":  {attempt{operation: admission.Create, resource: "serviceaccounts/token", namespace: namespaced("payroll"), name: "default", object: bound("Pod")}, "NotOffloaded"},
	} {
		for _, user := range []string{"system:node:milan", "system:serviceaccount:liqo-tenant-milan:milan"} {
			t.Run(what+" by "+user, func(t *testing.T) {
				tc.attempt.user = user
				if got := policy.try(t, tc.attempt, list); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
					t.Errorf("refused with %q, want %q", got, tc.want)
				}
			})
		}
		// Real nodes, and everybody else, are not this policy's.
		for _, user := range []string{"system:node:worker-1", "system:node:milan2", "system:kube-scheduler", "system:serviceaccount:shop:milan"} {
			tc.attempt.user = user
			if got := policy.try(t, tc.attempt, list); got != "" {
				t.Errorf("%s by %s: refused with %q", what, user, got)
			}
		}
	}
	// The label of pods on virtual nodes, and no other one, is what the ServiceAccount gives with a status. A node may not: NodeRestriction.
	const account, node, label = "system:serviceaccount:liqo-tenant-milan:milan", "system:node:milan", "liqo.io/shadowPod"
	with := func(labels map[string]string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Labels = labels } }
	for what, tc := range map[string]struct {
		user     string
		old, new map[string]string
		node     string
		want     string
	}{
		"by the account":                      {account, map[string]string{"app": "web"}, map[string]string{"app": "web", label: "true"}, "milan", ""},
		"of a pod without labels":             {account, nil, map[string]string{label: "true"}, "milan", ""},
		"of a pod with another value":         {account, map[string]string{label: "no"}, map[string]string{label: "true"}, "milan", ""},
		"by the node":                         {node, map[string]string{"app": "web"}, map[string]string{"app": "web", label: "true"}, "milan", "StatusOnly"},
		"with another value":                  {account, nil, map[string]string{label: "victim"}, "milan", "StatusOnly"},
		"and one more":                        {account, nil, map[string]string{label: "true", "app": "victim"}, "milan", "StatusOnly"},
		"and one that changes":                {account, map[string]string{"app": "web"}, map[string]string{label: "true", "app": "victim"}, "milan", "StatusOnly"},
		"and one that goes":                   {account, map[string]string{"app": "web"}, map[string]string{label: "true"}, "milan", "StatusOnly"},
		"and all that go":                     {account, map[string]string{"app": "web"}, nil, "milan", "StatusOnly"},
		"taken away":                          {account, map[string]string{label: "true"}, nil, "milan", "StatusOnly"},
		"of a pod of another node":            {account, nil, map[string]string{label: "true"}, "other", "NotYourPod"},
		"of a pod that is not bound anywhere": {account, nil, map[string]string{label: "true"}, "", "NotYourPod"},
	} {
		try := attempt{user: tc.user, operation: admission.Update, resource: "pods/status", namespace: shop, object: podOn(tc.node, with(tc.new)), old: podOn(tc.node, with(tc.old))}
		if got := policy.try(t, try, list); (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
			t.Errorf("the label %s: refused with %q, want %q", what, got, tc.want)
		}
	}
	if got := policy.try(t, attempt{user: account, operation: admission.Update, resource: "nodes/status", name: "milan", namespace: nil, object: nodeNamed("milan", func(n *corev1.Node) { n.Labels[label] = "true" }), old: nodeNamed("milan")}, list); !strings.Contains(got, "StatusOnly") {
		t.Errorf("the label of a Node: refused with %q", got)
	}
	if got := policy.try(t, attempt{user: "system:node:worker-1", operation: admission.Create, resource: "nodes", name: "worker-1", object: nodeNamed("worker-1")}, &rbacv1.RoleBinding{}); got != "" {
		t.Errorf("with an empty list a real node is refused: %s", got)
	}
}

// Of pods' statuses the policy is asked about those alone that are bound to virtual nodes, where API servers label them; accounts of virtual kubelets have
// rights on the status of all pods in a namespace, so about all of theirs. The same goes for deletions.
func TestStatusesAndDeletionsOfPodsOnRealNodesAreNotLookedAt(t *testing.T) {
	for what, tc := range map[string]struct {
		version, set string
		narrow       bool
	}{
		"nodes": {"v1.36.0", "default", true}, "hardened": {"v1.36.0", "hardened", true}, "no labels": {"v1.35.0", "default", false}, "accounts": {"v1.36.0", "accounts", false},
	} {
		bindings := map[string]*admissionregistrationv1.MatchResources{}
		for _, document := range documents(t, tc.version, valueSets[tc.set]) {
			var binding admissionregistrationv1.ValidatingAdmissionPolicyBinding
			if err := yaml.Unmarshal([]byte(document), &binding); err != nil {
				t.Fatal(err)
			}
			if binding.Kind == "ValidatingAdmissionPolicyBinding" && binding.Spec.PolicyName == "liqo-virtual-nodes" {
				bindings[binding.Name] = binding.Spec.MatchResources
			}
		}
		all, statuses := bindings["liqo-virtual-nodes"], bindings["liqo-virtual-nodes-status"]
		if !tc.narrow {
			if len(bindings) != 1 || all != nil {
				t.Errorf("%s: something is not looked at: %v", what, bindings)
			}
			continue
		}
		if len(bindings) != 2 || all == nil || len(all.ExcludeResourceRules) != 2 || statuses == nil || statuses.ObjectSelector == nil {
			t.Fatalf("%s: %v", what, bindings)
		}
		if left := all.ExcludeResourceRules[0].Resources; !slices.Equal(left, []string{"pods/status", "pods/binding"}) || len(all.ResourceRules) > 0 || all.NamespaceSelector != nil || all.ObjectSelector != nil {
			t.Errorf("%s: more is left out than the status of pods, and their binding, which virtual nodes have no right to: %v", what, left)
		}
		if left := all.ExcludeResourceRules[1]; !slices.Equal(left.Resources, []string{"pods"}) || !slices.Equal(left.Operations, []admissionregistrationv1.OperationType{"DELETE"}) {
			t.Errorf("%s: more is left out than deletions of pods, which NodeRestriction looks at: %v", what, left)
		}
		if seen := statuses.ResourceRules[0].Resources; !slices.Equal(seen, []string{"pods/status"}) || statuses.NamespaceSelector != nil ||
			!maps.Equal(statuses.ObjectSelector.MatchLabels, map[string]string{"liqo.io/shadowPod": "true"}) {
			t.Errorf("%s: the statuses of pods on virtual nodes are not looked at: %v", what, statuses)
		}
	}
}

func bound(kind string) *authenticationv1.TokenRequest {
	return &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{BoundObjectRef: &authenticationv1.BoundObjectReference{Kind: kind, Name: "web", UID: "u"}}}
}
