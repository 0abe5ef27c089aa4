package reflection

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// The bounds of a note of fields: how many it names, and how long it is, in bytes.
const (
	maxNoted = 8
	maxNote  = 512
)

// Missing compares a live object with the wanted one where changes say that the two differ. fields are the names of the fields that
// are set in the wanted object and not in the live one, in order and without the numbers of list entries, such as
// spec.ports[].appProtocol; rest is the wanted object without them. What is in a map is content, not a field: nobody's API server
// drops it because it does not know it.
func Missing(live, wanted Object, changes []Change) (fields []string, rest Object) {
	rest = wanted.DeepCopyObject().(Object)
	c := &missing{}
	for _, change := range changes {
		if change.Value != nil && change.Path[0] != "metadata" {
			c.follow(reflect.ValueOf(live).Elem(), reflect.ValueOf(rest).Elem(), change.Path, "")
		}
	}
	slices.Sort(c.fields)
	return slices.Compact(c.fields), rest
}

// missing collects the fields that are missing, and empties them in what is wanted.
type missing struct{ fields []string }

// follow walks along a path of field names and compares what is at its end.
func (m *missing) follow(live, wanted reflect.Value, path []string, name string) {
	for len(path) > 0 {
		if wanted.Kind() == reflect.Pointer {
			if wanted.IsNil() || live.IsNil() {
				return
			}
			live, wanted = live.Elem(), wanted.Elem()
		}
		i, there := fieldNamed(wanted, path[0])
		if !there {
			return
		}
		name = strings.TrimPrefix(name+"."+path[0], ".")
		live, wanted, path = live.Field(i), wanted.Field(i), path[1:]
		if m.field(live, wanted, name) {
			return
		}
	}
	m.compare(live, wanted, name)
}

// field tells whether a field is set in what is wanted only, and empties it there.
func (m *missing) field(live, wanted reflect.Value, name string) bool {
	if wanted.IsZero() || !live.IsZero() || wanted.Kind() == reflect.Map {
		return false
	}
	m.fields = append(m.fields, name)
	wanted.SetZero()
	return true
}

// compare looks for missing fields in two values that are both there.
func (m *missing) compare(live, wanted reflect.Value, name string) {
	if _, leaf := wanted.Addr().Interface().(json.Marshaler); leaf {
		return
	}
	switch wanted.Kind() {
	case reflect.Pointer:
		if !live.IsNil() && !wanted.IsNil() {
			m.compare(live.Elem(), wanted.Elem(), name)
		}
	case reflect.Slice:
		for i := range wanted.Len() {
			if live.Len() == wanted.Len() {
				m.compare(live.Index(i), wanted.Index(i), name+"[]")
			}
		}
	case reflect.Struct:
		for i := range wanted.NumField() {
			below := name
			if step := fieldName(wanted.Type().Field(i)); step != "" {
				below += "." + step
			}
			if !m.field(live.Field(i), wanted.Field(i), below) {
				m.compare(live.Field(i), wanted.Field(i), below)
			}
		}
	}
}

func fieldNamed(in reflect.Value, name string) (index int, there bool) {
	if in.Kind() != reflect.Struct {
		return 0, false
	}
	for i := range in.NumField() {
		if fieldName(in.Type().Field(i)) == name {
			return i, true
		}
	}
	return 0, false
}

// fieldName is how a field is called in JSON; empty for one whose own fields stand in its place.
func fieldName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// NoteOf is the note of missing fields that an object carries; empty if there is none, or none of ours.
func NoteOf(object Object) string {
	return noteIn(object, offloadingv1beta1.DroppedFieldsAnnotation)
}

// RefusedPartOf is the note of a part that was given up, which an object carries; empty if there is none, or none of ours.
func RefusedPartOf(object Object) string {
	return noteIn(object, offloadingv1beta1.RefusedPartAnnotation)
}

func noteIn(object Object, annotation string) string {
	if note := object.GetAnnotations()[annotation]; len(note) <= maxNote {
		return note
	}
	return ""
}

// NoteFor is the note that names fields.
func NoteFor(fields []string) string {
	note := strings.Join(fields[:min(len(fields), maxNoted)], ", ")
	if len(note) > maxNote-32 {
		note = strings.ToValidUTF8(note[:maxNote-32], "")
	}
	if more := len(fields) - maxNoted; more > 0 {
		note += fmt.Sprintf(" and %d more", more)
	}
	return note
}

// Noted is a wanted object with a note; an empty one adds none.
func Noted(wanted Object, note string) Object {
	return annotated(wanted, offloadingv1beta1.DroppedFieldsAnnotation, note)
}

// WithoutPart is what is wanted of an object after a part was given up, with a note of that.
func WithoutPart(relaxed Object, given string) Object {
	return annotated(relaxed, offloadingv1beta1.RefusedPartAnnotation, given)
}

func annotated(wanted Object, annotation, note string) Object {
	if note == "" {
		return wanted
	}
	noted := wanted.DeepCopyObject().(Object)
	annotations := noted.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, offloadingv1beta1.ReflectedKeysAnnotation)
	annotations[annotation] = note
	noted.SetAnnotations(annotations)
	recordKeys(noted)
	return noted
}
