package install

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
)

// Facts are what Detect decides from.
type Facts struct {
	// Server is the API server's URL in the kubeconfig.
	Server string
	// Flags of the kube-controller-manager, where it is a static pod.
	Flags []string
	// Nodes of the cluster, without virtual ones.
	Nodes []corev1.Node
	// ServiceCIDRs of the ServiceCIDR object that Kubernetes makes of its configuration.
	ServiceCIDRs []string
	// Pods and Services of the cluster, to compare their addresses with the ranges.
	Pods     []corev1.Pod
	Services []corev1.Service
}

// Gather reads the facts. What the user may not read, and kinds that the cluster does not have, stay empty: whatever cannot be
// detected is asked for.
func Gather(ctx context.Context, cluster *target.Cluster) (Facts, error) {
	facts := Facts{Server: cluster.Config.Host}
	nodes := &corev1.NodeList{}
	if err := cluster.List(ctx, nodes); err != nil {
		return facts, err
	}
	virtual := map[string]bool{}
	facts.Nodes = slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool {
		virtual[node.Name] = node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType
		return virtual[node.Name]
	})
	ranges := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"}}
	if found, err := cluster.Get(ctx, ranges); err == nil && found {
		facts.ServiceCIDRs = ranges.Spec.CIDRs
	}
	pods := &corev1.PodList{}
	if err := cluster.List(ctx, pods); err != nil {
		return facts, err
	}
	// Offloaded pods have addresses of another cluster.
	facts.Pods = slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool { return virtual[pod.Spec.NodeName] })
	services := &corev1.ServiceList{}
	if err := cluster.List(ctx, services, &client.ListOptions{}); err != nil {
		return facts, err
	}
	facts.Services = services.Items
	facts.Flags = managerFlags(facts.Pods)
	return facts, nil
}

// managerFlags are the flags of the kube-controller-manager that kubeadm and kind run as a static pod.
func managerFlags(pods []corev1.Pod) []string {
	for i := range pods {
		pod := &pods[i]
		if pod.Namespace != metav1.NamespaceSystem || pod.Labels["component"] != "kube-controller-manager" || pod.Labels["tier"] != "control-plane" {
			continue
		}
		for _, container := range pod.Spec.Containers {
			return slices.Concat(container.Command, container.Args)
		}
	}
	return nil
}

// flag returns the value of --name in a command line.
func flag(words []string, name string) string {
	for i, word := range words {
		if value, ok := strings.CutPrefix(word, "--"+name+"="); ok {
			return value
		}
		if word == "--"+name && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}
