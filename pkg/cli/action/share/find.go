package share

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
)

// slice finds the ResourceSlice that the user means. Those that consumers ask this cluster with are none.
func (o *DeleteOptions) slice(ctx context.Context) (*authv1beta1.ResourceSlice, error) {
	list := &authv1beta1.ResourceSliceList{}
	if err := read(ctx, o.Cluster, o.ProviderID, list, authv1beta1.GroupVersion.Group, "resourceslices"); err != nil {
		return nil, err
	}
	var all []target.Named
	consumer := ""
	for i := range list.Items {
		slice := &list.Items[i]
		if slice.Labels[corev1beta1.ReplicatedLabel] == "true" {
			if slice.Name == o.Name {
				consumer = slice.Labels[corev1beta1.OriginIDLabel]
			}
			continue
		}
		all = append(all, target.Named{Object: slice, PeerID: slice.Labels[corev1beta1.RemoteIDLabel]})
		if slice.Name == o.Name {
			consumer = ""
		}
	}
	if consumer != "" {
		return nil, failure.Unmet("give it nothing new with '"+o.Cluster.Command("liqoctl cordon resourceslice "+o.Name)+"', or take all back with '"+
			o.Cluster.Command("liqoctl drain tenant "+consumer)+"'", "%s asks %s with ResourceSlice %s: only the consumer deletes it", consumer, o.Cluster.Name, o.Name)
	}
	object, err := o.Cluster.Choose(o.choice("resourceslice"), all)
	if err != nil {
		return nil, err
	}
	return object.(*authv1beta1.ResourceSlice), nil
}

// node finds the VirtualNode that the user means.
func (o *DeleteOptions) node(ctx context.Context) (*offloadingv1beta1.VirtualNode, error) {
	list := &offloadingv1beta1.VirtualNodeList{}
	if err := read(ctx, o.Cluster, o.ProviderID, list, offloadingv1beta1.GroupVersion.Group, "virtualnodes"); err != nil {
		return nil, err
	}
	all := make([]target.Named, len(list.Items))
	for i := range list.Items {
		all[i] = target.Named{Object: &list.Items[i], PeerID: string(list.Items[i].Spec.ClusterID)}
	}
	object, err := o.Cluster.Choose(o.choice("virtualnode"), all)
	if err != nil {
		return nil, err
	}
	return object.(*offloadingv1beta1.VirtualNode), nil
}

func (o *DeleteOptions) choice(kind string) target.Choice {
	return target.Choice{Kind: kind, ListedBy: "liqoctl get " + kind, Name: o.Name, PeerID: o.ProviderID, Role: "provider"}
}

// read lists the objects of one kind, of one peer if it is named, once it is known that the user may.
func read(ctx context.Context, cluster *target.Cluster, peerID string, list client.ObjectList, group, resource string) error {
	if _, err := cluster.RequireInstalled(ctx); err != nil {
		return err
	}
	namespace := ""
	if peerID != "" {
		namespace = corev1beta1.TenantNamespacePrefix + peerID
	}
	if err := cluster.RequireRights(ctx, target.Rights(group, resource, namespace, "list")); err != nil {
		return err
	}
	return cluster.List(ctx, list, client.InNamespace(namespace))
}
