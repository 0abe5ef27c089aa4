package offloaded

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/cli/volume"
	"liqo.io/liqo/pkg/reflection"
)

// named is how many of a kind a sentence names.
const named = 5

// Holdings are what a cluster has at another.
type Holdings struct {
	// Pods, as namespace/name, that are bound to virtual nodes of the other cluster and have not ended.
	Pods []string
	// Namespaces at the other cluster, by the local namespace that each stands for.
	Namespaces map[string]string
	// Nodes are the virtual nodes of the other cluster.
	Nodes []string
	// Volumes there that hold data.
	Volumes []volume.Volume
}

// Rights are what a user needs for At; for any other cluster if that is empty.
func Rights(other, namespace string) []target.Right {
	tenant := ""
	if other != "" {
		tenant = corev1beta1.TenantNamespacePrefix + other
	}
	rights := target.Rights("", "nodes", "", "list")
	rights = append(rights, target.Rights("", "pods", namespace, "list")...)
	rights = append(rights, target.Rights("", "persistentvolumes", "", "list")...)
	return append(rights, target.Rights(offloadingv1beta1.GroupVersion.Group, "namespacemaps", tenant, "list")...)
}

// At reads what a cluster has at another; of one local namespace, unless that is empty.
func At(ctx context.Context, cluster *target.Cluster, other, namespace string) (*Holdings, error) {
	found := &Holdings{Namespaces: map[string]string{}}
	nodes := &corev1.NodeList{}
	virtual := client.MatchingLabels{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: other}
	if err := cluster.List(ctx, nodes, virtual); err != nil {
		return nil, err
	}
	for i := range nodes.Items {
		node := nodes.Items[i].Name
		found.Nodes = append(found.Nodes, node)
		pods, err := On(ctx, cluster, node, namespace)
		if err != nil {
			return nil, err
		}
		found.Pods = append(found.Pods, pods...)
	}
	slices.Sort(found.Pods)
	list := &offloadingv1beta1.NamespaceMapList{}
	sent := client.MatchingLabels{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: other}
	if err := cluster.List(ctx, list, client.InNamespace(corev1beta1.TenantNamespacePrefix+other), sent); err != nil {
		return nil, err
	}
	for i := range list.Items {
		for local, twin := range list.Items[i].Spec.DesiredMapping {
			if namespace == "" || local == namespace {
				found.Namespaces[local] = twin
			}
		}
	}
	var err error
	found.Volumes, err = volume.At(ctx, cluster, other, namespace)
	return found, err
}

// On are the pods, as namespace/name, that are bound to a node and have not ended; of one namespace, unless that is empty.
func On(ctx context.Context, cluster *target.Cluster, node, namespace string) ([]string, error) {
	pods := &corev1.PodList{}
	if err := cluster.List(ctx, pods, client.InNamespace(namespace), client.MatchingFields{"spec.nodeName": node}); err != nil {
		return nil, err
	}
	return unended(pods), nil
}

// Hosted is what another cluster has here.
type Hosted struct {
	// Namespaces are the twins of its namespaces.
	Namespaces []string `json:"namespaces"`
	// Pods in them that have not ended, as namespace/name.
	Pods []string `json:"pods"`
	// Claims in them, as namespace/name.
	Claims []string `json:"claims"`
}

// HostedRights are what a user needs for Hosts.
func HostedRights() []target.Right {
	rights := target.Rights("", "namespaces", "", "list")
	rights = append(rights, target.Rights("", "pods", "", "list")...)
	return append(rights, target.Rights("", "persistentvolumeclaims", "", "list")...)
}

// Hosts reads what another cluster has here.
func Hosts(ctx context.Context, cluster *target.Cluster, other string) (*Hosted, error) {
	found := &Hosted{}
	twins, err := Twins(ctx, cluster, other)
	if err != nil {
		return nil, err
	}
	for i := range twins {
		twin := twins[i].Name
		found.Namespaces = append(found.Namespaces, twin)
		pods, claims := &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}
		if err := cluster.List(ctx, pods, client.InNamespace(twin)); err != nil {
			return nil, err
		}
		found.Pods = append(found.Pods, unended(pods)...)
		if err := cluster.List(ctx, claims, client.InNamespace(twin)); err != nil {
			return nil, err
		}
		for _, claim := range reflection.Kept(claims.Items) {
			found.Claims = append(found.Claims, twin+"/"+claim.Name)
		}
	}
	return found, nil
}

