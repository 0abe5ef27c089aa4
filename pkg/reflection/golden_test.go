package reflection

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// offeringProvider offers classes.
var offeringProvider = Provider{IngressClass: "public", LoadBalancerClass: "milan.example.org/lb"}

// goldenInputs are what golden files are translated with; others get the plain input.
var goldenInputs = map[string]func(*Input){
	"service/loadbalancerclass": func(in *Input) { in.Provider = offeringProvider },
	"service/nodeportclass":     func(in *Input) { in.Provider = offeringProvider },
	"ingress/class":             func(in *Input) { in.Provider = offeringProvider },
	"configmap/unused":          func(in *Input) { in.Policy = offloadingv1beta1.Referenced },
	"networkpolicy/web":         withTwins,
	"secret/notallowed":         func(in *Input) { in.Policy = offloadingv1beta1.AllowList },
}

// TestTranslateGolden shows what becomes of objects: testdata/KIND/NAME.yaml is the local object, NAME.remote.yaml the
// remote one, or why there is none.
func TestTranslateGolden(t *testing.T) {
	for _, kind := range []string{"configmap", "secret", "service", "ingress", "networkpolicy"} {
		eachGolden(t, kind, func(t *testing.T, name, file string) { goldenCase(t, kind, name, file) })
	}
}

// TestRemoteClaimGolden shows what becomes of claims.
func TestRemoteClaimGolden(t *testing.T) {
	eachGolden(t, "persistentvolumeclaim", func(t *testing.T, _, file string) {
		local := &corev1.PersistentVolumeClaim{}
		readGolden(t, file, local)
		result := RemoteClaim(claimInput(func(in *ClaimInput) { in.Local, in.Name = local, local.Name }))
		goldenPod(t, strings.TrimSuffix(file, ".yaml")+".remote.yaml", outcome(result))
	})
}

// eachGolden runs a test for each input of a folder.
func eachGolden(t *testing.T, kind string, test func(t *testing.T, name, file string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", kind, "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden files of kind %s: %v", kind, err)
	}
	for _, file := range files {
		name, isInput := strings.CutSuffix(filepath.Base(file), ".yaml")
		if isInput && !strings.HasSuffix(name, ".remote") {
			t.Run(kind+"/"+name, func(t *testing.T) { test(t, name, file) })
		}
	}
}

func readGolden(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatal(err)
	}
}

// outcome is the remote object, or why there is none.
func outcome(result Result) any {
	if result.Skip != nil {
		return result.Skip
	}
	return result.Apply
}

func goldenCase(t *testing.T, kindName, name, file string) {
	kind, known := Lookup(kindName)
	if !known {
		t.Fatalf("no kind %q", kindName)
	}
	local := kind.NewObject()
	readGolden(t, file, local)
	in := Input{Local: local, Home: "rome", Remote: "milan", RemoteNamespace: "shop-rome"}
	if adjust := goldenInputs[kindName+"/"+name]; adjust != nil {
		adjust(&in)
	}
	before := local.DeepCopyObject()
	result := kind.Translate(in)
	if diff := cmp.Diff(before, local); diff != "" {
		t.Errorf("the local object was changed: %s", diff)
	}
	goldenPod(t, strings.TrimSuffix(file, ".yaml")+".remote.yaml", outcome(result))
}
