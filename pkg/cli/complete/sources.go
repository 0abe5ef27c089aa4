package complete

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/placement"
)

// The sources of proposals.
var (
	// Namespaces of the cluster.
	Namespaces = Source{Question: "namespaces", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		return names(ctx, c, "/api/v1/namespaces")
	}}
	// OffloadableNamespaces are those that are not kept at home whatever is asked for.
	OffloadableNamespaces = Source{Question: "offloadable", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		home := placement.HomeNamespaces{Liqo: c.LiqoNamespace}
		items, err := fetch(ctx, c, "/api/v1/namespaces", "")
		return collect(items, func(o *metav1.ObjectMeta) []string {
			if home.WhyNeverOffloaded(o.Name, o.Labels) != "" {
				return nil
			}
			return []string{o.Name}
		}), err
	}}
	// OffloadedNamespaces are those with a NamespaceOffloading.
	OffloadedNamespaces = Source{Question: "offloaded", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		items, err := fetch(ctx, c, path(offloadingv1beta1.GroupVersion.String(), "namespaceoffloadings"), "")
		return collect(items, func(o *metav1.ObjectMeta) []string { return []string{o.Namespace} }), err
	}}
	// VirtualNodes of the cluster.
	VirtualNodes = Source{Question: "virtualnodes", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		return names(ctx, c, path(offloadingv1beta1.GroupVersion.String(), "virtualnodes"))
	}}
	// ClusterIDs of the peers.
	ClusterIDs = Source{Question: "peers", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		items, err := fetch(ctx, c, "/api/v1/namespaces", corev1beta1.TenantNamespaceLabel+"=true")
		return collect(items, func(o *metav1.ObjectMeta) []string { return []string{o.Labels[corev1beta1.RemoteClusterIDLabel]} }), err
	}}
	// Tenants of the cluster.
	Tenants = Source{Question: "tenants", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		return names(ctx, c, path(authv1beta1.GroupVersion.String(), "tenants"))
	}}
	// Slices are the ResourceSlices in both directions.
	Slices = Source{Question: "slices", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		return names(ctx, c, path(authv1beta1.GroupVersion.String(), "resourceslices"))
	}}
	// ConsumersSlices are the ResourceSlices that consumers ask this cluster with.
	ConsumersSlices = Source{Question: "consumersslices", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		items, err := fetch(ctx, c, path(authv1beta1.GroupVersion.String(), "resourceslices"), corev1beta1.ReplicatedLabel+"=true")
		return collect(items, func(o *metav1.ObjectMeta) []string { return []string{o.Name} }), err
	}}
	// OwnSlices are the ResourceSlices that this cluster asks its providers with.
	OwnSlices = Source{Question: "ownslices", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		selector := corev1beta1.ReplicationLabel + "=true," + corev1beta1.ReplicatedLabel + "!=true"
		items, err := fetch(ctx, c, path(authv1beta1.GroupVersion.String(), "resourceslices"), selector)
		return collect(items, func(o *metav1.ObjectMeta) []string { return []string{o.Name} }), err
	}}
	// NodeSelectors are the labels by which virtual nodes differ.
	NodeSelectors = Source{Question: "nodelabels", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		items, err := fetch(ctx, c, "/api/v1/nodes", corev1beta1.TypeLabel+"="+corev1beta1.VirtualNodeType)
		return distinguishing(items), err
	}}
	// NamespaceSelectors are the labels by which namespaces differ.
	NamespaceSelectors = Source{Question: "namespacelabels", Ask: func(ctx context.Context, c *target.Cluster) ([]string, error) {
		items, err := fetch(ctx, c, "/api/v1/namespaces", "")
		return distinguishing(items), err
	}}
)

func path(groupVersion, resource string) string { return "/apis/" + groupVersion + "/" + resource }

func names(ctx context.Context, cluster *target.Cluster, path string) ([]string, error) {
	items, err := fetch(ctx, cluster, path, "")
	return collect(items, func(o *metav1.ObjectMeta) []string { return []string{o.Name} }), err
}

// fetch lists metadata at a path, without discovery: there is no time for it.
func fetch(ctx context.Context, cluster *target.Cluster, path, selector string) ([]metav1.ObjectMeta, error) {
	request := cluster.Kube.Discovery().RESTClient().Get().AbsPath(path)
	if selector != "" {
		request = request.Param("labelSelector", selector)
	}
	body, err := request.SetHeader("Accept", "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", path, err)
	}
	list := &metav1.PartialObjectMetadataList{}
	if err := json.Unmarshal(body, list); err != nil {
		return nil, fmt.Errorf("reading the list of %s: %w", path, err)
	}
	items := make([]metav1.ObjectMeta, len(list.Items))
	for i := range list.Items {
		items[i] = list.Items[i].ObjectMeta
	}
	return items, nil
}

// collect returns the words of all items, each once, sorted, without empty ones.
func collect(items []metav1.ObjectMeta, words func(*metav1.ObjectMeta) []string) []string {
	all := []string{}
	for i := range items {
		for _, word := range words(&items[i]) {
			if word != "" && !slices.Contains(all, word) {
				all = append(all, word)
			}
		}
	}
	slices.Sort(all)
	return all
}

// distinguishing returns the labels that not all items have: only those select anything.
func distinguishing(items []metav1.ObjectMeta) []string {
	counts := map[string]int{}
	for i := range items {
		for key, value := range items[i].Labels {
			counts[key+"="+value]++
		}
	}
	pairs := []string{}
	for pair, count := range counts {
		if count < len(items) || len(items) == 1 {
			pairs = append(pairs, pair)
		}
	}
	slices.Sort(pairs)
	return pairs
}
