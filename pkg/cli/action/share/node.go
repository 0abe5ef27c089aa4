package share

import (
	"cmp"
	"context"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// NodeOptions of CreateNode.
type NodeOptions struct {
	// Cluster that gets the virtual node.
	Cluster *target.Cluster
	// ProviderID of the cluster whose resources it shows.
	ProviderID string
	// Name of the VirtualNode and its Node.
	Name string
	// SliceName of the ResourceSlice that it is made of, which then says how large it is and how the provider is reached.
	SliceName string
	// SecretName of the Secret with the kubeconfig for the provider, if it is made of no slice.
	SecretName string
	// Wish has what the user says of it: quantities and classes only without a slice.
	Wish offloadingv1beta1.VirtualNodeSpec
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

func (o *NodeOptions) request(name string) *Request {
	return &Request{Cluster: o.Cluster, ProviderID: o.ProviderID, Name: name, Observer: observer(o.Observer),
		Again: "run the same command again", Otherwise: "create another one", ClassFlag: "--class"}
}

// CreateNode makes a virtual node of a slice, or of a kubeconfig that somebody has, and waits until it takes pods.
func CreateNode(ctx context.Context, o NodeOptions) error {
	r := o.request(o.Name)
	slice, err := o.preconditions(ctx, r)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, DefaultTimeout))
	defer cancel()
	if slice != nil {
		if slice, _, err = o.request(o.SliceName).Ask(ctx, o.renderSlice); err != nil {
			return err
		}
	}
	if err := o.write(ctx, r, slice); err != nil {
		return err
	}
	if err := r.VirtualNode(ctx); err != nil {
		return err
	}
	return r.Node(ctx)
}

// ofItsName tells whether the node is the one that the controller manager makes of a slice that asks for one.
func (o *NodeOptions) ofItsName() bool { return o.SliceName == o.Name }

// renderSlice has a slice ask for the virtual node of its name; for one of another name it stays as it is.
func (o *NodeOptions) renderSlice(slice *authv1beta1.ResourceSlice) error {
	if slice.ResourceVersion == "" {
		return failure.Unmet("create it with 'liqoctl create resourceslice'", "it was deleted meanwhile")
	}
	if o.ofItsName() && !wantsNode(slice) {
		metav1.SetMetaDataAnnotation(&slice.ObjectMeta, authv1beta1.CreateVirtualNodeAnnotation, "true")
	}
	return nil
}

// preconditions refuse what could never run, and what the user may not do. It returns the slice, if the node is to be made of one.
func (o *NodeOptions) preconditions(ctx context.Context, r *Request) (*authv1beta1.ResourceSlice, error) {
	if err := requireProvider(ctx, o.Cluster, o.ProviderID); err != nil {
		return nil, err
	}
	rights := target.Rights(offloadingv1beta1.GroupVersion.Group, "virtualnodes", r.Namespace(), "get", "create", "update")
	rights = append(rights, target.Rights("", "nodes", "", "get")...)
	if o.SliceName != "" {
		rights = append(rights, target.Rights(authv1beta1.GroupVersion.Group, "resourceslices", r.Namespace(), "list", "get", "update")...)
	} else {
		rights = append(rights, target.Rights("", "secrets", r.Namespace(), "get")...)
	}
	if err := o.Cluster.RequireRights(ctx, rights); err != nil {
		return nil, err
	}
	if why, err := r.WhyTaken(ctx); err != nil || why != "" {
		if err == nil {
			err = failure.Unmet("choose another name", "%s", why)
		}
		return nil, err
	}
	node := &offloadingv1beta1.VirtualNode{ObjectMeta: r.meta()}
	found, err := o.Cluster.Get(ctx, node)
	if err != nil {
		return nil, err
	}
	var slice *authv1beta1.ResourceSlice
	if o.SliceName == "" {
		err = o.requireSecret(ctx, r.Namespace())
	} else {
		slice, err = o.slice(ctx)
	}
	if err == nil && found {
		err = o.whyOther(node, slice)
	}
	return slice, err
}

