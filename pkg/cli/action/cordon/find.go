package cordon

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
)

// candidate is an object that a name may stand for, and the consumer whose it is.
type candidate struct {
	client.Object
	consumer string
}

// tenant finds the Tenant that the user means.
func (o *Options) tenant(ctx context.Context) (*authv1beta1.Tenant, error) {
	list := &authv1beta1.TenantList{}
	if err := o.list(ctx, list, "tenants"); err != nil {
		return nil, err
	}
	all := make([]candidate, len(list.Items))
	for i := range list.Items {
		all[i] = candidate{&list.Items[i], string(list.Items[i].Spec.ClusterID)}
	}
	object, err := o.choose("tenant", all)
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
	var all []candidate
	own := false
	for i := range list.Items {
		slice := &list.Items[i]
		if slice.Labels[corev1beta1.ReplicatedLabel] != "true" {
			own = own || slice.Name == o.Name
			continue
		}
		all = append(all, candidate{slice, slice.Labels[corev1beta1.OriginIDLabel]})
	}
	object, err := o.choose("resourceslice", all)
	if err != nil && own && !slices.ContainsFunc(all, func(c candidate) bool { return c.GetName() == o.Name }) {
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
func (o *Options) choose(kind string, all []candidate) (client.Object, error) {
	var found []candidate
	var known, places []string
	for _, c := range all {
		if o.ConsumerID != "" && c.consumer != o.ConsumerID {
			continue
		}
		known = append(known, c.GetName())
		if c.GetName() == o.Name {
			found, places = append(found, c), append(places, fmt.Sprintf("that of %s in namespace %s", c.consumer, c.GetNamespace()))
		}
	}
	switch {
	case len(found) == 0:
		return nil, o.unknown(kind, known)
	case len(found) > 1:
		return nil, failure.Unmet("say whose is meant with --remote-cluster-id", "%s has several %ss of the name %s: %s",
			o.Cluster.Name, kind, o.Name, strings.Join(places, ", "))
	case found[0].GetDeletionTimestamp() != nil:
		return nil, failure.Unmet("it needs nothing any more", "%s is being deleted", o.Cluster.Describe(found[0].Object))
	default:
		return found[0].Object, nil
	}
}

// unknown says that nothing has the name, and what may be meant.
func (o *Options) unknown(kind string, known []string) error {
	next := "list them with '" + o.Cluster.Command("kubectl get "+kind+"s -A") + "'"
	if likely := failure.Nearest(o.Name, known); len(likely) > 0 {
		next = "did you mean " + likely[0] + "?"
	}
	whose := ""
	if o.ConsumerID != "" {
		whose = " of consumer " + o.ConsumerID
	}
	return failure.Unmet(next, "%s has no %s %s%s", o.Cluster.Name, kind, o.Name, whose)
}
