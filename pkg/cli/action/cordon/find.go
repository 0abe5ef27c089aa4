package cordon

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
)

// tenant finds the Tenant that the user means.
func (o *Options) tenant(ctx context.Context) (*authv1beta1.Tenant, error) {
	list := &authv1beta1.TenantList{}
	if err := o.list(ctx, list, "tenants"); err != nil {
		return nil, err
	}
	all := make([]target.Named, len(list.Items))
	for i := range list.Items {
		all[i] = target.Named{Object: &list.Items[i], PeerID: string(list.Items[i].Spec.ClusterID)}
	}
	object, err := o.choose("tenant", "kubectl get tenants -A", all)
	if err != nil {
		return nil, err
	}
	return object.(*authv1beta1.Tenant), nil
}

// slice finds the ResourceSlice that the user means, and whose it is. Those that this cluster asks its own providers with are none.
func (o *Options) slice(ctx context.Context) (*authv1beta1.ResourceSlice, error) {
	list := &authv1beta1.ResourceSliceList{}
	if err := o.list(ctx, list, "resourceslices"); err != nil {
		return nil, err
	}
	var all []target.Named
	own := false
	for i := range list.Items {
		slice := &list.Items[i]
		if slice.Labels[corev1beta1.ReplicatedLabel] != "true" {
			own = own || slice.Name == o.Name
			continue
		}
		all = append(all, target.Named{Object: slice, PeerID: slice.Labels[corev1beta1.OriginIDLabel]})
	}
	object, err := o.choose("resourceslice", "liqoctl get resourceslice", all)
	if err != nil && own && !slices.ContainsFunc(all, func(n target.Named) bool { return n.GetName() == o.Name }) {
		return nil, failure.Unmet("run it at the provider, or cordon the virtual node with 'kubectl cordon "+o.Name+"'",
			"%s asks with ResourceSlice %s itself: only the provider cordons it", o.Cluster.Name, o.Name)
	}
	if err != nil {
		return nil, err
	}
	return object.(*authv1beta1.ResourceSlice), nil
}

// list lists the objects of all namespaces, once it is known that the user may.
func (o *Options) list(ctx context.Context, list client.ObjectList, resource string) error {
	if _, err := o.Cluster.RequireInstalled(ctx); err != nil {
		return err
	}
	if err := o.Cluster.RequireRights(ctx, target.Rights(authv1beta1.GroupVersion.Group, resource, "", "list")); err != nil {
		return err
	}
	return o.Cluster.List(ctx, list)
}

// choose returns the one object that has the name, of the consumer if one was named.
func (o *Options) choose(kind, listedBy string, all []target.Named) (client.Object, error) {
	object, err := o.Cluster.Choose(target.Choice{Kind: kind, ListedBy: listedBy, Name: o.Name, PeerID: o.ConsumerID, Role: "consumer"}, all)
	if err == nil && object.GetDeletionTimestamp() != nil {
		return nil, failure.Unmet("it needs nothing any more", "%s is being deleted", o.Cluster.Describe(object))
	}
	return object, err
}
