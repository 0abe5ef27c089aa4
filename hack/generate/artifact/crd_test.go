package artifact

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// What a peer writes as a quantity is read by controllers of the other cluster.
func TestQuantitiesAreBounded(t *testing.T) {
	completed, err := completeCRD([]byte("spec:\n  pattern: " + quantityPattern + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	var crd struct{ Spec struct{ Pattern string } }
	if err := yaml.Unmarshal(completed, &crd); err != nil {
		t.Fatal(err)
	}
	bounded, upstream := regexp.MustCompile(crd.Spec.Pattern), regexp.MustCompile(quantityPattern)
	for quantity, want := range map[string]bool{
		"4": true, "1500m": true, "8Gi": true, "-1": true, "+.5": true, "1e3": true, "2E-9": true, "12E": true, "0.333333333333": true, "9223372036854775807": true,
		"1e100": false, "1e-999999999": false, "1E5999999": false, "1e1.5": false, strings.Repeat("9", 41): false, "1." + strings.Repeat("0", 41): false, "." + strings.Repeat("1", 41): false,
	} {
		if !upstream.MatchString(quantity) || bounded.MatchString(quantity) != want {
			t.Errorf("%s is a quantity of Kubernetes: %t, of ours: %t, want %t", quantity, upstream.MatchString(quantity), !want, want)
		}
	}
	for _, no := range []string{"", "1x", "e5", "1 "} {
		if bounded.MatchString(no) {
			t.Errorf("%q is a quantity", no)
		}
	}
}

func TestCompleteCRD(t *testing.T) {
	leaf := map[string]any{"type": "string", "description": "deep"}
	deep := map[string]any{"description": leaf, "properties": leaf}
	schema := func(pad string, fields map[string]any) map[string]any {
		node := map[string]any{"type": "object", "properties": fields, "description": "level 3"}
		for _, level := range []string{"level 2", "level 1", "level 0" + pad} {
			node = map[string]any{"description": level, "properties": map[string]any{"field": node}}
		}
		return node
	}
	pad := strings.Repeat(".", maxCRDSize)
	bare := map[string]any{"type": "string"}
	cases := map[string]struct{ crd, want map[string]any }{
		"a CRD that fits keeps all its documentation": {schema("", deep), schema("", deep)},
		"a large CRD loses what is documented deeper, but no field": {
			schema(pad, deep), schema(pad, map[string]any{"description": bare, "properties": bare}),
		},
	}
	for sentence, tc := range cases {
		t.Run(sentence, func(t *testing.T) {
			content, err := yaml.Marshal(tc.crd)
			if err != nil {
				t.Fatal(err)
			}
			completed, err := completeCRD(content)
			if err != nil {
				t.Fatalf("completing: %v", err)
			}
			var got map[string]any
			if err := yaml.Unmarshal(completed, &got); err != nil {
				t.Fatal(err)
			}
			metadata := map[string]any{
				"labels":      map[string]any{"app.kubernetes.io/part-of": "liqo"},
				"annotations": map[string]any{"helm.sh/resource-policy": "keep"},
			}
			tc.want["metadata"] = metadata
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("schema (-want +got):\n%s", diff)
			}
		})
	}
}

// A field that is bounded and is not there any more, as after an update of Kubernetes' types, does not go by in silence.
func TestBoundsReachTheirFields(t *testing.T) {
	schema := func() map[string]any {
		return map[string]any{"properties": map[string]any{"zone": map[string]any{"type": "string"}}}
	}
	bounds := func(field string) map[string]any {
		return map[string]any{"properties": map[string]any{field: map[string]any{"maxLength": 63}}}
	}
	got := schema()
	if err := bound(got, bounds("zone")); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"properties": map[string]any{"zone": map[string]any{"type": "string", "maxLength": 63}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if err := bound(schema(), bounds("rack")); err == nil {
		t.Error("a bound of a field that is not there is no error")
	}
}
