package reflection

import (
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func init() {
	// The flag is shared by all golden tests of the package.
	if flag.Lookup("update") == nil {
		flag.Bool("update", false, "write golden files")
	}
}

func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// golden compares a value, as YAML, with a file of testdata.
func goldenPod(t *testing.T, file string, value any) {
	t.Helper()
	got, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if updating() {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func readPod(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(raw, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

// inputs of golden files by name; others get the plain one.
var podInputs = map[string]PodInput{
	"patched": {
		Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome",
		Patch: &offloadingv1beta1.OffloadingPatch{
			NodeSelector: map[string]string{"pool": "guests"},
			Tolerations:  []corev1.Toleration{{Key: "guests", Operator: corev1.TolerationOpExists}},
			Affinity: &offloadingv1beta1.Affinity{NodeAffinity: &offloadingv1beta1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "zone", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}}}},
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 7, Preference: corev1.NodeSelectorTerm{
					MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "disk", Operator: corev1.NodeSelectorOpExists}}}}}}},
			LabelsNotReflected: []string{"team"}, AnnotationsNotReflected: []string{"secret-note"},
			RuntimeClassName: ptr.To("gvisor"),
		},
		NotReflected: NotReflected{Labels: []string{"cost"}},
	},
	"claims": {
		Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome",
		Claims: map[string]string{"data": "data-there", "p-scratch": "p-scratch"},
	},
	"spread":       lessCost,
	"replicas":     lessCost,
	"home":         atHome(HomeAPI{Enabled: true, Host: "api.rome.example", Port: "6443"}),
	"homealias":    atHome(HomeAPI{Enabled: true, Address: netip.MustParseAddr("10.70.0.1")}),
	"homenowhere":  atHome(HomeAPI{Enabled: true}),
	"homedisabled": atHome(HomeAPI{Enabled: true, Host: "api.rome.example"}),
}

// lessCost keeps the label cost at home.
var lessCost = PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome", NotReflected: NotReflected{Labels: []string{"cost"}}}

func atHome(api HomeAPI) PodInput {
	return PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome", API: api}
}

// TestShadowPodGolden shows what becomes of pods: NAME.yaml is the local pod, NAME.shadow.yaml its ShadowPod or refusal.
func TestShadowPodGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/pod/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tested := 0
	for _, file := range files {
		name, isInput := strings.CutSuffix(filepath.Base(file), ".yaml")
		if !isInput || strings.HasSuffix(name, ".shadow") {
			continue
		}
		tested++
		t.Run(name, func(t *testing.T) {
			in, special := podInputs[name]
			if !special {
				in = PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome"}
			}
			local := readPod(t, file)
			before := local.DeepCopy()
			shadow, refusal := ShadowPod(local, in)
			if diff := cmp.Diff(before, local); diff != "" {
				t.Errorf("the local pod was changed:\n%s", diff)
			}
			out := strings.TrimSuffix(file, ".yaml") + ".shadow.yaml"
			if refusal != nil {
				goldenPod(t, out, map[string]any{"refused": refusal})
				return
			}
			goldenPod(t, out, shadow)
			if changes := slices.Concat(ShadowPodChanges(shadow, shadow), ShadowPodTolerations(shadow, shadow)); len(changes) != 0 {
				t.Errorf("an unchanged ShadowPod has changes: %v", changes)
			}
		})
	}
	if tested == 0 {
		t.Fatal("there are no golden pods")
	}
}

// TestOrdinaryShadowPodsAreAccepted: what an honest consumer makes of ordinary pods, the strictest provider takes.
func TestOrdinaryShadowPodsAreAccepted(t *testing.T) {
	for _, name := range []string{"deployment", "antiaffinity", "propagate", "spread", "replicas", "hostspaces", "job", "home", "homealias", "homenowhere"} {
		in, special := podInputs[name]
		if !special {
			in = PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome"}
		}
		shadow, refusal := ShadowPod(readPod(t, "testdata/pod/"+name+".yaml"), in)
		if refusal != nil {
			t.Errorf("%s: %s", name, refusal.Message)
			continue
		}
		if errs := CheckShadowPod(&shadow.Spec.Pod, Rules{}); len(errs) > 0 {
			t.Errorf("%s: %v", name, errs)
		}
	}
}

