package info

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"liqo.io/liqo/pkg/cli/failure"
)

// Query returns the value at a dotted path of a report, such as local.clusterID or peerings.peers.0.role. The case of letters does
// not matter.
func Query(report any, path string) (any, error) {
	data, err := json.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		return nil, fmt.Errorf("reading the report: %w", err)
	}
	for _, key := range strings.Split(strings.Trim(path, "."), ".") {
		next, known, ok := step(value, key)
		if !ok {
			return nil, failure.Misuse("choose one of: "+strings.Join(known, ", "), "--get %s: there is no %q", path, key)
		}
		value = next
	}
	return value, nil
}

// step goes one key down; if it cannot, known are the keys that exist.
func step(value any, key string) (next any, known []string, ok bool) {
	switch typed := value.(type) {
	case map[string]any:
		for name, item := range typed {
			known = append(known, name)
			if strings.EqualFold(name, key) {
				return item, nil, true
			}
		}
	case []any:
		index, err := strconv.Atoi(key)
		if err == nil && index >= 0 && index < len(typed) {
			return typed[index], nil, true
		}
		for i := range typed {
			known = append(known, strconv.Itoa(i))
		}
	}
	if len(known) == 0 {
		known = []string{"nothing: it is a single value"}
	}
	slices.Sort(known)
	return nil, known, false
}
