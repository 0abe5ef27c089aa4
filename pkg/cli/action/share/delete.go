package share

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/target"
)

// DeleteOptions of Delete and DeleteNode.
type DeleteOptions struct {
	// Cluster that has the object.
	Cluster *target.Cluster
	// Name of the ResourceSlice or VirtualNode.
	Name string
	// ProviderID of the provider whose it is; empty means whoever has something of the name.
	ProviderID string
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm asks whether to go on; the question says what goes. An error ends the command. nil means that nobody is asked.
	Confirm func(ctx context.Context, question string) error
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// StopAsking has a slice ask for no virtual node any more: it would get a new one as soon as the present one is gone.
func StopAsking(ctx context.Context, cluster *target.Cluster, slice *authv1beta1.ResourceSlice) error {
	if !wantsNode(slice) {
		return nil
	}
	changed := slice.DeepCopy()
	changed.Annotations[authv1beta1.CreateVirtualNodeAnnotation] = "false"
	if err := cluster.Client.Patch(ctx, changed, client.MergeFrom(slice)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing %s: %w", cluster.Describe(slice), err)
	}
	return nil
}

// Delete gives back what a slice was granted. Its virtual nodes are drained and removed first.
func Delete(ctx context.Context, o DeleteOptions) error {
	slice, err := o.slice(ctx)
	if err != nil {
		return err
	}
	if err := o.allowed(ctx, slice, "resourceslices"); err != nil {
		return err
	}
	nodes := &offloadingv1beta1.VirtualNodeList{}
	if err := o.Cluster.List(ctx, nodes, client.InNamespace(slice.Namespace)); err != nil {
		return err
	}
	var going []string
	secret := authv1beta1.KubeconfigSecretPrefix + authv1beta1.ResourceSliceIdentityPrefix + slice.Name
	for i := range nodes.Items {
		node := &nodes.Items[i]
		switch {
		case metav1.IsControlledBy(node, slice):
			going = append(going, node.Name)
		case node.Spec.KubeconfigSecretRef != nil && node.Spec.KubeconfigSecretRef.Name == secret:
			return failure.Unmet("delete that first with '"+o.Cluster.Command("liqoctl delete virtualnode "+node.Name)+"'",
				"%s reaches the provider by the rights of %s", o.Cluster.Describe(node), o.Cluster.Describe(slice))
		}
	}
	goes := []string{"gives back what it was granted (" + Amounts(slice.Status.Resources) + ")"}
	if err := o.ask(ctx, slice, nodes, going, goes, ofPeering(slice)); err != nil {
		return err
	}
	return o.remove(ctx, slice)
}

// ofPeering says of a slice that 'liqoctl peer' made it.
func ofPeering(slice *authv1beta1.ResourceSlice) string {
	if slice.Name != slice.Labels[corev1beta1.RemoteIDLabel] {
		return ""
	}
	return " It is the ResourceSlice of the peering, which goes on without it; 'liqoctl peer' asks with it again."
}

// DeleteNode drains and removes a virtual node. A slice that asked for it keeps what it was granted, and asks for none any more.
func DeleteNode(ctx context.Context, o DeleteOptions) error {
	node, err := o.node(ctx)
	if err != nil {
		return err
	}
	if err := o.allowed(ctx, node, "virtualnodes"); err != nil {
		return err
	}
	nodes := &offloadingv1beta1.VirtualNodeList{}
	if err := o.Cluster.List(ctx, nodes, client.InNamespace(node.Namespace)); err != nil {
		return err
	}
	slice, err := o.ownerOf(ctx, node)
	if err != nil {
		return err
	}
	stays := ""
	if slice != nil {
		stays = " ResourceSlice " + slice.Name + " keeps what it was granted."
	}
	if err := o.ask(ctx, node, nodes, []string{node.Name}, nil, stays); err != nil {
		return err
	}
	if slice != nil && slice.Name == node.Name {
		if err := StopAsking(ctx, o.Cluster, slice); err != nil {
			return err
		}
	}
	return o.remove(ctx, node)
}

// ownerOf is the slice that a virtual node was made of; nil if it was made of none, or of one that is gone.
func (o *DeleteOptions) ownerOf(ctx context.Context, node *offloadingv1beta1.VirtualNode) (*authv1beta1.ResourceSlice, error) {
	owner := metav1.GetControllerOf(node)
	if owner == nil {
		return nil, nil
	}
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: node.Namespace, Name: owner.Name}}
	found, err := o.Cluster.Get(ctx, slice)
	if err != nil || !found || !metav1.IsControlledBy(node, slice) {
		return nil, err
	}
	return slice, nil
}

