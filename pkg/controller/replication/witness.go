package replication

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// +kubebuilder:rbac:groups="",resources=nodes,verbs=get;list;watch

// vouched tells whether a virtual kubelet knows that a provider answers: one of its virtual nodes is ready. A node whose kubelet
// stopped is not ready any more after Kubernetes' grace period, some fifty seconds.
func vouched(ctx context.Context, nodes client.Reader, clusterID string) bool {
	var list corev1.NodeList
	// The nodes are only looked at.
	err := nodes.List(ctx, &list, client.MatchingLabels{
		corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: clusterID,
	}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false
	}
	for i := range list.Items {
		if nodeReady(&list.Items[i]) {
			return true
		}
	}
	return false
}

func nodeReady(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// followNodes calls lost each time that a virtual node of a cluster was ready and is not any more, until ignore is called.
func followNodes(ctx context.Context, nodes cache.Informers, clusterID string, lost func()) (ignore func(), err error) {
	informer, err := nodes.GetInformer(ctx, &corev1.Node{})
	if err != nil {
		return nil, fmt.Errorf("following the virtual nodes of cluster %s: %w", clusterID, err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(before, now any) {
		if nodeLost(before, now, clusterID) {
			lost()
		}
	}})
	if err != nil {
		return nil, fmt.Errorf("following the virtual nodes of cluster %s: %w", clusterID, err)
	}
	return func() { _ = informer.RemoveEventHandler(registration) }, nil
}

func nodeLost(before, now any, clusterID string) bool {
	old, okBefore := before.(*corev1.Node)
	node, okNow := now.(*corev1.Node)
	return okBefore && okNow && node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType &&
		node.Labels[corev1beta1.RemoteClusterIDLabel] == clusterID && nodeReady(old) && !nodeReady(node)
}
