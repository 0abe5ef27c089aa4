package architecture

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// examplesFolder holds the manifests that pages show and the end-to-end tests apply, a folder per topic; docs/<topic>.md is
// the topic's page.
const examplesFolder = "docs/examples"

var topics = []string{"reflection", "pods", "storage", "serviceaccounts"}

// shown is a manifest in a page, under the link to its file.
var shown = regexp.MustCompile("(?s)(?:^|\n)\\[(examples/[a-z/-]+\\.yaml)\\]\\((examples/[a-z/-]+\\.yaml)\\):\n\n```yaml\n(.*?)```\n")

// A page shows each example of its topic once, as it is in the file, and no manifest besides.
func TestPagesShowTheExamplesThatAreTested(t *testing.T) {
	for _, topic := range topics {
		t.Run(topic, func(t *testing.T) {
			page := readPage(t, topic)
			var pictured []string
			for _, match := range shown.FindAllStringSubmatch(page, -1) {
				label, link, manifest := match[1], match[2], match[3]
				if label != link {
					t.Errorf("the link called %s leads to %s", label, link)
				}
				content, err := os.ReadFile(filepath.Join(root, "docs", link))
				if err != nil {
					t.Errorf("reading what the page shows: %v", err)
				} else if diff := cmp.Diff(string(content), manifest); diff != "" {
					t.Errorf("%s and what the page shows of it differ (-file +page):\n%s", link, diff)
				}
				pictured = append(pictured, link)
			}
			slices.Sort(pictured)
			if diff := cmp.Diff(files(t, filepath.Join(examplesFolder, topic)), pictured); diff != "" {
				t.Errorf("the page and its folder of examples hold different ones (-folder +page):\n%s", diff)
			}
			if blocks := strings.Count(page, "\n```yaml"); blocks != len(pictured) {
				t.Errorf("the page has %d manifests, %d of them under the link to their file", blocks, len(pictured))
			}
		})
	}
}

func readPage(t *testing.T, topic string) string {
	t.Helper()
	return readFile(t, "docs/"+topic+".md")
}

// readFile returns the text of a file, named from the repository's root.
func readFile(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// files lists the manifests below a folder, as links from docs/, in order.
func files(t *testing.T, folder string) []string {
	t.Helper()
	var found []string
	for _, file := range repositoryFiles(t) {
		if strings.HasPrefix(file, folder+"/") {
			found = append(found, strings.TrimPrefix(file, "docs/"))
		}
	}
	slices.Sort(found)
	return found
}

// Every example is what Kubernetes takes: a known kind without unknown or repeated fields, with a name, in the namespace
// that it is applied to.
func TestExamplesAreValid(t *testing.T) {
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(offloadingv1beta1.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	examples := files(t, examplesFolder)
	if len(examples) == 0 {
		t.Fatal("there are no examples")
	}
	var offenders []string
	for _, example := range examples {
		for i, document := range documents(t, example) {
			if err := check(decoder, document); err != nil {
				offenders = append(offenders, fmt.Sprintf("%s, document %d: %v", example, i+1, err))
			}
		}
	}
	report(t, "an example is a manifest that Kubernetes takes as it is", offenders)
}

// documents splits a file into its manifests.
func documents(t *testing.T, example string) (all [][]byte) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "docs", example))
	if err != nil {
		t.Fatal(err)
	}
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(content)))
	for {
		document, err := reader.Read()
		switch {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("splitting %s: %v", example, err)
		}
		all = append(all, document)
	}
}

func check(decoder runtime.Decoder, document []byte) error {
	object, _, err := decoder.Decode(document, nil, nil)
	if err != nil {
		return err
	}
	meta, ok := object.(interface {
		GetName() string
		GetNamespace() string
	})
	switch {
	case !ok || meta.GetName() == "":
		return errors.New("it has no name")
	case meta.GetNamespace() != "":
		return fmt.Errorf("it is bound to namespace %s; leave the namespace to whoever applies it", meta.GetNamespace())
	default:
		return nil
	}
}

// An example that no test applies may be wrong without anybody noticing.
func TestExamplesAreApplied(t *testing.T) {
	var tests strings.Builder
	for _, file := range repositoryFiles(t) {
		if strings.HasPrefix(file, "test/e2e/") && strings.HasSuffix(file, "_test.go") {
			tests.WriteString(readFile(t, file))
		}
	}
	var offenders []string
	for _, example := range files(t, examplesFolder) {
		if !strings.Contains(tests.String(), `"`+strings.TrimPrefix(example, "examples/")+`"`) {
			offenders = append(offenders, example)
		}
	}
	report(t, "the end-to-end tests apply every example", offenders)
}

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
