// Package jsonpatch writes JSON patches, by RFC 6902.
package jsonpatch

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Patch is the steps of a patch, in order.
type Patch []any

// operation is a step with a value.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// removal is a step without one.
type removal struct {
	Op   string `json:"op"`
	Path string `json:"path"`
}

// Test makes the patch fail, with 422, on an object whose field has another value, or none.
func Test(value any, path ...string) any { return operation{"test", pointer(path), value} }

// Add sets a field, whether it is there or not.
func Add(value any, path ...string) any { return operation{"add", pointer(path), value} }

// Remove takes a field away, which must be there.
func Remove(path ...string) any { return removal{"remove", pointer(path)} }

// Encode is the patch as it is sent.
func (p Patch) Encode() ([]byte, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return data, nil
}

var escapes = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		b.WriteString(escapes.Replace(step))
	}
	return b.String()
}
