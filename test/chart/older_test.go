package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// documents are all that is rendered, by kind and name.
func documents(t *testing.T, version, values string) map[string]string {
	t.Helper()
	rendered, err := renderFor(t, chartutil.KubeVersion{Version: version, Major: "1", Minor: strings.Split(version, ".")[1]}, values)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for path, text := range rendered {
		if strings.HasSuffix(path, "NOTES.txt") {
			continue
		}
		for _, document := range strings.Split("\n"+text, "\n---") {
			var object metav1.PartialObjectMetadata
			if err := yaml.Unmarshal([]byte(document), &object); err != nil {
				t.Fatal(err)
			}
			if object.Kind != "" {
				all[object.Kind+" "+object.Name] = strings.TrimSpace(document)
			}
		}
	}
	return all
}

// Older API servers have no MutatingAdmissionPolicy. The golden file is what they get otherwise, and what they do not get.
func TestRenderForOlderKubernetes(t *testing.T) {
	const values = "discovery: {config: {clusterID: rome}}\nvirtualKubelet: {virtualNode: {keepDaemonSetsOff: true}}"
	newest, older := documents(t, "v1.36.0", values), documents(t, "v1.35.9", values)
	compare(t, "older", differing(newest, older))
}

// Pods on virtual nodes are labelled for every Kubernetes that the chart is for: by a policy as they are bound, or by the virtual kubelet.
func TestPodsAreLabelledForEveryKubernetes(t *testing.T) {
	for minor := 30; minor <= 36; minor++ {
		rendered := documents(t, fmt.Sprintf("v1.%d.0", minor), valueSets["default"])
		var role rbacv1.ClusterRole
		if err := yaml.Unmarshal([]byte(rendered["ClusterRole liqo-virtual-kubelet-local"]), &role); err != nil || len(role.Rules) == 0 {
			t.Fatalf("the role is %v, %v", role, err)
		}
		byKubelet := slices.ContainsFunc(role.Rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, "pods/status") && slices.Equal(r.Verbs, []string{"patch"})
		})
		_, byPolicy := rendered["MutatingAdmissionPolicy liqo-local-pods"]
		if byKubelet == byPolicy {
			t.Errorf("Kubernetes 1.%d: labelled by the policy %v, by the virtual kubelet %v", minor, byPolicy, byKubelet)
		}
	}
}

// With the network module on, the golden file is what differs from an installation without.
func TestRenderWithTheNetwork(t *testing.T) {
	without, with := documents(t, "v1.36.0", valueSets["default"]+"\nnetworking: {enabled: false}"), documents(t, "v1.36.0", valueSets["network"])
	compare(t, "network", differing(without, with))
}

// differing are the documents that are others than before, and the names of those that are not there any more.
func differing(before, after map[string]string) string {
	var parts []string
	for name, now := range after {
		if now != before[name] {
			parts = append(parts, fmt.Sprintf("# %s\n%s\n---\n", name, now))
		}
	}
	for name := range before {
		if after[name] == "" {
			parts = append(parts, fmt.Sprintf("# %s is not there.\n---\n", name))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, "")
}
