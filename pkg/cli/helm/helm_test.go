package helm

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/charts"
)

func TestTheBuiltInChartRendersAndIsChecked(t *testing.T) {
	chart, err := Load(charts.Liqo())
	if err != nil {
		t.Fatal(err)
	}
	chart.SetAppVersion("v9.9.9")
	if _, app := chart.Version(); app != "v9.9.9" {
		t.Errorf("version %s", app)
	}
	given := func() map[string]any {
		return map[string]any{
			"discovery": map[string]any{"config": map[string]any{"clusterID": "rome"}},
			"ipam":      map[string]any{"podCIDRs": []any{"10.10.0.0/16"}, "serviceCIDR": "10.11.0.0/16"},
		}
	}
	values := given()
	if err := chart.Validate(values); err != nil {
		t.Fatal(err)
	}
	rendered, err := chart.Render("liqo", "liqo", values)
	if err != nil {
		t.Fatal(err)
	}
	if rendered["liqo/templates/deployment.yaml"] == "" || rendered["liqo/charts/liqo-crds/templates/crds.yaml"] == "" {
		t.Error("the Deployment or the definitions are missing")
	}
	if diff := cmp.Diff(given(), values); diff != "" {
		t.Errorf("the values were changed: %s", diff)
	}
	if chart.Defaults()["pullPolicy"] != "IfNotPresent" {
		t.Error("the defaults are missing")
	}
}

func TestMerge(t *testing.T) {
	first := map[string]any{"a": map[string]any{"x": 1, "y": 2}, "b": []any{1, 2}, "c": "old"}
	second := map[string]any{"a": map[string]any{"y": 3}, "b": []any{4}, "c": nil, "d": true}
	want := map[string]any{"a": map[string]any{"x": 1, "y": 3}, "b": []any{4}, "c": nil, "d": true}
	if diff := cmp.Diff(want, Merge(first, second)); diff != "" {
		t.Error(diff)
	}
	if first["a"].(map[string]any)["y"] != 2 || len(first["b"].([]any)) != 2 {
		t.Error("a layer was changed")
	}
}

func TestAssignments(t *testing.T) {
	values := map[string]any{}
	if err := Set(values, "a.b=1,list={x,y}"); err != nil {
		t.Fatal(err)
	}
	if err := SetString(values, "a.c=1"); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"a": map[string]any{"b": int64(1), "c": "1"}, "list": []any{"x", "y"}}
	if diff := cmp.Diff(want, values); diff != "" {
		t.Error(diff)
	}
}

func TestPending(t *testing.T) {
	for status, want := range map[string]bool{"deployed": false, "failed": false, "pending-install": true, "pending-upgrade": true, "uninstalling": false} {
		if got := (&Release{Status: status}).Pending(); got != want {
			t.Errorf("%s: %v", status, got)
		}
	}
}

func TestDocumentsOfAKind(t *testing.T) {
	rendered := map[string]string{
		"small/templates/a.yaml": "kind: ConfigMap\nmetadata: {name: b}\n---\nkind: Secret\n---\n# nothing\n---\nkind: ConfigMap\nmetadata: {name: a}", "small/templates/NOTES.txt": "kind: ConfigMap",
	}
	want := []string{"kind: ConfigMap\nmetadata: {name: a}", "kind: ConfigMap\nmetadata: {name: b}"}
	if diff := cmp.Diff(want, Documents(Manifests(rendered), "ConfigMap")); diff != "" {
		t.Error(diff)
	}
}
