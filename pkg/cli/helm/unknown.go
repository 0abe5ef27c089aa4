package helm

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"liqo.io/liqo/pkg/cli/failure"
)

// properties are what a chart's schema says of a map of values: the keys that it takes. One without any takes all.
type properties struct {
	Properties map[string]properties `json:"properties"`
}

// unknown are the values that the chart does not have, each with what may be meant.
func (c *Chart) unknown(values map[string]any) []string {
	var schema properties
	if err := json.Unmarshal(c.loaded.Schema, &schema); err != nil {
		return nil
	}
	return schema.unknown(values, "", schema.paths(""))
}

func (p properties) unknown(values map[string]any, path string, all []string) (found []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		below, known := p.Properties[key]
		inside, isMap := values[key].(map[string]any)
		switch {
		case len(p.Properties) == 0:
		case !known:
			found = append(found, "there is no value "+path+key+p.meant(path, key, all))
		case isMap:
			found = append(found, below.unknown(inside, path+key+".", all)...)
		}
	}
	return found
}

// meant is the value that is spelt alike beside it, or one of the same name elsewhere.
func (p properties) meant(path, key string, all []string) string {
	if near := failure.Nearest(key, slices.Sorted(maps.Keys(p.Properties))); len(near) > 0 {
		return " (did you mean " + path + near[0] + "?)"
	}
	for _, other := range all {
		if strings.HasSuffix(other, "."+key) {
			return " (did you mean " + other + "?)"
		}
	}
	return ""
}

// paths are those of all values that the chart has.
func (p properties) paths(prefix string) (all []string) {
	for _, key := range slices.Sorted(maps.Keys(p.Properties)) {
		all = append(append(all, prefix+key), p.Properties[key].paths(prefix+key+".")...)
	}
	return all
}
