package output

import (
	"encoding/json"
	"reflect"
)

// filled returns a value with empty lists and maps where it has none, so that programs which read it find [] and {}, never null. What
// writes itself, or is of no known type, stays as it is.
func filled(value any) any {
	if value == nil {
		return nil
	}
	copied := reflect.New(reflect.TypeOf(value)).Elem()
	copied.Set(reflect.ValueOf(value))
	return fill(copied).Interface()
}

var marshaler = reflect.TypeFor[json.Marshaler]()

// fill returns a copy of v, as far as something in it changes.
func fill(v reflect.Value) reflect.Value {
	if v.Type().Implements(marshaler) || reflect.PointerTo(v.Type()).Implements(marshaler) {
		return v
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() || v.Elem().Kind() != reflect.Struct {
			return v
		}
		to := reflect.New(v.Type().Elem())
		to.Elem().Set(fill(v.Elem()))
		return to
	case reflect.Struct:
		to := reflect.New(v.Type()).Elem()
		to.Set(v)
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				to.Field(i).Set(fill(v.Field(i)))
			}
		}
		return to
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return v
		}
		to := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			to.Index(i).Set(fill(v.Index(i)))
		}
		return to
	case reflect.Map:
		to := reflect.MakeMapWithSize(v.Type(), v.Len())
		for _, key := range v.MapKeys() {
			to.SetMapIndex(key, fill(v.MapIndex(key)))
		}
		return to
	default:
		return v
	}
}
