package reflection

import (
	"reflect"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

const podAPI = "k8s.io/api/core/v1"

// maxPodErrors bounds what is said about one pod: a hostile one may have a million wrong fields.
const maxPodErrors = 16

// visitor is told of every field that is set. It returns whether to look inside.
type visitor func(path *field.Path, owner reflect.Type, f podField, value reflect.Value) (inside bool)

// walkPod visits the set fields of a value of the pod API, outermost first, in the order of the types' declarations. Without a path
// to begin with it tells none, which costs less.
func walkPod(path *field.Path, value reflect.Value, visit visitor) {
	switch value.Kind() {
	case reflect.Pointer:
		if !value.IsNil() {
			walkPod(path, value.Elem(), visit)
		}
	case reflect.Slice:
		if !holdsPodAPI(value.Type().Elem()) {
			return
		}
		for i := range value.Len() {
			below := path
			if path != nil {
				below = path.Index(i)
			}
			walkPod(below, value.Index(i), visit)
		}
	case reflect.Struct:
		if value.Type().PkgPath() != podAPI {
			return
		}
		walkStruct(path, value, visit)
	}
}

func walkStruct(path *field.Path, value reflect.Value, visit visitor) {
	t := value.Type()
	known := podFields[t]
	for i := range t.NumField() {
		v := value.Field(i)
		if v.IsZero() {
			continue
		}
		var f podField
		if known != nil {
			f = known[i]
		} else {
			f = podField{name: jsonName(t.Field(i))}
		}
		below := path
		if path != nil && !t.Field(i).Anonymous {
			below = path.Child(f.name)
		}
		if visit(below, t, f, v) {
			walkPod(below, v, visit)
		}
	}
}

func holdsPodAPI(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct && t.PkgPath() == podAPI
}
