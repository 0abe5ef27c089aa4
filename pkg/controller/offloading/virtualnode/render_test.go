package virtualnode

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

var update = flag.Bool("update", false, "write the golden files")

func virtualNode() *offloadingv1beta1.VirtualNode {
	return &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan", UID: "vn-uid"},
		Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: "milan", KubeconfigSecretRef: &corev1.LocalObjectReference{Name: "kubeconfig-resourceslice-milan"}}}
}

func template() *offloadingv1beta1.VkOptionsTemplateSpec {
	return &offloadingv1beta1.VkOptionsTemplateSpec{CreateNode: true, ContainerImage: "example.org/virtual-kubelet:v1"}
}

func TestRender(t *testing.T) {
	full := template()
	full.MetricsEnabled, full.MetricsAddress = true, ":5872"
	full.ReflectorsConfig = map[string]offloadingv1beta1.ReflectorConfig{"pod": {NumWorkers: 10}, "secret": {NumWorkers: 3, Type: "AllowList"}, "service": {NumWorkers: 3, Type: "DenyList"}}
	full.Resources = corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("50m")}, Limits: corev1.ResourceList{"memory": resource.MustParse("256Mi")}}
	full.ExtraArgs, full.ExtraLabels, full.ExtraAnnotations = []string{"-v=4"}, map[string]string{"team": "infra"}, map[string]string{"note": "x"}
	full.Replicas, full.PullPolicy, full.ImagePullSecrets = ptr.To[int32](2), corev1.PullAlways, []corev1.LocalObjectReference{{Name: "pull"}}
	full.PriorityClassName = "liqo-critical"
	full.Tolerations = []corev1.Toleration{{Key: "infra", Operator: "Exists"}}
	patched, own := virtualNode(), virtualNode()
	patched.Spec.OffloadingPatch = &offloadingv1beta1.OffloadingPatch{NodeSelector: map[string]string{"disk": "ssd"}}
	patched.Spec.CreateNode = ptr.To(false)
	own.Spec.Template = &offloadingv1beta1.DeploymentTemplate{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"mine": "yes"}},
		Spec: appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "vk", Image: "own"}}}}}}
	for name, in := range map[string]Rendering{
		"default": {VirtualNode: virtualNode(), Template: template(), ClusterID: "rome", Namespace: "liqo", PodCIDRs: []string{"10.1.0.0/16", "fd00:1::/64"}},
		"full":    {VirtualNode: patched, Template: full, ClusterID: "rome", Namespace: "liqo"},
		"account": {VirtualNode: virtualNode(), Template: template(), ClusterID: "rome", Namespace: "liqo", NodeIdentity: v1alpha1.NodeIdentityServiceAccount},
		"own":     {VirtualNode: own, Template: template(), ClusterID: "rome", Namespace: "liqo"},
	} {
		t.Run(name, func(t *testing.T) {
			deployment, err := Render(in)
			if err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(deployment)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", name+".golden.yaml")
			if *update {
				if err := os.WriteFile(file, got, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("run with -update if this is wanted:\n%s", diff)
			}
		})
	}
}

// Metrics are served without TLS only where they are served at all, and the cluster's settings say so.
func TestPlainMetricsAreAskedFor(t *testing.T) {
	for _, served := range []bool{false, true} {
		for _, plain := range []bool{false, true} {
			spec := template()
			spec.MetricsEnabled = served
			deployment, err := Render(Rendering{VirtualNode: virtualNode(), Template: spec, ClusterID: "rome", Namespace: "liqo", PlainMetrics: plain})
			if err != nil {
				t.Fatal(err)
			}
			args := deployment.Spec.Template.Spec.Containers[0].Args
			if got := slices.Contains(args, "--metrics-plain-http=true"); got != (served && plain) {
				t.Errorf("served %t, plain %t: %q", served, plain, args)
			}
		}
	}
}

