package reflection

import (
	"encoding/json"
	"fmt"
)

// MergePatch encodes changes as a JSON merge patch that takes effect on this version of the live object only.
func MergePatch(live Object, changes []Change) ([]byte, error) {
	patch := map[string]any{}
	set := func(path []string, value any) {
		in := patch
		for ; len(path) > 1; path = path[1:] {
			below, ok := in[path[0]].(map[string]any)
			if !ok {
				below = map[string]any{}
				in[path[0]] = below
			}
			in = below
		}
		in[path[0]] = value
	}
	for _, change := range changes {
		set(change.Path, change.Value)
	}
	set([]string{"metadata", "uid"}, string(live.GetUID()))
	set([]string{"metadata", "resourceVersion"}, live.GetResourceVersion())
	data, err := json.Marshal(patch)
	if err != nil {
		return nil, fmt.Errorf("encoding a change of %s/%s: %w", live.GetNamespace(), live.GetName(), err)
	}
	return data, nil
}