// remove deletes the object, and waits until it is gone. Whoever was asked may have taken their time.
func (o *DeleteOptions) remove(ctx context.Context, object client.Object) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, DefaultTimeout))
	defer cancel()
	return removal.Delete(ctx, observer(o.Observer), o.Cluster, object, true)
}

// allowed refuses what the user may not do, and what would wait for a provider that does not answer.
func (o *DeleteOptions) allowed(ctx context.Context, object client.Object, resource string) error {
	group, namespace := authv1beta1.GroupVersion.Group, object.GetNamespace()
	rights := target.Rights(group, "resourceslices", namespace, "get")
	if resource == "virtualnodes" {
		group = offloadingv1beta1.GroupVersion.Group
		rights = append(rights, target.Rights(authv1beta1.GroupVersion.Group, "resourceslices", namespace, "patch")...)
	}
	rights = append(rights, target.Rights(group, resource, namespace, "get", "delete")...)
	rights = append(rights, target.Rights(offloadingv1beta1.GroupVersion.Group, "virtualnodes", namespace, "list")...)
	rights = append(rights, target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list")...)
	peerID := strings.TrimPrefix(namespace, corev1beta1.TenantNamespacePrefix)
	if err := o.Cluster.RequireRights(ctx, append(rights, offloaded.Rights(peerID, "")...)); err != nil {
		return err
	}
	return o.Cluster.RequireAnswering(ctx, peerID)
}

// ask says what goes with an object, and asks whether to go on. With the last virtual node goes all that is offloaded to the provider, which is
// refused while volumes there hold data.
func (o *DeleteOptions) ask(ctx context.Context, object client.Object, nodes *offloadingv1beta1.VirtualNodeList, going, goes []string, stays string) error {
	peerID := strings.TrimPrefix(object.GetNamespace(), corev1beta1.TenantNamespacePrefix)
	var pods []string
	for _, node := range going {
		on, err := offloaded.On(ctx, o.Cluster, node, "")
		if err != nil {
			return err
		}
		pods = append(pods, on...)
	}
	if len(pods) > 0 {
		goes = append(goes, "evicts "+offloaded.Counted("pod", pods))
	}
	if len(going) > 0 {
		goes = append(goes, "removes "+offloaded.Counted("virtual node", going))
	}
	if isLast(nodes, going) {
		all, err := offloaded.At(ctx, o.Cluster, peerID, "")
		if err != nil {
			return err
		}
		if claims := all.Claims(); len(claims) > 0 {
			return failure.Unmet("move them with 'liqoctl move volume', delete the claims, or end the peering with 'liqoctl unpeer --delete-volumes'",
				"%s would take the last virtual node of %s away, and there is the data of %s", o.Cluster.Describe(object), peerID, offloaded.Counted("volume", claims))
		}
		if len(all.Namespaces) > 0 {
			goes = append(goes, "deletes "+all.Twins()+" at "+peerID+" with everything in "+all.Them()+", because no virtual node of "+peerID+" is left")
		}
	}
	if o.Confirm == nil {
		return nil
	}
	return o.Confirm(ctx, "Deleting "+o.Cluster.Describe(object)+" "+offloaded.Enumerate(goes)+"."+stays)
}

// isLast tells whether no virtual node stays, and one goes.
func isLast(nodes *offloadingv1beta1.VirtualNodeList, going []string) bool {
	gone := map[string]bool{}
	for _, name := range going {
		gone[name] = true
	}
	for i := range nodes.Items {
		if node := &nodes.Items[i]; node.DeletionTimestamp.IsZero() && !gone[node.Name] {
			return false
		}
	}
	return len(going) > 0
}