// The digest changes with what is rendered, and with nothing else.
func TestRenderDigest(t *testing.T) {
	digestOf := func(change func(*Rendering)) string {
		in := Rendering{VirtualNode: virtualNode(), Template: template(), ClusterID: "rome", Namespace: "liqo"}
		change(&in)
		deployment, err := Render(in)
		if err != nil {
			t.Fatal(err)
		}
		return deployment.Annotations[offloadingv1beta1.RenderedHashAnnotation]
	}
	same := digestOf(func(*Rendering) {})
	for name, tc := range map[string]struct {
		change func(*Rendering)
		equal  bool
	}{
		"the same":              {func(*Rendering) {}, true},
		"labels of the Node":    {func(in *Rendering) { in.VirtualNode.Spec.Labels = map[string]string{"a": "b"} }, true},
		"the status":            {func(in *Rendering) { in.VirtualNode.Status.ObservedGeneration = 3 }, true},
		"the image":             {func(in *Rendering) { in.Template.ContainerImage = "other" }, false},
		"the offloading patch":  {func(in *Rendering) { in.VirtualNode.Spec.OffloadingPatch = &offloadingv1beta1.OffloadingPatch{} }, true},
		"the kubeconfig Secret": {func(in *Rendering) { in.VirtualNode.Spec.KubeconfigSecretRef.Name = "other" }, false},
	} {
		if got := digestOf(tc.change); (got == same) != tc.equal {
			t.Errorf("%s: equal %v, want %v", name, got == same, tc.equal)
		}
	}
}

func TestReconciledNode(t *testing.T) {
	vn := virtualNode()
	vn.Spec.Labels, vn.Spec.Annotations = map[string]string{"region": "north"}, map[string]string{"note": "ours"}
	vn.Spec.Taints = []corev1.Taint{{Key: "gpu", Value: "yes", Effect: corev1.TaintEffectNoSchedule}, {Key: offloadingv1beta1.VirtualNodeTaint, Value: "no", Effect: corev1.TaintEffectNoExecute}}
	node, err := newNode("milan", want(vn, template(), nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) != 2 || node.Spec.Taints[0].Value != "true" || !isNodeOf(node, vn) {
		t.Fatalf("taints %v", node.Spec.Taints)
	}
	again, err := reconciled(node, want(vn, template(), node))
	if err != nil || differs(node, again) {
		t.Errorf("error %v: a second pass changes %s", err, cmp.Diff(node, again))
	}

	// Users and Kubernetes add their own.
	live := node.DeepCopy()
	live.Labels["user"], live.Annotations["user"], live.Labels["region"] = "keeps", "keeps", "changed by hand"
	live.Spec.Taints = append([]corev1.Taint{{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute}}, live.Spec.Taints...)
	live.Status.NodeInfo = corev1.NodeSystemInfo{Architecture: "arm64", OperatingSystem: "linux"}
	// And the VirtualNode changes.
	vn.Spec.Annotations, vn.Spec.Taints = nil, nil
	got, err := reconciled(live, want(vn, template(), live))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"keeps", "north", "arm64", "keeps", false, []corev1.Taint{
		{Key: "node.kubernetes.io/not-ready", Effect: corev1.TaintEffectNoExecute},
		{Key: offloadingv1beta1.VirtualNodeTaint, Value: "true", Effect: corev1.TaintEffectNoExecute},
	}}, []any{got.Labels["user"], got.Labels["region"], got.Labels["kubernetes.io/arch"], got.Annotations["user"], has(got.Annotations, "note"), got.Spec.Taints}); diff != "" {
		t.Error(diff)
	}
	// A list of what is ours that somebody broke takes nothing away.
	live.Annotations[offloadingv1beta1.NodeAppliedAnnotation] = "{"
	if got, err = reconciled(live, want(vn, template(), live)); err != nil || !has(got.Annotations, "note") {
		t.Errorf("error %v, annotations %v", err, got.Annotations)
	}
	// What a virtual kubelet reports becomes a label only if it can be one.
	live.Status.NodeInfo.Architecture = "not a label!"
	if got, _ = reconciled(live, want(vn, template(), live)); has(got.Labels, "kubernetes.io/arch") {
		t.Errorf("labels %v", got.Labels)
	}
}

