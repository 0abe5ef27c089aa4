package chart

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"
)

func fabric(t *testing.T, values string) appsv1.DaemonSet {
	t.Helper()
	var set appsv1.DaemonSet
	if err := yaml.UnmarshalStrict([]byte(documents(t, "v1.36.0", values)["DaemonSet liqo-fabric"]), &set); err != nil || set.Name == "" {
		t.Fatal(err, set)
	}
	return set
}

func TestAgentsOfNodesAreHardened(t *testing.T) {
	set := fabric(t, network)
	pod := set.Spec.Template.Spec
	c := pod.Containers[0]
	if !pod.HostNetwork || *pod.SecurityContext.RunAsUser != 0 || pod.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault || pod.HostPID ||
		!*c.SecurityContext.ReadOnlyRootFilesystem || *c.SecurityContext.AllowPrivilegeEscalation || c.SecurityContext.Privileged != nil || len(pod.Volumes) != 0 ||
		c.SecurityContext.Capabilities.Drop[0] != "ALL" || len(c.SecurityContext.Capabilities.Add) != 1 || c.SecurityContext.Capabilities.Add[0] != "NET_ADMIN" {
		t.Errorf("the pods of the nodes' agents are not hardened: %+v", pod)
	}
	if pod.Tolerations[0].Operator != corev1.TolerationOpExists || pod.Tolerations[0].Key != "" || set.Spec.UpdateStrategy.RollingUpdate.MaxUnavailable.StrVal != "10%" {
		t.Errorf("nodes are left without an agent: %+v, %+v", pod.Tolerations, set.Spec.UpdateStrategy)
	}
	if required := pod.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchExpressions[0]; required.Key != "liqo.io/type" ||
		required.Operator != corev1.NodeSelectorOpNotIn || required.Values[0] != "virtual-node" {
		t.Errorf("agents run on virtual nodes: %+v", required)
	}
}

// What values say of the agents wins over what the chart says without them.
func TestAgentsOfNodesRunWhereValuesSay(t *testing.T) {
	values := strings.Replace(network, "{enabled: true}", `{enabled: true, fabric: {tolerations: [{key: a, operator: Exists}], nodeSelector: {b: c},
  affinity: {podAntiAffinity: {}}, config: {healthProbeBindAddressPort: "9081"}, pod: {labels: {d: e}, extraArgs: [--v=4]}}}`, 1)
	set := fabric(t, values)
	pod := set.Spec.Template.Spec
	if len(pod.Tolerations) != 1 || pod.Tolerations[0].Key != "a" || pod.NodeSelector["b"] != "c" || pod.Affinity.NodeAffinity != nil || set.Spec.Template.Labels["d"] != "e" {
		t.Errorf("the pods are %+v", pod)
	}
	command := strings.Join(append(pod.Containers[0].Args, pod.Containers[0].ReadinessProbe.Exec.Command...), " ")
	if strings.Count(command, "--health-port=9081") != 2 || !strings.Contains(command, "--v=4") {
		t.Errorf("the container's arguments are %s", command)
	}
}

func TestWithoutTheNetworkModuleNothingOfItIsThere(t *testing.T) {
	for name := range documents(t, "v1.36.0", "networking: {enabled: false}") {
		if strings.HasSuffix(name, " liqo-fabric") || strings.HasSuffix(name, " liqo-gateway") {
			t.Errorf("%s is there without the network module", name)
		}
	}
}

// internalNode is what an InternalNode says.
func internalNode(status map[string]any) *unstructured.Unstructured {
	node := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "networking.liqo.io/v1beta1", "kind": "InternalNode"}}
	node.SetName("n1")
	if status != nil {
		node.Object["status"] = status
	}
	return node
}

// Whoever has taken a node over has the token of its agent. By it he writes of no other node, and draws no packets of pods elsewhere.
func TestAgentsWriteOfTheirOwnNode(t *testing.T) {
	policy := policyNamed(t, network, "fabric.yaml", "liqo-fabric")
	const nodeName = "authentication.kubernetes.io/node-name"
	agent, here := "system:serviceaccount:liqo:liqo-fabric", map[string][]string{nodeName: {"n1"}}
	status := func(more ...any) map[string]any {
		status := map[string]any{"nodeIP": map[string]any{"local": "172.18.0.2", "remote": "172.18.0.2"}, "podRanges": []any{"10.244.1.0/24"}}
		for i := 0; i < len(more); i += 2 {
			status[more[i].(string)] = more[i+1]
		}
		return status
	}
	before := internalNode(status())
	for what, tc := range map[string]struct {
		attempt attempt
		want    string
	}{
		"its addresses":                     {attempt{user: agent, extra: here, operation: admission.Update, object: internalNode(status("addresses", []any{"10.244.1.1"})), old: before}, ""},
		"its first word":                    {attempt{user: agent, extra: here, operation: admission.Update, object: internalNode(map[string]any{"addresses": []any{"10.244.1.1"}}), old: internalNode(nil)}, ""},
		"the addresses of another node":     {attempt{user: agent, extra: map[string][]string{nodeName: {"n2"}}, operation: admission.Update, object: before, old: before}, "NotYourNode"},
		"by a token without a node":         {attempt{user: agent, operation: admission.Update, object: before, old: before}, "NotYourNode"},
		"by a token of two nodes":           {attempt{user: agent, extra: map[string][]string{nodeName: {"n1", "n2"}}, operation: admission.Update, object: before, old: before}, "NotYourNode"},
		"the pods of another node":          {attempt{user: agent, extra: here, operation: admission.Update, object: internalNode(status("podRanges", []any{"10.244.0.0/16"})), old: before}, "NotForFabric"},
		"where the node is":                 {attempt{user: agent, extra: here, operation: admission.Update, object: internalNode(status("nodeIP", map[string]any{"remote": "172.18.0.9"})), old: before}, "NotForFabric"},
		"the first word of where it is":     {attempt{user: agent, extra: here, operation: admission.Update, object: before, old: internalNode(nil)}, "NotForFabric"},
		"the end of a node":                 {attempt{user: agent, extra: here, operation: admission.Delete, old: before}, "NotForFabric"},
		"a node":                            {attempt{user: agent, extra: here, operation: admission.Create, object: before}, "NotForFabric"},
		"what the controller manager says":  {attempt{user: managerUser, operation: admission.Update, object: internalNode(status("podRanges", []any{"10.244.2.0/24"})), old: before}, ""},
		"what the controller manager makes": {attempt{user: managerUser, operation: admission.Create, object: before}, ""},
	} {
		tc.attempt.group, tc.attempt.resource, tc.attempt.name = "networking.liqo.io", "internalnodes/status", "n1"
		if tc.attempt.operation != admission.Update {
			tc.attempt.resource = "internalnodes"
		}
		if got := policy.try(t, tc.attempt, nil); tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", what, got, tc.want)
		}
	}
}
