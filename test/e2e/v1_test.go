package e2e

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/compat"
)

// readAsV1 reads a cluster as programs of Liqo v1 do: its ID and its manager by label, and what is asked and used by the rules of
// compat.Faults. It fails if one of them would not find all well.
func readAsV1(ctx context.Context, c *side) (id string, err error) {
	ids, managers := &corev1.ConfigMapList{}, &appsv1.DeploymentList{}
	slices, nodes, peers := &authv1beta1.ResourceSliceList{}, &offloadingv1beta1.VirtualNodeList{}, &corev1beta1.ForeignClusterList{}
	if err := c.List(ctx, ids, client.MatchingLabels{"app.kubernetes.io/name": "clusterid-configmap"}); err != nil {
		return "", err
	}
	if err := c.List(ctx, managers, client.MatchingLabels{"app.kubernetes.io/name": "controller-manager", "app.kubernetes.io/component": "controller-manager"}); err != nil {
		return "", err
	}
	for _, list := range []client.ObjectList{slices, nodes, peers} {
		if err := c.List(ctx, list); err != nil {
			return "", err
		}
	}
	if len(ids.Items) != 1 || len(managers.Items) != 1 || managers.Items[0].Status.ReadyReplicas == 0 {
		return "", fmt.Errorf("%d ConfigMaps of a cluster ID and %d managers are found in %s", len(ids.Items), len(managers.Items), c.name)
	}
	if len(slices.Items) == 0 || len(peers.Items) == 0 {
		err = errors.New("there is no peering")
	}
	for _, list := range []client.ObjectList{slices, nodes, peers} {
		err = errors.Join(err, meta.EachListItem(list, func(item runtime.Object) (err error) {
			object := item.(client.Object)
			for _, fault := range compat.Faults(object) {
				err = errors.Join(err, fmt.Errorf("%T %s: %s", object, object.GetName(), fault))
			}
			return err
		}))
	}
	return ids.Items[0].Data["CLUSTER_ID"], err
}