// The size comes on its own, and with nothing else.
func TestShadowPodResize(t *testing.T) {
	in := PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome"}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"nothing":     {func(*corev1.Pod) {}, nil},
		"an image":    {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "shop:2" }, nil},
		"more memory": {func(p *corev1.Pod) { setRequest(p, "memory", "3Gi") }, []string{"spec.pod.containers"}},
		"the same amount in other words": {func(p *corev1.Pod) {
			for name, quantity := range p.Spec.Containers[0].Resources.Requests {
				setRequest(p, name, quantity.AsDec().String())
			}
		}, nil},
		"a limit": {func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("7")}
		}, []string{"spec.pod.containers"}},
		"a limit of an init container": {func(p *corev1.Pod) {
			p.Spec.InitContainers[0].Resources.Limits = corev1.ResourceList{"cpu": resource.MustParse("7")}
		}, []string{"spec.pod.initContainers"}},
		"a limit of the pod": {func(p *corev1.Pod) {
			p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("7")}}
		}, []string{"spec.pod.resources"}},
	} {
		t.Run(name, func(t *testing.T) {
			local := readPod(t, "testdata/pod/deployment.yaml")
			setRequest(local, "cpu", "1500m")
			live, refusal := ShadowPod(local, in)
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			live.Spec.Pod.Containers[0].Image = "shop:provider"
			tc.change(local)
			wanted, refusal := ShadowPod(local, in)
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			var got []string
			for _, c := range ShadowPodResize(live, wanted) {
				got = append(got, strings.Join(c.Path, "."))
				if list, ok := c.Value.([]corev1.Container); ok && c.Path[2] == "containers" && list[0].Image != "shop:provider" {
					t.Errorf("the image becomes %s", list[0].Image)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func setRequest(p *corev1.Pod, name corev1.ResourceName, quantity string) {
	if p.Spec.Containers[0].Resources.Requests == nil {
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{}
	}
	p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse(quantity)
}

func TestShadowPodChanges(t *testing.T) {
	in := PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome"}
	for name, tc := range map[string]struct {
		change func(*corev1.Pod)
		want   []string
	}{
		"nothing":         {func(*corev1.Pod) {}, nil},
		"a label":         {func(p *corev1.Pod) { p.Labels["new"] = "x" }, []string{"metadata.labels.new", "metadata.annotations.offloading.liqo.io/reflected-keys"}},
		"a label's value": {func(p *corev1.Pod) { p.Labels["app"] = "x" }, []string{"metadata.labels.app"}},
		"an image":        {func(p *corev1.Pod) { p.Spec.Containers[0].Image = "shop:2" }, []string{"spec.pod.containers"}},
		"another size":    {func(p *corev1.Pod) { setRequest(p, "memory", "3Gi") }, []string{"spec.pod.containers"}},
		"two debuggers": {func(p *corev1.Pod) {
			p.Spec.EphemeralContainers = append(debugger(), debugger()[0])
			p.Spec.EphemeralContainers[1].Name = "e"
		}, []string{"spec.pod.ephemeralContainers", "spec.pod.ephemeralContainers"}},
		"an init image":                {func(p *corev1.Pod) { p.Spec.InitContainers[0].Image = "init:2" }, []string{"spec.pod.initContainers"}},
		"a deadline":                   {func(p *corev1.Pod) { p.Spec.ActiveDeadlineSeconds = ptr.To[int64](5) }, []string{"spec.pod.activeDeadlineSeconds"}},
		"an added toleration":          {func(p *corev1.Pod) { p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: "x"}) }, []string{"spec.pod.tolerations"}},
		"a field that may not change":  {func(p *corev1.Pod) { p.Spec.Containers[0].Command = []string{"x"} }, nil},
		"a label of this cluster only": {func(p *corev1.Pod) { p.Labels[offloadingv1beta1.RemoteUnavailableLabel] = "true" }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			local := readPod(t, "testdata/pod/deployment.yaml")
			live, refusal := ShadowPod(local, in)
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			live.Labels[offloadingv1beta1.CreatorUserLabel] = "provider"
			tc.change(local)
			wanted, refusal := ShadowPod(local, in)
			if refusal != nil {
				t.Fatal(refusal.Message)
			}
			slim := live.DeepCopy()
			SlimShadowPod(slim)
			for kept, shadow := range map[string]*offloadingv1beta1.ShadowPod{"all": live, "what a cache holds": slim} {
				var got []string
				for _, c := range slices.Concat(ShadowPodChanges(shadow, wanted), ShadowPodTolerations(shadow, wanted), ShadowPodDebuggers(shadow, wanted),
					ShadowPodResize(shadow, wanted)) {
					got = append(got, strings.Join(c.Path, "."))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("with %s of the ShadowPod: %s", kept, diff)
				}
			}
		})
	}
}
