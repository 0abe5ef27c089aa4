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
	var parts []string
	for name, now := range older {
		if now != newest[name] {
			parts = append(parts, fmt.Sprintf("# %s\n%s\n---\n", name, now))
		}
	}
	for name := range newest {
		if older[name] == "" {
			parts = append(parts, fmt.Sprintf("# %s is not there.\n---\n", name))
		}
	}
	slices.Sort(parts)
	compare(t, "older", strings.Join(parts, ""))
}