// The labels for who asks for a platform are those of the provider's nodes, as soon as it tells of them.
func TestThePlatformOfTheNode(t *testing.T) {
	reported := &corev1.Node{Status: corev1.NodeStatus{NodeInfo: corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64"}}}
	for name, tc := range map[string]struct {
		nodes    *authv1beta1.ProviderNodes
		live     *corev1.Node
		os, arch string
	}{
		"nothing is known":                      {nil, nil, "linux", ""},
		"the API server's, if nobody tells":     {nil, reported, "linux", "amd64"},
		"that of all nodes":                     {&authv1beta1.ProviderNodes{OperatingSystem: "linux", Architecture: "arm64"}, reported, "linux", "arm64"},
		"at once":                               {&authv1beta1.ProviderNodes{OperatingSystem: "windows", Architecture: "amd64"}, nil, "windows", "amd64"},
		"none where architectures differ":       {&authv1beta1.ProviderNodes{OperatingSystem: "linux"}, reported, "linux", ""},
		"none where systems differ, too":        {&authv1beta1.ProviderNodes{}, reported, "", ""},
		"none that cannot be":                   {&authv1beta1.ProviderNodes{OperatingSystem: "linux", Architecture: "a b"}, reported, "linux", ""},
		"none where they do, and none runs yet": {&authv1beta1.ProviderNodes{}, nil, "", ""},
	} {
		vn := virtualNode()
		vn.Spec.ProviderNodes = tc.nodes
		labels := want(vn, template(), tc.live).labels
		if os, arch := labels[corev1.LabelOSStable], labels[corev1.LabelArchStable]; os != tc.os || arch != tc.arch {
			t.Errorf("%s: %q and %q, want %q and %q", name, os, arch, tc.os, tc.arch)
		}
		for _, key := range []string{corev1.LabelOSStable, corev1.LabelArchStable} {
			if value, there := labels[key]; there && value == "" {
				t.Errorf("%s: label %s is empty", name, key)
			}
		}
	}
}

// Who looks at the Node sees how large a pod may be, as long as the provider says it, and no user can say otherwise.
func TestTheNodeSaysTheLargestPod(t *testing.T) {
	vn := virtualNode()
	vn.Spec.Annotations = map[string]string{offloadingv1beta1.LargestPodAnnotation: "anything"}
	vn.Spec.ProviderNodes = &authv1beta1.ProviderNodes{LargestPod: corev1.ResourceList{"memory": resource.MustParse("7Gi"), "cpu": resource.MustParse("3.8"), "nvidia.com/gpu": resource.MustParse("2")}}
	node, err := newNode("milan", want(vn, template(), nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, text := node.Annotations[offloadingv1beta1.LargestPodAnnotation], `{"cpu":"3800m","memory":"7Gi","nvidia.com/gpu":"2"}`; got != text {
		t.Errorf("the Node says %s, want %s", got, text)
	}
	if has(node.Annotations, offloadingv1beta1.CrowdedAnnotation) {
		t.Error("there is room for 3.8 CPUs, and the Node says that it is crowded")
	}
	vn.Spec.ProviderNodes.LargestPod["cpu"] = resource.MustParse("300m")
	if node, err = reconciled(node, want(vn, template(), node)); err != nil || node.Annotations[offloadingv1beta1.CrowdedAnnotation] != "true" {
		t.Errorf("error %v: no node has room for half a CPU, and the Node does not say that it is crowded: %v", err, node.Annotations)
	}
	vn.Spec.Annotations, vn.Spec.ProviderNodes = nil, nil
	if node, err = reconciled(node, want(vn, template(), node)); err != nil || has(node.Annotations, offloadingv1beta1.LargestPodAnnotation) || has(node.Annotations, offloadingv1beta1.CrowdedAnnotation) {
		t.Errorf("error %v: what the provider does not say any more is left: %v", err, node.Annotations)
	}
}

func has(m map[string]string, key string) bool {
	_, there := m[key]
	return there
}
