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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// examplesFolder holds the manifests that pages show and the end-to-end tests apply, a folder per topic; docs/<topic>.md is
// the topic's page.
const examplesFolder = "docs/examples"

var topics = []string{"reflection", "pods", "storage", "serviceaccounts"}

// shown is a manifest in a page, under the link to its file.
var shown = regexp.MustCompile("(?s)(?:^|\n)\\[(examples/[a-z/-]+\\.yaml)\\]\\((examples/[a-z/-]+\\.yaml)\\):\n\n```yaml\n(.*?)```\n")

var (
	// manifest is a block of YAML in a page, and ofOurs a whole object of a kind of ours.
	manifest = regexp.MustCompile("(?s)\n```yaml\n(.*?)```")
	ofOurs   = regexp.MustCompile(`(?m)^apiVersion: \w+\.liqo\.io/`)
)

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

// Whole objects that pages show have no unknown or repeated fields either, whichever kind they are of.
func TestObjectsInPagesAreValid(t *testing.T) {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(clientgoscheme.AddToScheme, corev1beta1.AddToScheme, authv1beta1.AddToScheme,
		offloadingv1beta1.AddToScheme, networkingv1beta1.AddToScheme, ipamv1alpha1.AddToScheme)
	utilruntime.Must(builder.AddToScheme(scheme))
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	checked := 0
	var offenders []string
	for _, page := range pages(t) {
		text := readFile(t, page)
		for _, block := range manifest.FindAllStringSubmatchIndex(text, -1) {
			for _, document := range strings.Split(text[block[2]:block[3]], "\n---\n") {
				if !strings.HasPrefix(document, "apiVersion: ") {
					continue
				}
				checked++
				if _, _, err := decoder.Decode([]byte(document), nil, nil); err != nil {
					offenders = append(offenders, fmt.Sprintf("%s:%d: %v", page, strings.Count(text[:block[2]], "\n")+1, err))
				}
			}
		}
	}
	if checked == 0 {
		t.Fatal("no page shows an object")
	}
	report(t, "an object in a page is one that Kubernetes takes as it is", offenders)
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

// Examples of our own kinds, in their folder and in pages, are what their definitions take: enumerations, lengths, patterns, and the rules
// between fields.
func TestExamplesFitTheirDefinitions(t *testing.T) {
	all, checked := definitions(t), 0
	var offenders []string
	check := func(where string, document []byte) {
		var object map[string]any
		if err := utilyaml.Unmarshal(document, &object); err != nil {
			offenders = append(offenders, fmt.Sprintf("%s: %v", where, err))
			return
		}
		kind := fmt.Sprint(object["kind"])
		if all[kind] == nil {
			offenders = append(offenders, fmt.Sprintf("%s: there is no kind %s", where, kind))
			return
		}
		checked++
		for _, problem := range judgeOf(t, all[kind].Spec.Versions[0].Schema.OpenAPIV3Schema, true)(object) {
			offenders = append(offenders, fmt.Sprintf("%s: %v", where, problem))
		}
	}
	for _, example := range files(t, examplesFolder) {
		for i, document := range documents(t, example) {
			if ofOurs.Match(document) {
				check(fmt.Sprintf("docs/%s, document %d", example, i+1), document)
			}
		}
	}
	for _, page := range pages(t) {
		text := readFile(t, page)
		for _, block := range manifest.FindAllStringSubmatchIndex(text, -1) {
			line := strings.Count(text[:block[2]], "\n") + 1
			for _, document := range strings.Split(text[block[2]:block[3]], "\n---\n") {
				if ofOurs.MatchString(document) {
					check(fmt.Sprintf("%s:%d", page, line), []byte(document))
				}
			}
		}
	}
	if checked == 0 {
		t.Fatal("no example is of a kind of ours")
	}
	report(t, "an example is what the API server takes by the definition of its kind", offenders)
}