// Twins are the namespaces that were made here for those of another cluster, also where what asked for them is gone. A namespace that somebody
// else made is none, whatever its labels.
func Twins(ctx context.Context, cluster *target.Cluster, other string) ([]corev1.Namespace, error) {
	list := &corev1.NamespaceList{}
	if err := cluster.List(ctx, list, client.MatchingLabels{corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: other}); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Items, func(namespace corev1.Namespace) bool { return !isTwin(&namespace) }), nil
}

// isTwin tells whether a namespace was made for one of the cluster that its label names.
func isTwin(namespace *corev1.Namespace) bool {
	tenant := corev1beta1.TenantNamespacePrefix + namespace.Labels[corev1beta1.RemoteClusterIDLabel]
	return namespace.Annotations[offloadingv1beta1.OriginalNameAnnotation] != "" &&
		strings.HasPrefix(namespace.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation], tenant+"/")
}

// Others are the clusters that have twins here.
func Others(ctx context.Context, cluster *target.Cluster) ([]string, error) {
	list := &corev1.NamespaceList{}
	err := cluster.List(ctx, list, client.MatchingLabels{corev1beta1.ManagedLabel: "true"}, client.HasLabels{corev1beta1.RemoteClusterIDLabel})
	var ids []string
	for i := range list.Items {
		if isTwin(&list.Items[i]) {
			ids = append(ids, list.Items[i].Labels[corev1beta1.RemoteClusterIDLabel])
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// String counts and names all of it.
func (h *Hosted) String() string {
	all := Counted("namespace", h.Namespaces)
	if within := h.Counted(); within != "" {
		all += " with " + within
	}
	return all
}

// Counted counts and names what is in the namespaces; empty if nothing is.
func (h *Hosted) Counted() string {
	var parts []string
	if len(h.Pods) > 0 {
		parts = append(parts, Counted("pod", h.Pods))
	}
	if len(h.Claims) > 0 {
		parts = append(parts, "the data of "+Counted("volume", h.Claims))
	}
	return strings.Join(parts, " and ")
}

// unended are the pods of a list that have not ended, as namespace/name.
func unended(pods *corev1.PodList) []string {
	var names []string
	for i := range pods.Items {
		if pod := &pods.Items[i]; pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			names = append(names, pod.Namespace+"/"+pod.Name)
		}
	}
	return names
}

// Twins counts and names the namespaces at the other cluster.
func (h *Holdings) Twins() string {
	return Counted("namespace", slices.Sorted(maps.Values(h.Namespaces)))
}

// Them stands for the namespaces in a sentence.
func (h *Holdings) Them() string {
	if len(h.Namespaces) == 1 {
		return "it"
	}
	return "them"
}

// Claims are those that the volumes belong to, as namespace/name.
func (h *Holdings) Claims() []string {
	var claims []string
	for _, v := range h.Volumes {
		claims = append(claims, v.Claim.Namespace+"/"+v.Claim.Name)
	}
	return claims
}

// Counted says how many there are and names some: 1 pod (a), or 7 pods (a, b, c, d, e and 2 more). The plural is the word with an s.
func Counted(word string, names []string) string {
	if len(names) != 1 {
		word += "s"
	}
	some := strings.Join(names[:min(len(names), named)], ", ")
	switch {
	case len(names) == 0:
		return "no " + word
	case len(names) > named:
		some += fmt.Sprintf(" and %d more", len(names)-named)
	}
	return fmt.Sprintf("%d %s (%s)", len(names), word, some)
}

// Enumerate joins parts of a sentence: a, b and c.
func Enumerate(parts []string) string {
	if last := len(parts) - 1; last > 0 {
		parts = []string{strings.Join(parts[:last], ", "), parts[last]}
	}
	return strings.Join(parts, " and ")
}