// requireSecret refuses a Secret that has no kubeconfig.
func (o *NodeOptions) requireSecret(ctx context.Context, namespace string) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: o.SecretName}}
	found, err := o.Cluster.Get(ctx, secret)
	if err != nil || found && len(secret.Data[authv1beta1.KubeconfigKey]) > 0 {
		return err
	}
	next := "put the kubeconfig for " + o.ProviderID + " there, under the key " + authv1beta1.KubeconfigKey
	if !found {
		return failure.Unmet(next, "%s does not exist", o.Cluster.Describe(secret))
	}
	return failure.Unmet(next, "%s has no kubeconfig", o.Cluster.Describe(secret))
}

// slice finds the ResourceSlice that the node is to be made of.
func (o *NodeOptions) slice(ctx context.Context) (*authv1beta1.ResourceSlice, error) {
	list := &authv1beta1.ResourceSliceList{}
	if err := o.Cluster.List(ctx, list, client.InNamespace(corev1beta1.TenantNamespacePrefix+o.ProviderID)); err != nil {
		return nil, err
	}
	var known []string
	for i := range list.Items {
		slice := &list.Items[i]
		switch theirs := slice.Labels[corev1beta1.ReplicatedLabel] == "true"; {
		case theirs && slice.Name == o.SliceName:
			return nil, failure.Unmet("create one with 'liqoctl create resourceslice'", "%s asks this cluster with ResourceSlice %s, and grants nothing by it",
				o.ProviderID, slice.Name)
		case theirs:
		case slice.Name != o.SliceName:
			known = append(known, slice.Name)
		case !slice.DeletionTimestamp.IsZero():
			return nil, failure.Unmet("create another one with 'liqoctl create resourceslice'", "%s is being deleted", o.Cluster.Describe(slice))
		case len(slice.Status.NodeSelector) > 0 && o.Wish.OffloadingPatch != nil && len(o.Wish.OffloadingPatch.NodeSelector) > 0:
			return nil, failure.Unmet("leave --node-selector out", "%s says itself on which of its nodes the pods of %s run", o.ProviderID, o.Cluster.Describe(slice))
		default:
			return slice, nil
		}
	}
	next := "create it with 'liqoctl create resourceslice " + o.SliceName + " --remote-cluster-id " + o.ProviderID + "'"
	if likely := failure.Nearest(o.SliceName, known); len(likely) > 0 {
		next = "did you mean " + likely[0] + "?"
	}
	return nil, failure.Unmet(next, "%s asks %s with no ResourceSlice %s", o.Cluster.Name, o.ProviderID, o.SliceName)
}

// whyOther refuses a VirtualNode that is there and other than wanted. The one that the controller manager makes may be given more.
func (o *NodeOptions) whyOther(node *offloadingv1beta1.VirtualNode, slice *authv1beta1.ResourceSlice) error {
	wanted := node.DeepCopy()
	o.fill(wanted, slice)
	sameOwner := slice != nil && metav1.IsControlledBy(node, slice) || slice == nil && metav1.GetControllerOf(node) == nil
	switch {
	case !node.DeletionTimestamp.IsZero():
		return failure.Unmet("wait until it is gone, and run the same command again", "%s is being deleted", o.Cluster.Describe(node))
	case !sameOwner, !o.ofItsName() && !equality.Semantic.DeepEqual(node, wanted):
		deletion := "liqoctl delete virtualnode " + node.Name + " --remote-cluster-id " + o.ProviderID
		return failure.Unmet("choose another name, or delete it with '"+deletion+"' and create it again",
			"%s is there already, and is otherwise", o.Cluster.Describe(node))
	}
	return nil
}

// write makes the VirtualNode. That of the slice's name is made by the controller manager, and gets what the user says of it.
func (o *NodeOptions) write(ctx context.Context, r *Request, slice *authv1beta1.ResourceSlice) error {
	node := &offloadingv1beta1.VirtualNode{ObjectMeta: r.meta()}
	if o.ofItsName() {
		if err := r.made(ctx, node); err != nil {
			return err
		}
	}
	_, err := o.Cluster.Ensure(ctx, node, func() error {
		if node.ResourceVersion != "" {
			if err := o.whyOther(node, slice); err != nil {
				return err
			}
		}
		o.fill(node, slice)
		return nil
	})
	return err
}

