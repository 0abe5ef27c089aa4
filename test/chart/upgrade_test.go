package chart

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"
)

// upgraded is an object after an upgrade: helm merges the manifest before, the one after, here the same, and the live object.
func upgraded[T any](t *testing.T, manifest string, live T) T {
	t.Helper()
	rendered, err := yaml.YAMLToJSON([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	now, err := json.Marshal(live)
	if err != nil {
		t.Fatal(err)
	}
	var merged T
	meta, err := strategicpatch.NewPatchMetaFromStruct(merged)
	if err != nil {
		t.Fatal(err)
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(rendered, rendered, now, meta, true)
	if err != nil {
		t.Fatal(err)
	}
	if now, err = strategicpatch.StrategicMergePatch(now, patch, merged); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(now, &merged); err != nil {
		t.Fatal(err)
	}
	return merged
}

// The controller manager writes into two objects of the chart. An upgrade takes nothing of it away that somebody's safety depends on: who is
// a virtual node stays listed, and API servers go on trusting the webhooks.
func TestAnUpgradeLeavesWhatTheControllerManagerWrote(t *testing.T) {
	manifests := documents(t, "v1.36.0", "")
	var list rbacv1.RoleBinding
	if err := yaml.UnmarshalStrict([]byte(manifests["RoleBinding liqo-virtual-nodes"]), &list); err != nil || list.Name == "" {
		t.Fatal(err, list)
	}
	list.Subjects = []rbacv1.Subject{userNamed("system:node:milan"), userNamed("system:node:turin")}
	if diff := cmp.Diff(list, upgraded(t, manifests["RoleBinding liqo-virtual-nodes"], list)); diff != "" {
		t.Errorf("the list of virtual nodes: %s", diff)
	}
	var hooks admissionregistrationv1.ValidatingWebhookConfiguration
	if err := yaml.UnmarshalStrict([]byte(manifests["ValidatingWebhookConfiguration liqo-webhook"]), &hooks); err != nil || len(hooks.Webhooks) == 0 {
		t.Fatal(err, hooks)
	}
	for i := range hooks.Webhooks {
		hooks.Webhooks[i].ClientConfig.CABundle = []byte("ca")
	}
	if diff := cmp.Diff(hooks, upgraded(t, manifests["ValidatingWebhookConfiguration liqo-webhook"], hooks)); diff != "" {
		t.Errorf("the webhooks: %s", diff)
	}
}

// A definition that Liqo v1 left, and that is the release's by its marks, becomes what the chart has: helm takes the manifest for what was there
// before, too, when it installs over something. Nothing of v1's schema stays; fields that the chart does not name do.
func TestALeftoverDefinitionBecomesOurs(t *testing.T) {
	manifests := documents(t, "v1.36.0", "")
	for _, name := range []string{"tenants.authentication.liqo.io", "foreignclusters.core.liqo.io", "ips.ipam.liqo.io"} {
		manifest := manifests["CustomResourceDefinition "+name]
		var ours apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict([]byte(manifest), &ours); err != nil || ours.Name != name {
			t.Fatal(err, ours.Name)
		}
		left := ours.DeepCopy()
		left.Annotations, left.Labels = map[string]string{"controller-gen.kubebuilder.io/version": "v0.16.0"}, map[string]string{"app.kubernetes.io/managed-by": "Helm"}
		left.Spec.Names.Categories = []string{"liqo", "old"}
		left.Spec.Versions[0].AdditionalPrinterColumns = []apiextensionsv1.CustomResourceColumnDefinition{{Name: "Old", Type: "string", JSONPath: ".spec.old"}}
		left.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties = map[string]apiextensionsv1.JSONSchemaProps{"spec": {Type: "object",
			Properties: map[string]apiextensionsv1.JSONSchemaProps{"old": {Type: "string"}}, Required: []string{"old"}}}
		got := upgraded(t, manifest, *left)
		if diff := cmp.Diff(ours.Spec, got.Spec); diff != "" {
			t.Errorf("%s is not as in the chart: %s", name, diff)
		}
		if got.Annotations["helm.sh/resource-policy"] != "keep" || got.Labels["app.kubernetes.io/managed-by"] != "Helm" {
			t.Errorf("%s has annotations %v, labels %v", name, got.Annotations, got.Labels)
		}
	}
}

// Other percentages need no other pods of the controller manager, which reads them while it runs; all else does.
func TestSharesChangeWithoutOtherPods(t *testing.T) {
	pods := func(values string) string {
		t.Helper()
		var deployment appsv1.Deployment
		if err := yaml.Unmarshal([]byte(documents(t, "v1.36.0", values)["Deployment liqo-controller-manager"]), &deployment); err != nil {
			t.Fatal(err)
		}
		return deployment.Spec.Template.Annotations["checksum/config"]
	}
	usual := pods("")
	for values, same := range map[string]bool{
		"offloading: {sharingPercentage: 50}":              true,
		"offloading: {sharingPercentages: {gold: 100}}":    true,
		"offloading: {sharing: exclusive}":                 false,
		"offloading: {defaultNodeResources: {cpu: \"4\"}}": false,
	} {
		if got := pods(values); got == "" || (got == usual) != same {
			t.Errorf("%s: the pods are the same: %t, want %t", values, got == usual, same)
		}
	}
}
