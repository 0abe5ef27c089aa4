package reflection

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// choosing are the ways by which a pod chooses nodes by a label.
var choosing = map[string]func(*corev1.PodSpec, corev1.NodeSelectorRequirement){
	"nodeSelector": func(s *corev1.PodSpec, r corev1.NodeSelectorRequirement) {
		s.NodeSelector = map[string]string{r.Key: "worker-7"}
	},
	"affinity": func(s *corev1.PodSpec, r corev1.NodeSelectorRequirement) {
		// The first term is harmless: one is enough.
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: isNode(corev1.LabelArchStable)}, {MatchExpressions: append(isNode("pool"), r)}}}}}
	},
	"preference": func(s *corev1.PodSpec, r corev1.NodeSelectorRequirement) {
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
			{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{r}}}}}}
	},
	"avoidance of all others": func(s *corev1.PodSpec, r corev1.NodeSelectorRequirement) {
		r.Operator = corev1.NodeSelectorOpNotIn
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{r}}}}}}
	},
}

func choice(how, label string) *corev1.PodSpec {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}, AutomountServiceAccountToken: ptr.To(false)}
	choosing[how](spec, corev1.NodeSelectorRequirement{Key: label, Operator: corev1.NodeSelectorOpIn, Values: []string{"worker-7"}})
	return spec
}

// "On which node a pod from another cluster runs is the provider's to choose": also where a label other than kubernetes.io/hostname is a node's
// alone, as drivers of storage and clouds set them, or names the nodes of a tenant of the provider that no taint guards.
func TestPodsNameNoNodesByOtherLabels(t *testing.T) {
	for _, label := range []string{"topology.hostpath.csi/node", "topology.topolvm.io/node", "openebs.io/nodename", "topology.linbit.com/hostname", "alpha.eksctl.io/instance-id",
		"csi.volume.kubernetes.io/nodeid", "beta.kubernetes.io/hostname", "node-role.kubernetes.io/control-plane", "dedicated-to.example.com/payroll",
		"oci.oraclecloud.com/fault-domain", "kubernetes.azure.com/agentpool", "eks.amazonaws.com/nodegroup", "cloud.google.com/gke-nodepool",
		"kubernetes.io/arch.example.com/x", "node.kubernetes.io/exclude-from-external-load-balancers", "nvidia.com/gpu.clique", "kops.k8s.io/instancegroup", "evil-liqo.io/a",
		"hostname", "node-name", "instance_id", "tenant", "machine.uuid", "dedicated", "example.com.x", "node.liqo.io/hostname"} {
		for how := range choosing {
			if errs := CheckShadowPod(choice(how, label), Rules{}); len(errs) != 1 {
				t.Errorf("a pod that asks by %s for the node with %s=worker-7 is accepted: %v", how, label, errs)
			}
			if errs := CheckShadowPod(choice(how, label), Rules{NodeLabels: []string{label}}); len(errs) > 0 {
				t.Errorf("label %s is allowed, and a pod that asks for it by %s is refused: %v", label, how, errs)
			}
		}
	}
}

// What tells kinds of nodes apart, and what the provider allows besides, may be asked for; never a certain node by its host name.
func TestPodsChooseKindsOfNodes(t *testing.T) {
	for _, label := range []string{"kubernetes.io/arch", "kubernetes.io/os", "topology.kubernetes.io/zone", "topology.kubernetes.io/region", "node.kubernetes.io/instance-type",
		"nvidia.com/gpu.product", "nvidia.com/gpu.memory", "amd.com/gpu.family", "feature.node.kubernetes.io/cpu-model.id", "karpenter.k8s.aws/instance-family", "liqo.io/type", "node.liqo.io/pool", "liqo.io/remote-cluster-id",
		"disk", "pool", "zone"} {
		for how := range choosing {
			if errs := CheckShadowPod(choice(how, label), Rules{}); len(errs) > 0 {
				t.Errorf("a pod that asks for %s by %s is refused: %v", label, how, errs)
			}
		}
	}
	spec := choice("affinity", "disk")
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	terms[1].MatchExpressions[1] = corev1.NodeSelectorRequirement{Key: "node-role.kubernetes.io/control-plane", Operator: corev1.NodeSelectorOpDoesNotExist}
	if errs := CheckShadowPod(spec, Rules{}); len(errs) > 0 {
		t.Errorf("a pod that keeps off the control plane is refused: %v", errs)
	}
	terms[1].MatchExpressions[1].Key = "topology.topolvm.io/node"
	if errs := CheckShadowPod(spec, Rules{}); len(errs) != 1 {
		t.Errorf("a pod that keeps off all nodes that have a label of unknown meaning is accepted: %v", errs)
	}
	for name, tc := range map[string]struct {
		allowed []string
		key     string
		want    bool
	}{
		"a domain":                      {[]string{"example.com/"}, "example.com/pool", true},
		"not what is below it":          {[]string{"example.com/"}, "a.example.com/pool", false},
		"nor what begins like a key":    {[]string{"example.com/pool"}, "example.com/pools", false},
		"all":                           {[]string{"*"}, "topology.topolvm.io/node", true},
		"but no host name":              {[]string{"*"}, corev1.LabelHostname, false},
		"not even one that is listed":   {[]string{corev1.LabelHostname, "kubernetes.io/"}, corev1.LabelHostname, false},
		"a word of one node, by itself": {[]string{"tenant"}, "tenant", true},
	} {
		if got := (Rules{NodeLabels: tc.allowed}).MaySelect(tc.key); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
