package artifact

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/yaml"

	"liqo.io/liqo/pkg/webhook/weight"
)

// elementsFile is read by the chart, which makes an admission policy of it.
const elementsFile = "charts/liqo/files/elements.yaml"

// bounded is a kind that consumers write, as the chart reads it.
type bounded struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
	Most     int    `json:"most"`
	Vital    bool   `json:"vital,omitempty"`
	// Elements is a CEL expression that counts those of 'object'.
	Elements string `json:"elements"`
}

func renderElements(context.Context, Options) (Set, error) {
	var kinds []bounded
	for _, b := range weight.Bounds() {
		counts, err := elements(reflect.TypeOf(b.Kind).Elem(), "object", 'a', b.Most)
		if err != nil {
			return Set{}, fmt.Errorf("counting the elements of %s: %w", b.Resource, err)
		}
		kinds = append(kinds, bounded{b.Group, b.Resource, b.Most, b.Vital, strings.Join(counts, " + ")})
	}
	content, err := yaml.Marshal(kinds)
	if err != nil {
		return Set{}, fmt.Errorf("writing %s: %w", elementsFile, err)
	}
	const head = "# Made by 'make generate' from the kinds that consumers write: how many elements an object may have, and how they are counted.\n"
	content = append([]byte(head), content...)
	return Set{Files: map[string][]byte{elementsFile: content}}, nil
}

// elements gives a CEL expression for each array and map below a struct. path leads to the struct, variable is the first name that is free,
// most is how many there may be.
func elements(t reflect.Type, path string, variable rune, most int) ([]string, error) {
	var all []string
	for i := range t.NumField() {
		field := t.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		at := path + ".?" + name
		if name == "" {
			at = path // inlined
		}
		counts, err := elementsOf(field.Type, at, variable, most)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", field.Name, err)
		}
		all = append(all, counts...)
	}
	return all, nil
}

func elementsOf(t reflect.Type, path string, variable rune, most int) ([]string, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	// What writes itself, as quantities and times do, is a text or a number.
	if reflect.PointerTo(t).Implements(reflect.TypeFor[json.Marshaler]()) {
		return nil, nil
	}
	switch t.Kind() {
	case reflect.Struct:
		return elements(t, path, variable, most)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return nil, nil
		}
		inner, err := elementsOf(t.Elem(), string(variable), variable+1, most)
		if err != nil || len(inner) == 0 {
			return []string{"size(" + path + ".orValue([]))"}, err
		}
		// What is too long itself is not walked.
		list := path + ".orValue([])"
		return []string{fmt.Sprintf("(size(%s) > %d ? %d : %s.map(%c, 1 + %s).sum())", list, most, most+1, list, variable, strings.Join(inner, " + "))}, nil
	case reflect.Map:
		if inner, err := elementsOf(t.Elem(), string(variable), variable+1, most); err != nil || len(inner) > 0 {
			return nil, fmt.Errorf("a map of %s has elements that are not counted: %w", t.Elem(), err)
		}
		return []string{"size(" + path + ".orValue({}))"}, nil
	default:
		return nil, nil
	}
}
