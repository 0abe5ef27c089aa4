package artifact

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

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
