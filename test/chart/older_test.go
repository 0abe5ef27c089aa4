package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chartutil"
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
