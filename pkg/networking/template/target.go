package template

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/intstr"
)

var (
	intOrString = reflect.TypeFor[intstr.IntOrString]()
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
)

// direct is the type that pointers lead to; nil stays nil.
func direct(target reflect.Type) reflect.Type {
	for target != nil && target.Kind() == reflect.Pointer {
		target = target.Elem()
	}
	return target
}

// ownReader tells whether values of a type read themselves from JSON: what is in them is not looked at.
func ownReader(target reflect.Type) bool {
	return reflect.PointerTo(target).Implements(unmarshaler)
}

// fieldOf is the type of a field of an object, by its name in JSON; nil if there is none or it is not known.
func fieldOf(target reflect.Type, name string) reflect.Type {
	target = direct(target)
	switch {
	case target == nil || ownReader(target):
		return nil
	case target.Kind() == reflect.Map:
		return target.Elem()
	case target.Kind() != reflect.Struct:
		return nil
	}
	for i := range target.NumField() {
		f := target.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if tag == name {
			return f.Type
		}
		if tag == "" && f.Anonymous {
			if found := fieldOf(f.Type, name); found != nil {
				return found
			}
		}
	}
	return nil
}

// elementOf is the type of the items of a list; nil if it is not known.
func elementOf(target reflect.Type) reflect.Type {
	target = direct(target)
	if target == nil || target.Kind() != reflect.Slice || ownReader(target) {
		return nil
	}
	return target.Elem()
}

// typedAs makes of a text what the target has in its place.
func typedAs(text string, target reflect.Type) (any, error) {
	target = direct(target)
	switch {
	case target == nil:
		return text, nil
	case target == intOrString:
		// A text of digits is no name of a port.
		if number, err := strconv.ParseInt(text, 10, 32); err == nil {
			return number, nil
		}
		return text, nil
	case ownReader(target):
		return text, nil
	}
	switch target.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		number, err := strconv.ParseInt(text, 10, target.Bits())
		if err != nil {
			return nil, fmt.Errorf("renders to %q, which is no number; a key that begins with ? is left out where there is none", shorten(text))
		}
		return number, nil
	case reflect.Bool:
		if text != "true" && text != "false" {
			return nil, fmt.Errorf("renders to %q, which is neither true nor false; a key that begins with ? is left out where there is none", shorten(text))
		}
		return text == "true", nil
	default:
		return text, nil
	}
}

// plain makes of a value of Go what templates see: texts, numbers, true and false, lists and maps, without methods. Maps that are made of
// structs have the fields' names in Go. What is not set is nil.
func plain(value reflect.Value) any {
	switch value.Kind() {
	case reflect.Pointer, reflect.Interface:
		if value.IsNil() {
			return nil
		}
		return plain(value.Elem())
	case reflect.Struct:
		object := map[string]any{}
		for i := range value.NumField() {
			if f := value.Type().Field(i); f.IsExported() {
				object[f.Name] = plain(value.Field(i))
			}
		}
		return object
	case reflect.Map:
		object := map[string]any{}
		for _, key := range value.MapKeys() {
			object[key.String()] = plain(value.MapIndex(key))
		}
		return object
	case reflect.Slice:
		list := make([]any, 0, value.Len())
		for i := range value.Len() {
			list = append(list, plain(value.Index(i)))
		}
		return list
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return value.Int()
	case reflect.Bool:
		return value.Bool()
	case reflect.String:
		return value.String()
	default:
		return nil
	}
}