// made waits for the VirtualNode that the controller manager makes.
func (r *Request) made(ctx context.Context, node *offloadingv1beta1.VirtualNode) error {
	title := "Making a virtual node of ResourceSlice " + r.Name
	return progress.Run(ctx, r.Observer, r.Cluster.Name, title, func(ctx context.Context, task progress.Task) (string, error) {
		return "ResourceSlice " + r.Name + " has a virtual node", await.Until(ctx, task, r.Cluster.Describe(node)+" to be there",
			func(ctx context.Context) (bool, string, error) {
				found, err := r.Cluster.Get(ctx, node)
				return found, r.whyNoVirtualNode(ctx), err
			})
	})
}

// fill puts into a VirtualNode what it is made of, and what the user says of it, and leaves the rest alone. How large it is, and what classes
// there are, the controller manager fills in from the slice.
func (o *NodeOptions) fill(node *offloadingv1beta1.VirtualNode, slice *authv1beta1.ResourceSlice) {
	spec, wish := &node.Spec, &o.Wish
	spec.ClusterID = corev1beta1.ClusterID(o.ProviderID)
	switch {
	case slice == nil:
		spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: o.SecretName}
		spec.ResourceQuota.Hard = wish.ResourceQuota.Hard
		spec.StorageClasses, spec.IngressClasses, spec.LoadBalancerClasses = wish.StorageClasses, wish.IngressClasses, wish.LoadBalancerClasses
	case !metav1.IsControlledBy(node, slice):
		metav1.SetMetaDataLabel(&node.ObjectMeta, authv1beta1.ResourceSliceNameLabel, slice.Name)
		owner := metav1.NewControllerRef(slice, authv1beta1.GroupVersion.WithKind("ResourceSlice"))
		owner.BlockOwnerDeletion = nil
		node.OwnerReferences = append(node.OwnerReferences, *owner)
		spec.KubeconfigSecretRef = &corev1.LocalObjectReference{Name: authv1beta1.KubeconfigSecretPrefix + authv1beta1.ResourceSliceIdentityPrefix + slice.Name}
	}
	if len(wish.Labels) > 0 {
		labels := maps.Clone(wish.Labels)
		for key, value := range spec.Labels {
			if _, said := labels[key]; !said {
				labels[key] = value
			}
		}
		spec.Labels = labels
	}
	spec.CreateNode = cmp.Or(wish.CreateNode, spec.CreateNode)
	spec.DisableNetworkCheck = cmp.Or(wish.DisableNetworkCheck, spec.DisableNetworkCheck)
	spec.VkOptionsTemplateRef = cmp.Or(wish.VkOptionsTemplateRef, spec.VkOptionsTemplateRef)
	if patch := wish.OffloadingPatch; patch != nil {
		if spec.OffloadingPatch == nil {
			spec.OffloadingPatch = &offloadingv1beta1.OffloadingPatch{}
		}
		if len(patch.NodeSelector) > 0 {
			spec.OffloadingPatch.NodeSelector = patch.NodeSelector
		}
		spec.OffloadingPatch.RuntimeClassName = cmp.Or(patch.RuntimeClassName, spec.OffloadingPatch.RuntimeClassName)
	}
}

// Manifest is the VirtualNode that CreateNode would write. Only that of a slice needs the cluster: the slice's ID is part of it.
func (o *NodeOptions) Manifest(ctx context.Context, stamp target.Stamp) (map[string]any, error) {
	var slice *authv1beta1.ResourceSlice
	if o.SliceName != "" {
		if _, err := o.Cluster.RequireInstalled(ctx); err != nil {
			return nil, err
		}
		var err error
		if slice, err = o.slice(ctx); err != nil {
			return nil, err
		}
	}
	node := &offloadingv1beta1.VirtualNode{ObjectMeta: o.request(o.Name).meta()}
	target.Put(node, stamp)
	o.fill(node, slice)
	return target.Manifest(node)
}
