package architecture

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Why a kind is not quite as it was in Liqo v1.
const (
	nothingWithout = "without it, there is nothing to do"
	knownWords     = "another word would say nothing"
	noGeneve       = "there is no Geneve: nodes and gateways have VXLAN, with no object for each pair"
)

// unlike are all that a manifest for Liqo v1 may meet here, by kind and field: what is missing, and what is refused and was not.
var unlike = map[string]string{
	"networking.liqo.io/GeneveTunnel": noGeneve,

	"networking.liqo.io/GatewayServer spec.endpoint.serviceType ExternalName": "a Service of this type sends nothing to a gateway",

	"authentication.liqo.io/Identity spec.authParams":                          nothingWithout,
	"authentication.liqo.io/Identity spec.clusterID":                           nothingWithout,
	"authentication.liqo.io/Identity spec.type":                                nothingWithout,
	"authentication.liqo.io/Renew spec.consumerClusterID":                      nothingWithout,
	"authentication.liqo.io/Renew spec.csr":                                    nothingWithout,
	"authentication.liqo.io/Renew spec.identityType":                           nothingWithout,
	"authentication.liqo.io/Renew spec.publicKey":                              nothingWithout,
	"authentication.liqo.io/Tenant spec.clusterID":                             nothingWithout,
	"networking.liqo.io/Configuration spec.remote":                             nothingWithout,
	"networking.liqo.io/GatewayClient spec.endpoint":                           nothingWithout,
	"networking.liqo.io/GatewayClient spec.endpoint.addresses":                 nothingWithout,
	"networking.liqo.io/GatewayClient spec.endpoint.port":                      nothingWithout,
	"networking.liqo.io/GatewayServer spec.endpoint":                           nothingWithout,
	"networking.liqo.io/GatewayServer spec.endpoint.port":                      nothingWithout,
	"networking.liqo.io/PublicKey spec.publicKey":                              nothingWithout,
	"networking.liqo.io/RouteConfiguration spec.table":                         nothingWithout,
	"networking.liqo.io/WgGatewayClientTemplate spec.objectKind":               nothingWithout,
	"networking.liqo.io/WgGatewayClientTemplate spec.objectKind.apiVersion":    nothingWithout,
	"networking.liqo.io/WgGatewayClientTemplate spec.objectKind.kind":          nothingWithout,
	"networking.liqo.io/WgGatewayClientTemplate spec.template":                 nothingWithout,
	"networking.liqo.io/WgGatewayServerTemplate spec.objectKind":               nothingWithout,
	"networking.liqo.io/WgGatewayServerTemplate spec.objectKind.apiVersion":    nothingWithout,
	"networking.liqo.io/WgGatewayServerTemplate spec.objectKind.kind":          nothingWithout,
	"networking.liqo.io/WgGatewayServerTemplate spec.template":                 nothingWithout,
	"offloading.liqo.io/VirtualNode spec.clusterID":                            nothingWithout,
	"authentication.liqo.io/Renew spec.identityType of":                        knownWords,
	"networking.liqo.io/WgGatewayClientTemplate spec.objectKind.apiVersion of": knownWords,
	"networking.liqo.io/WgGatewayServerTemplate spec.objectKind.apiVersion of": knownWords,
	"offloading.liqo.io/ShadowEndpointSlice spec.template.addressType of":      knownWords,
	"offloading.liqo.io/VkOptionsTemplate spec.pullPolicy of":                  knownWords,
	"offloading.liqo.io/VkOptionsTemplate spec.reflectorsConfig{}.type of":     knownWords,

	"offloading.liqo.io/VirtualNode spec.offloadingPatch.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution": "an offloading patch has requirements, no preferences",
}

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

// Users of Liqo v1 find its kinds with all names, short names, columns and fields that they know. testdata/v1-kinds.tsv lists them.
func TestKindsAreThoseOfV1(t *testing.T) {
	known := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for kind, crd := range definitions(t) {
		known[crd.Spec.Group+"/"+kind] = crd
	}
	used := map[string]bool{}
	var offenders []string
	for _, row := range strings.Split(strings.TrimSuffix(readFile(t, "test/architecture/testdata/v1-kinds.tsv"), "\n"), "\n") {
		cells := strings.Split(row, "\t")
		if strings.HasPrefix(row, "#") {
			continue
		}
		if len(cells) != 5 {
			t.Fatalf("not a row of five cells: %q", row)
		}
		kind, version, field, sort, constraints := cells[0], cells[1], cells[2], cells[3], cells[4]
		crd, found := known[kind]
		var differences []string
		switch {
		case !found && field == "(kind)":
			differences = []string{""}
		case field == "(kind)":
			differences = unlikeKind(crd, version, sort, facts(constraints))
		default:
			differences = unlikeField(&crd.Spec.Versions[0], field, sort, constraints)
		}
		for _, difference := range differences {
			name := strings.TrimSpace(kind + " " + difference)
			if _, explained := unlike[name]; explained {
				used[name] = true
			} else {
				offenders = append(offenders, name)
			}
		}
	}
	for name := range unlike {
		if !used[name] {
			offenders = append(offenders, name+" is as it was in v1, and listed as different")
		}
	}
	slices.Sort(offenders)
	report(t, "a kind has the names, columns, fields, words and defaults of Liqo v1, and demands no more", offenders)
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
