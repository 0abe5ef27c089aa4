package mirror

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// operation is one step of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// removal is a step without value.
type removal struct {
	Op   string `json:"op"`
	Path string `json:"path"`
}

func pointer(path ...string) string {
	var b strings.Builder
	for _, step := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	return b.String()
}

// testOwner makes a patch fail, with 422, on objects that did not come from here.
func testOwner(home, remote string) []any {
	return []any{
		operation{"test", pointer("metadata", "labels", offloadingv1beta1.OriginLabel), home},
		operation{"test", pointer("metadata", "labels", offloadingv1beta1.DestinationLabel), remote},
	}
}

// testOrigin makes a patch fail on objects that stand for another local object than wanted does.
func testOrigin(wanted reflection.Object) any {
	return operation{"test", pointer("metadata", "annotations", corev1beta1.OriginUIDAnnotation), reflection.OriginUID(wanted)}
}

// testLive makes a patch fail on another object of the same name.
func testLive(live reflection.Object) any {
	return operation{"test", pointer("metadata", "uid"), string(live.GetUID())}
}

// steps are the patch's steps for changes. Of an object that cannot be read nobody knows whether a field is there to be
// removed; setting it to null does the same.
func steps(changes []reflection.Change, readable bool) []any {
	var list []any
	for _, c := range changes {
		if c.Value == nil && readable {
			list = append(list, removal{"remove", pointer(c.Path...)})
			continue
		}
		list = append(list, operation{"add", pointer(c.Path...), c.Value})
	}
	return list
}

func encode(list []any) ([]byte, error) {
	patch, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encoding a patch: %w", err)
	}
	return patch, nil
}
