package compat

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

var (
	// fact is one of those in the last column of the table, such as enum=A|B; a value may have spaces.
	fact = regexp.MustCompile(`(\w+)=(.*?)( \w+=|$)`)
	step = regexp.MustCompile(`[^.\[\]{}]+|\[\]|\{\}`)
)

// facts reads the last column of the table.
func facts(text string) map[string]string {
	found := map[string]string{}
	for text != "" {
		place := fact.FindStringSubmatchIndex(text)
		if place == nil {
			break
		}
		found[text[place[2]:place[3]]] = text[place[4]:place[5]]
		text = strings.TrimSpace(text[place[5]:])
	}
	return found
}

// definitions are the CustomResourceDefinitions that the chart installs, by group and kind.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "charts/liqo/charts/liqo-crds/files/*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(content, crd); err != nil {
			t.Fatalf("reading %s: %v", file, err)
		}
		found[crd.Spec.Group+"/"+crd.Spec.Names.Kind] = crd
	}
	return found
}

// Users of Liqo v1 find its kinds with all names, short names, columns and fields that they know.
func TestKindsAreThoseOfV1(t *testing.T) {
	known, table := definitions(t), rows(t, "kinds.tsv", 5)
	kinds, missing := 0, 0
	var differences []string
	for _, row := range table {
		kind, version, field, sort, constraints := row[0], row[1], row[2], row[3], row[4]
		crd, found := known[kind]
		var unlike []string
		switch {
		case field == "(kind)" && !found:
			kinds, missing, unlike = kinds+1, missing+1, []string{""}
		case field == "(kind)":
			kinds, unlike = kinds+1, unlikeKind(crd, version, sort, facts(constraints))
		case found:
			unlike = unlikeField(&crd.Spec.Versions[0], field, sort, constraints)
		}
		for _, difference := range unlike {
			differences = append(differences, strings.TrimSpace(kind+" "+difference))
		}
	}
	t.Logf("of %d kinds of Liqo v1.2, %d are missing; of the fields of the others %d differ", kinds, missing, len(differences)-missing)
	exceptions{"kinds-exceptions.tsv", 32}.explain(t, len(table), differences)
}

// GeneveTunnels mean nothing here. Each says so, by the default of its status, whoever makes it and with whatever status.
func TestAGeneveTunnelSaysThatItMeansNothing(t *testing.T) {
	definition, schema := definitions(t)["networking.liqo.io/GeneveTunnel"], &apiextensions.JSONSchemaProps{}
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, schema, nil)
	if err != nil {
		t.Fatal(err)
	}
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		t.Fatal(err)
	}
	for sentence, status := range map[string]any{
		"one of Liqo v1": nil, "one with a status of its own": map[string]any{}, "one with no conditions": map[string]any{"conditions": nil},
	} {
		t.Run(sentence, func(t *testing.T) {
			object := map[string]any{"spec": map[string]any{"id": int64(1)}}
			if status != nil {
				object["status"] = status
			}
			defaulting.PruneNonNullableNullsWithoutDefaults(object, structural)
			defaulting.Default(object, structural)
			tunnel := &networkingv1beta1.GeneveTunnel{}
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, tunnel); err != nil {
				t.Fatal(err)
			}
			all := tunnel.Status.Conditions
			if len(all) != 1 || all[0].Type != networkingv1beta1.EffectiveCondition || all[0].Status != "False" || all[0].Reason != networkingv1beta1.ReasonWithoutEffect {
				t.Errorf("it says %v", all)
			}
		})
	}
}

// unlikeKind tells what of a kind's names, scope, sub-resources and columns is not as in v1. There may be more columns.
func unlikeKind(crd *apiextensionsv1.CustomResourceDefinition, version, scope string, want map[string]string) (differences []string) {
	compare := func(what, want, got string) {
		if want != got {
			differences = append(differences, fmt.Sprintf("%s: %q, not %q", what, got, want))
		}
	}
	served := crd.Spec.Versions[0]
	compare("version", version, served.Name)
	compare("scope", scope, string(crd.Spec.Scope))
	compare("plural", want["plural"], crd.Spec.Names.Plural)
	compare("short names", want["short"], strings.Join(crd.Spec.Names.ShortNames, ","))
	compare("categories", want["categories"], strings.Join(crd.Spec.Names.Categories, ","))
	subresources := ""
	if served.Subresources != nil && served.Subresources.Status != nil {
		subresources = "status"
	}
	compare("sub-resources", want["subresources"], subresources)
	columns := map[string]string{}
	for _, column := range served.AdditionalPrinterColumns {
		columns[column.Name] = strings.ReplaceAll(column.JSONPath, "'", `"`)
	}
	for _, column := range strings.Split(want["columns"], ";") {
		if name, path, ok := strings.Cut(column, ":"); ok {
			compare("column "+name, path, columns[strings.TrimSpace(name)])
		}
	}
	return differences
}

// unlikeField tells what of a field is not as in v1. What only we write, in a status, may have other defaults, and be there always.
func unlikeField(version *apiextensionsv1.CustomResourceDefinitionVersion, field, sort, constraints string) (differences []string) {
	schema, required, open := lookUp(version.Schema.OpenAPIV3Schema, field)
	if open {
		return nil
	}
	if schema == nil {
		return []string{field}
	}
	got := schema.Type
	if schema.XIntOrString {
		got = "int-or-string"
	}
	if got != sort {
		differences = append(differences, fmt.Sprintf("%s: type %s, not %s", field, got, sort))
	}
	input, want := strings.HasPrefix(field, "spec."), facts(constraints)
	if input && required && !slices.Contains(strings.Fields(constraints), "required") {
		differences = append(differences, field)
	}
	words := map[string]bool{}
	for _, word := range schema.Enum {
		var text string
		if err := json.Unmarshal(word.Raw, &text); err != nil {
			text = string(word.Raw)
		}
		words[text] = true
	}
	if input && len(words) > 0 && want["enum"] == "" {
		differences = append(differences, field+" of")
	}
	for _, word := range strings.Split(want["enum"], "|") {
		if word != "" && len(words) > 0 && !words[word] {
			differences = append(differences, field+" "+word)
		}
	}
	if fallback := want["default"]; input && fallback != "" && (schema.Default == nil || string(schema.Default.Raw) != fallback) {
		differences = append(differences, field+": not by default "+fallback)
	}
	return differences
}

// lookUp finds a field, as a path such as spec.list[].field or spec.map{}, and tells whether it is required. A field is open if it lies in
// an object that takes everything.
func lookUp(schema *apiextensionsv1.JSONSchemaProps, path string) (found *apiextensionsv1.JSONSchemaProps, required, open bool) {
	for _, name := range step.FindAllString(path, -1) {
		if schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields && len(schema.Properties) == 0 {
			return nil, false, true
		}
		var next *apiextensionsv1.JSONSchemaProps
		required = false
		switch field, ok := schema.Properties[name]; {
		case name == "[]" && schema.Items != nil:
			next = schema.Items.Schema
		case name == "{}" && schema.AdditionalProperties != nil:
			next = schema.AdditionalProperties.Schema
		case ok:
			next, required = &field, slices.Contains(schema.Required, name)
		}
		if next == nil {
			return nil, false, false
		}
		schema = next
	}
	return schema, required, false
}
