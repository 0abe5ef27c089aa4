package architecture

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

// Examples of our own kinds are what their definitions take: values of enumerations, lengths, patterns.
func TestExamplesFitTheirDefinitions(t *testing.T) {
	checked := 0
	var offenders []string
	for _, example := range files(t, examplesFolder) {
		for i, document := range documents(t, example) {
			if !bytes.Contains(document, []byte(".liqo.io/v1")) {
				continue
			}
			var object map[string]any
			if err := yaml.Unmarshal(document, &object); err != nil {
				t.Fatalf("%s, document %d: %v", example, i+1, err)
			}
			checked++
			for _, problem := range validation.ValidateCustomResource(nil, object, definition(t, fmt.Sprint(object["kind"]))) {
				offenders = append(offenders, fmt.Sprintf("%s, document %d: %v", example, i+1, problem))
			}
		}
	}
	if checked == 0 {
		t.Fatal("no example is of a kind of ours")
	}
	report(t, "an example fits the definition of its kind", offenders)
}

// definition checks objects of one of our kinds.
func definition(t *testing.T, kind string) validation.SchemaValidator {
	t.Helper()
	for _, file := range repositoryFiles(t) {
		if !strings.HasPrefix(file, "charts/liqo/charts/liqo-crds/files/") {
			continue
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(readFile(t, file)), crd); err != nil {
			t.Fatal(err)
		}
		if crd.Spec.Names.Kind != kind {
			continue
		}
		schema := &apiextensions.JSONSchemaProps{}
		if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(crd.Spec.Versions[0].Schema.OpenAPIV3Schema, schema, nil); err != nil {
			t.Fatalf("reading the schema of %s: %v", file, err)
		}
		validator, _, err := validation.NewSchemaValidator(schema)
		if err != nil {
			t.Fatalf("preparing the schema of %s: %v", file, err)
		}
		return validator
	}
	t.Fatalf("there is no definition of kind %s", kind)
	return nil
}
