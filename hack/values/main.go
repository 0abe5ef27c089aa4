// Command values writes what follows from the comments in charts/liqo/values.yaml, and from charts/liqo/files/compat.yaml for values of Liqo
// v1: the chart's schema, which refuses unknown keys, and the reference of all values.
//
// A comment "# -- text" describes the next key. After it may stand "# @enum a|b" (an empty word allows ""),
// "# @pattern regexp", "# @minimum n", "# @maximum n" and "# @nullable type"; "# @items what" for elements of a list and "# @values what" for
// values of a map, where what is string, toleration, name, class or a pattern. An empty map or a list of unknown
// elements is free-form without.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

type schema struct {
	Schema               string             `json:"$schema,omitempty"`
	Title                string             `json:"title,omitempty"`
	Description          string             `json:"description,omitempty"`
	Type                 any                `json:"type,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	AdditionalProperties any                `json:"additionalProperties,omitempty"`
	Required             []string           `json:"required,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	Enum                 []string           `json:"enum,omitempty"`
	Pattern              string             `json:"pattern,omitempty"`
	Minimum              *int               `json:"minimum,omitempty"`
	Maximum              *int               `json:"maximum,omitempty"`
}

// row is one value in the reference.
type row struct{ path, kind, value, text string }

func main() {
	check := len(os.Args) == 2 && os.Args[1] == "--check"
	if err := run(check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run writes the two files, or with check compares them with what stands there.
func run(check bool) error {
	chart := filepath.Join("charts", "liqo")
	raw, err := os.ReadFile(filepath.Join(chart, "values.yaml"))
	if err != nil {
		return fmt.Errorf("reading the chart's values: %w", err)
	}
	var document yaml.Node
	if err := yaml.Unmarshal(raw, &document); err != nil {
		return fmt.Errorf("parsing the chart's values: %w", err)
	}
	var rows []row
	root := object(document.Content[0], "", &rows)
	root.Schema, root.Title = "http://json-schema.org/draft-07/schema#", "Values of the chart liqo"
	// Helm passes these to every chart that has dependencies.
	root.Properties["global"] = &schema{Type: "object"}
	root.Properties["liqo-crds"] = &schema{Type: "object", Description: "Values of the sub-chart that owns the CustomResourceDefinitions."}
	root.child("liqo-crds").Properties["global"] = root.Properties["global"]
	v1, err := readCompat(chart)
	if err != nil {
		return err
	}
	if err := v1.extend(root); err != nil {
		return err
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(root); err != nil {
		return fmt.Errorf("rendering the schema: %w", err)
	}
	for path, content := range map[string][]byte{
		filepath.Join(chart, "values.schema.json"):      out.Bytes(),
		filepath.Join("docs", "reference", "values.md"): append(markdown(rows), v1.markdown()...),
	} {
		if err := settle(path, content, check); err != nil {
			return err
		}
	}
	return nil
}

// settle writes a generated file, or fails if it is stale.
func settle(path string, content []byte, check bool) error {
	if check {
		if live, err := os.ReadFile(path); err != nil || !bytes.Equal(live, content) {
			return fmt.Errorf("%s is stale: run 'make generate' and commit the result", path)
		}
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("making the folder of %s: %w", path, err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	return nil
}

// object turns a map of values into its schema and adds its leaves to the reference.
func object(node *yaml.Node, path string, rows *[]row) *schema {
	s := &schema{Type: "object"}
	if len(node.Content) == 0 {
		return s
	}
	s.AdditionalProperties, s.Properties = false, map[string]*schema{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		child := strings.TrimPrefix(path+"."+key.Value, ".")
		text, hints := comment(key.HeadComment)
		var property *schema
		if value.Kind == yaml.MappingNode && text == "" {
			property = object(value, child, rows)
		} else {
			property = leaf(value, hints)
			*rows = append(*rows, row{child, fmt.Sprint(property.Type), strings.TrimSpace(inline(value)), text})
		}
		property.Description = text
		s.Properties[key.Value] = property
	}
	return s
}

// leaf is the schema of a single value: of the type of its default.
func leaf(value *yaml.Node, hints map[string]string) *schema {
	types := map[string]string{"!!str": "string", "!!bool": "boolean", "!!int": "integer", "!!map": "object", "!!seq": "array", "!!float": "number"}
	s := &schema{Type: types[value.Tag], Pattern: hints["@pattern"]}
	if nullable, ok := hints["@nullable"]; ok {
		s.Type = []string{nullable, "null"}
	}
	if enum, ok := hints["@enum"]; ok {
		s.Enum = strings.Split(enum, "|")
	}
	if n, err := strconv.Atoi(hints["@minimum"]); err == nil {
		s.Minimum = &n
	}
	if n, err := strconv.Atoi(hints["@maximum"]); err == nil {
		s.Maximum = &n
	}
	if s.Type == "array" && len(value.Content) > 0 && value.Content[0].Kind == yaml.ScalarNode {
		s.Items = &schema{Type: "string"}
	}
	if what, ok := hints["@items"]; ok {
		s.Items = shape(what)
	}
	if what, ok := hints["@values"]; ok {
		s.AdditionalProperties = shape(what)
	}
	return s
}

// shape is the schema of an element of a list or map.
func shape(what string) *schema {
	text := &schema{Type: "string"}
	switch what {
	case "string":
		return text
	case "name":
		return &schema{Type: "object", AdditionalProperties: false, Required: []string{"name"}, Properties: map[string]*schema{
			"name": {Type: "string", Pattern: "^.+$"},
		}}
	case "class":
		return &schema{Type: "object", AdditionalProperties: false, Required: []string{"name"}, Properties: map[string]*schema{
			"name": {Type: "string", Pattern: "^.+$"}, "default": {Type: "boolean"},
		}}
	case "toleration":
		return &schema{Type: "object", AdditionalProperties: false, Properties: map[string]*schema{
			"key": text, "value": text, "operator": {Enum: []string{"Exists", "Equal", "Lt", "Gt"}},
			"effect": {Enum: []string{"", "NoSchedule", "PreferNoSchedule", "NoExecute"}}, "tolerationSeconds": {Type: "integer"},
		}}
	default:
		return &schema{Type: "string", Pattern: what}
	}
}

// comment splits a key's comment into its text and its hints.
func comment(head string) (string, map[string]string) {
	var text []string
	hints := map[string]string{}
	for _, line := range strings.Split(head, "\n") {
		line = strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(line), "#"))
		switch {
		case strings.HasPrefix(line, "@"):
			name, value, _ := strings.Cut(line, " ")
			hints[name] = value
		default:
			text = append(text, strings.TrimSpace(strings.TrimPrefix(line, "--")))
		}
	}
	return strings.TrimSpace(strings.Join(text, " ")), hints
}

// inline renders a default in one line of JSON, which is YAML too.
func inline(node *yaml.Node) string {
	var value any
	if err := node.Decode(&value); err != nil {
		return ""
	}
	out, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	return string(out)
}

func markdown(rows []row) []byte {
	var out bytes.Buffer
	out.WriteString("# Values of the chart\n\nGenerated from the comments in `charts/liqo/values.yaml` by `make generate`. " +
		"Keys that are not listed here are refused. " +
		"Values of Liqo v1 that have no effect here are [known, and listed below](#values-of-liqo-v1-that-have-no-effect).\n\n" +
		"| value | default | meaning |\n|---|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", r.path, strings.ReplaceAll(r.value, "|", "\\|"), strings.ReplaceAll(r.text, "|", "\\|"))
	}
	return out.Bytes()
}
