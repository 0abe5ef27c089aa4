package reflection

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// offeringProvider offers classes.
var offeringProvider = Provider{IngressClass: "public", LoadBalancerClass: "milan.example.org/lb"}

// goldenInputs are what golden files are translated with; others get the plain input.
var goldenInputs = map[string]func(*Input){
	"service/loadbalancerclass": func(in *Input) { in.Provider = offeringProvider },
	"service/nodeportclass":     func(in *Input) { in.Provider = offeringProvider },
	"ingress/class":             func(in *Input) { in.Provider = offeringProvider },
}

// TestTranslateGolden shows what becomes of objects: testdata/KIND/NAME.yaml is the local object, NAME.remote.yaml the
// remote one, or why there is none.
func TestTranslateGolden(t *testing.T) {
	for _, kind := range []string{"service", "ingress"} {
		files, err := filepath.Glob(filepath.Join("testdata", kind, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no golden files of kind %s: %v", kind, err)
		}
		for _, file := range files {
			name, isInput := strings.CutSuffix(filepath.Base(file), ".yaml")
			if !isInput || strings.HasSuffix(name, ".remote") {
				continue
			}
			t.Run(kind+"/"+name, func(t *testing.T) { goldenCase(t, kind, name, file) })
		}
	}
}

func goldenCase(t *testing.T, kindName, name, file string) {
	kind, known := Lookup(kindName)
	if !known {
		t.Fatalf("no kind %q", kindName)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	local := kind.NewObject()
	if err := yaml.UnmarshalStrict(raw, local); err != nil {
		t.Fatal(err)
	}
	in := Input{Local: local, Home: "rome", Remote: "milan", RemoteNamespace: "shop-rome"}
	if adjust := goldenInputs[kindName+"/"+name]; adjust != nil {
		adjust(&in)
	}
	before := local.DeepCopyObject()
	result := kind.Translate(in)
	if diff := cmp.Diff(before, local); diff != "" {
		t.Errorf("the local object was changed: %s", diff)
	}
	var value any = result.Apply
	if result.Skip != nil {
		value = result.Skip
	}
	goldenPod(t, strings.TrimSuffix(file, ".yaml")+".remote.yaml", value)
}
