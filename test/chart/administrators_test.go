package chart

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
)

// inNetworking is an object of the network module, with the conditions of some hosts.
func inNetworking(kind string, hosts ...string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.liqo.io/v1beta1", "kind": kind}}
	object.SetName("a")
	object.SetNamespace("liqo")
	var conditions []any
	for _, host := range hosts {
		name, reason, _ := strings.Cut(host, "=")
		conditions = append(conditions, map[string]any{"host": name, "type": "Applied", "status": "True", "reason": reason})
	}
	if conditions != nil {
		object.Object["status"] = map[string]any{"conditions": conditions}
	}
	return object
}

// What root does on hosts is written by those who may do everything, whatever a role gives to others; the controller manager keeps its templates.
func TestAdministratorsAloneWriteWhatHostsDo(t *testing.T) {
	policy := policyNamed(t, network, "fabric.yaml", "liqo-administrators")
	liqo, tenant := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-milan"}}
	users := map[string]attempt{
		"an administrator":             {user: "admin", administrator: true},
		"a tenant":                     {user: "liqo.io:tenant:milan", groups: []string{"liqo.io:tenants"}},
		"the agent of a node":          {user: "system:serviceaccount:liqo:liqo-fabric"},
		"a gateway":                    {user: "system:serviceaccount:liqo-tenant-milan:gw-milan"},
		"the controller manager":       {user: managerUser},
		"the collector of garbage":     {user: "system:serviceaccount:kube-system:generic-garbage-collector", groups: []string{"system:serviceaccounts:kube-system"}},
		"kubernetes' controllers":      {user: "system:kube-controller-manager"},
		"an editor":                    {user: "somebody"},
		"a manager of another release": {user: "system:serviceaccount:other:liqo-controller-manager"},
	}
	everywhere := map[string]bool{"an administrator": true, "the collector of garbage": true, "kubernetes' controllers": true}
	for who, a := range users {
		for resource, kind := range map[string]string{
			"firewallconfigurations": "FirewallConfiguration", "routeconfigurations": "RouteConfiguration",
			"wggatewayservertemplates": "WgGatewayServerTemplate", "wggatewayclienttemplates": "WgGatewayClientTemplate",
		} {
			for _, namespace := range []*corev1.Namespace{liqo, tenant} {
				for _, operation := range []admission.Operation{admission.Create, admission.Update, admission.Delete} {
					a.operation, a.group, a.resource, a.namespace, a.name = operation, "networking.liqo.io", resource, namespace, "a"
					a.object, a.old = inNetworking(kind), inNetworking(kind)
					if operation == admission.Create {
						a.old = nil
					}
					if operation == admission.Delete {
						a.object = nil
					}
					may := everywhere[who] || who == "the controller manager" && strings.HasSuffix(resource, "templates") && namespace == liqo
					if got := policy.try(t, a, nil); may != (got == "") || !may && !strings.Contains(got, "AdministratorsOnly") {
						t.Errorf("%s, %s of %s in %s: %q", who, operation, resource, namespace.Name, got)
					}
				}
			}
		}
	}
}

// A host says what became of an object there, and nothing of other hosts.
func TestHostsWriteOfThemselves(t *testing.T) {
	policy := policyNamed(t, network, "fabric.yaml", "liqo-host-conditions")
	node := attempt{user: "system:serviceaccount:liqo:liqo-fabric", extra: map[string][]string{"authentication.kubernetes.io/node-name": {"n1"}}}
	unbound := attempt{user: node.user}
	gateway := attempt{user: "system:serviceaccount:liqo-tenant-milan:gw-milan"}
	const kind, own = "FirewallConfiguration", "liqo-tenant-milan:gw-milan"
	for what, tc := range map[string]struct {
		attempt    attempt
		old, after []string
		may        bool
	}{
		"its first word":                      {node, []string{"n2"}, []string{"n2", "n1"}, true},
		"the first word of all":               {node, nil, []string{"n1"}, true},
		"another word":                        {node, []string{"n2", "n1=a"}, []string{"n2", "n1=b"}, true},
		"no word any more":                    {node, []string{"n1", "n2"}, []string{"n2"}, true},
		"another node's word":                 {node, []string{"n2=a"}, []string{"n2=b"}, false},
		"a word for another node":             {node, []string{"n1"}, []string{"n1", "n2"}, false},
		"the end of another node's word":      {node, []string{"n1", "n2"}, []string{"n1"}, false},
		"a word by a token without a node":    {unbound, nil, []string{"n1"}, false},
		"a gateway's word":                    {gateway, []string{"n1"}, []string{"n1", own}, true},
		"a gateway's word for a node":         {gateway, nil, []string{"n1"}, false},
		"a gateway's word for another":        {gateway, nil, []string{"liqo-tenant-rome:gw-rome"}, false},
		"what an administrator puts in order": {attempt{user: "admin", administrator: true}, []string{"n1"}, nil, true},
	} {
		a := tc.attempt
		a.operation, a.group, a.resource, a.name = admission.Update, "networking.liqo.io", "firewallconfigurations/status", "a"
		a.object, a.old = inNetworking(kind, tc.after...), inNetworking(kind, tc.old...)
		if got := policy.try(t, a, nil); tc.may != (got == "") || !tc.may && !strings.Contains(got, "NotYourHost") {
			t.Errorf("%s: %q", what, got)
		}
	}
}
