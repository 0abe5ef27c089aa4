package foreigncluster

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// gather reads what exists of the peering with one cluster. All of it is in that peer's tenant namespace, but the Nodes.
func (r *reconciler) gather(ctx context.Context, id corev1beta1.ClusterID) (*Facts, error) {
	facts := &Facts{Nodes: map[string]*corev1.Node{}}
	namespace := corev1beta1.TenantNamespacePrefix + string(id)
	var (
		tenants    authv1beta1.TenantList
		identities authv1beta1.IdentityList
		slices     authv1beta1.ResourceSliceList
		vns        offloadingv1beta1.VirtualNodeList
		maps       offloadingv1beta1.NamespaceMapList
		nodes      corev1.NodeList
	)
	for _, list := range []client.ObjectList{&tenants, &identities, &slices, &vns, &maps} {
		if err := r.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, fmt.Errorf("listing %T in %s: %w", list, namespace, err)
		}
	}
	if err := r.List(ctx, &nodes, client.MatchingLabels{
		corev1beta1.TypeLabel: corev1beta1.VirtualNodeType, corev1beta1.RemoteClusterIDLabel: string(id),
	}); err != nil {
		return nil, fmt.Errorf("listing the virtual Nodes of cluster %s: %w", id, err)
	}
	for i := range tenants.Items {
		if tenants.Items[i].Spec.ClusterID == id {
			facts.Tenants = append(facts.Tenants, tenants.Items[i])
		}
	}
	for i := range identities.Items {
		if spec := &identities.Items[i].Spec; spec.ClusterID == id && spec.Type == authv1beta1.ControlPlaneIdentityType {
			facts.Identities = append(facts.Identities, identities.Items[i])
		}
	}
	for i := range vns.Items {
		if vns.Items[i].Spec.ClusterID == id {
			facts.VirtualNodes = append(facts.VirtualNodes, vns.Items[i])
		}
	}
	for i := range nodes.Items {
		facts.Nodes[nodes.Items[i].Name] = &nodes.Items[i]
	}
	facts.Slices, facts.Maps = slices.Items, len(maps.Items)
	var err error
	if facts.Network, err = r.network(ctx, namespace, id); err != nil {
		return nil, err
	}
	p := &facts.Probe
	p.Connected, p.Reason, p.Message, p.Known = r.Prober.State(string(id))
	return facts, r.tenantNamespace(ctx, namespace, facts)
}

// tenantNamespace notes the peer's tenant namespace, if there is one.
func (r *reconciler) tenantNamespace(ctx context.Context, name string, facts *Facts) error {
	var tn corev1.Namespace
	switch err := r.Get(ctx, client.ObjectKey{Name: name}, &tn); {
	case err == nil && tn.Labels[corev1beta1.TenantNamespaceLabel] == "true":
		facts.Namespace = name
	case client.IgnoreNotFound(err) != nil:
		return fmt.Errorf("reading Namespace %s: %w", name, err)
	}
	return nil
}

// ofObject finds the peer that an object is about: the one of its tenant namespace, or of its label.
func ofObject(o client.Object) client.ObjectKey {
	switch labels := o.GetLabels(); {
	case o.GetNamespace() != "":
		if id, found := strings.CutPrefix(o.GetNamespace(), corev1beta1.TenantNamespacePrefix); found {
			return client.ObjectKey{Name: id}
		}
	case labels[corev1beta1.TenantNamespaceLabel] == "true", labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType:
		return client.ObjectKey{Name: labels[corev1beta1.RemoteClusterIDLabel]}
	}
	return client.ObjectKey{}
}
