package e2e

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// readAsV1 reads a cluster as programs of Liqo v1 do: its ID and its manager by label, and what is asked and used by the conditions that these know,
// of which for a ResourceSlice each has to be Accepted. It fails if one of them would not find all well.
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
	for i := range slices.Items {
		for _, condition := range slices.Items[i].Status.Conditions {
			if condition.Status != authv1beta1.Accepted {
				err = errors.Join(err, fmt.Errorf("ResourceSlice %s is not accepted: %+v", slices.Items[i].Name, condition))
			}
		}
		if len(slices.Items[i].Status.Conditions) == 0 {
			err = errors.Join(err, fmt.Errorf("ResourceSlice %s is not answered", slices.Items[i].Name))
		}
	}
	for i := range nodes.Items {
		for _, condition := range nodes.Items[i].Status.Conditions {
			known := condition.Type == offloadingv1beta1.VirtualKubeletCondition || condition.Type == offloadingv1beta1.NodeCondition
			if known && condition.Status != offloadingv1beta1.StatusRunning {
				err = errors.Join(err, fmt.Errorf("VirtualNode %s does not run: %+v", nodes.Items[i].Name, condition))
			}
		}
	}
	for i := range peers.Items {
		modules := &peers.Items[i].Status.Modules
		for _, module := range []corev1beta1.Module{modules.Authentication, modules.Networking, modules.Offloading} {
			for _, condition := range module.Conditions {
				if condition.Status != corev1beta1.StatusEstablished && condition.Status != corev1beta1.StatusReady {
					err = errors.Join(err, fmt.Errorf("ForeignCluster %s: %+v", peers.Items[i].Name, condition))
				}
			}
		}
	}
	return ids.Items[0].Data["CLUSTER_ID"], err
}
