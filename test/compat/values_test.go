package compat

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
)

// value is one of v1's chart, with its default.
type value struct {
	path     []string
	fallback any
}

// String is the path as users write it.
func (v value) String() string { return strings.Join(v.path, ".") }

// alone are values of the chart with nothing but this one.
func (v value) alone() map[string]any {
	nested := v.fallback
	for i := len(v.path) - 1; i >= 0; i-- {
		nested = map[string]any{v.path[i]: nested}
	}
	return nested.(map[string]any)
}

// values are those of v1's chart.
func values(t *testing.T) []value {
	t.Helper()
	var all []value
	for _, row := range rows(t, "values.tsv", 2) {
		v := value{}
		for _, key := range strings.Split(row[0], ".") {
			// The one dot in keys is that of liqo.io/type and the like.
			if n := len(v.path); n > 0 && v.path[n-1] == "liqo" && strings.HasPrefix(key, "io/") {
				v.path[n-1] += "." + key
				continue
			}
			v.path = append(v.path, key)
		}
		if err := json.Unmarshal([]byte(row[1]), &v.fallback); err != nil {
			t.Fatalf("the default of %s: %v", v, err)
		}
		all = append(all, v)
	}
	return all
}

func loadChart(t *testing.T) *chart.Chart {
	t.Helper()
	c, err := loader.Load(filepath.Join(root, "charts", "liqo"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// at goes down values; ours tells whether somebody says something there.
func at(in any, path []string) (found any, ours bool) {
	for _, key := range path {
		of, is := in.(map[string]any)
		if !is {
			return nil, false
		}
		if in, ours = of[key]; !ours {
			return nil, false
		}
	}
	return in, true
}

// Each value of Liqo v1's chart is known to ours, and what users see by default is what it was.
func TestValuesAreThoseOfV1(t *testing.T) {
	c, all := loadChart(t), values(t)
	refused, known := 0, accepts(t, c, whole(all))
	var differences []string
	for _, v := range all {
		if !known && !accepts(t, c, v.alone()) {
			differences, refused = append(differences, v.String()+" is refused"), refused+1
			continue
		}
		if here, ours := at(c.Values, v.path); ours && !cmp.Equal(plain(t, here), v.fallback) {
			differences = append(differences, v.String()+" is by default "+string(text(t, here)))
		}
	}
	t.Logf("of %d values of Liqo v1.2, %d are refused, and %d have another default", len(all), refused, len(differences)-refused)
	exceptions{"values-exceptions.tsv", 36}.explain(t, len(all), differences)
}

// whole are v1's default values.
func whole(all []value) map[string]any {
	values := map[string]any{}
	for _, v := range all {
		values = chartutil.MergeTables(v.alone(), values)
	}
	return values
}

// accepts tells whether the schema of the chart takes values.
func accepts(t *testing.T, c *chart.Chart, given map[string]any) bool {
	t.Helper()
	merged, err := chartutil.CoalesceValues(c, given)
	if err != nil {
		t.Fatal(err)
	}
	return chartutil.ValidateAgainstSchema(c, merged) == nil
}

func text(t *testing.T, value any) []byte {
	t.Helper()
	out, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// plain is a value of the types that JSON knows.
func plain(t *testing.T, value any) (out any) {
	t.Helper()
	if err := json.Unmarshal(text(t, value), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
