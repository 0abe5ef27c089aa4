package share

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	corev1 "k8s.io/api/core/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// DefaultTimeout of Create, CreateNode and Delete.
const DefaultTimeout = 2 * time.Minute

// CreateOptions of Create.
type CreateOptions struct {
	// Cluster that asks.
	Cluster *target.Cluster
	// ProviderID of the cluster that is asked.
	ProviderID string
	// Name of the ResourceSlice, its VirtualNode and its Node.
	Name string
	// Class of the ResourceSlice; empty means default.
	Class string
	// Resources to ask for; what is left out is for the provider to decide.
	Resources corev1.ResourceList
	// Nodes are the labels of the provider's nodes to ask for; empty are those of all.
	Nodes labels.Set
	// NoVirtualNode asks for resources without making a node of them.
	NoVirtualNode bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

func (o *CreateOptions) request() *Request {
	name := o.Name + " --remote-cluster-id " + o.ProviderID
	return &Request{
		Cluster: o.Cluster, ProviderID: o.ProviderID, Name: o.Name, Class: o.Class, Resources: o.Resources, Nodes: o.Nodes, NoVirtualNode: o.NoVirtualNode,
		Observer: observer(o.Observer), Again: "run the same command again",
		Otherwise: "delete this one with 'liqoctl delete resourceslice " + name + "' and create it again", ClassFlag: "--class",
	}
}

func observer(given progress.Observer) progress.Observer {
	if given == nil {
		return progress.Discard
	}
	return given
}

// Manifest is the ResourceSlice that Create would write, without asking any cluster.
func (o *CreateOptions) Manifest(stamp target.Stamp) (map[string]any, error) {
	r := o.request()
	slice := &authv1beta1.ResourceSlice{ObjectMeta: r.meta()}
	target.Put(slice, stamp)
	if err := r.Render(slice); err != nil {
		return nil, err
	}
	return target.Manifest(slice)
}

// Create asks a provider for a share of its resources by a ResourceSlice of a name of its own, and waits for the answer and the virtual node.
func Create(ctx context.Context, o CreateOptions) error {
	r := o.request()
	if err := r.preconditions(ctx); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(o.Timeout, DefaultTimeout))
	defer cancel()
	if _, _, err := r.Ask(ctx, r.renderNew); err != nil || o.NoVirtualNode {
		return err
	}
	if err := r.VirtualNode(ctx); err != nil {
		return err
	}
	return r.Node(ctx)
}

// preconditions refuse what could never be granted, and what the user may not do.
func (r *Request) preconditions(ctx context.Context) error {
	if err := requireProvider(ctx, r.Cluster, r.ProviderID); err != nil {
		return err
	}
	if err := r.Cluster.RequireRights(ctx, r.Rights()); err != nil {
		return err
	}
	why, err := r.WhyTaken(ctx)
	if err == nil && why == "" && !r.NoVirtualNode {
		why, err = r.whyMadeByHand(ctx)
	}
	if err != nil || why == "" {
		return err
	}
	return failure.Unmet("choose another name", "%s", why)
}

// whyMadeByHand says that there is a virtual node of the name that is made of no slice of that name; empty if there is not.
func (r *Request) whyMadeByHand(ctx context.Context) (string, error) {
	node := &offloadingv1beta1.VirtualNode{ObjectMeta: r.meta()}
	found, err := r.Cluster.Get(ctx, node)
	if owner := metav1.GetControllerOf(node); err != nil || !found || owner != nil && owner.Kind == "ResourceSlice" && owner.Name == r.Name {
		return "", err
	}
	return r.Cluster.Describe(node) + " is not made of that ResourceSlice, and its virtual node would have that name", nil
}

// renderNew fills in a new slice. One that is there is left alone: it is what is wanted, or it is refused.
func (r *Request) renderNew(slice *authv1beta1.ResourceSlice) error {
	if slice.ResourceVersion == "" || !slice.DeletionTimestamp.IsZero() {
		return r.Render(slice)
	}
	if slice.Labels[corev1beta1.ReplicatedLabel] == "true" {
		return failure.Unmet("choose another name", "it is there already: %s asks this cluster with it", r.ProviderID)
	}
	wanted := &authv1beta1.ResourceSlice{}
	if err := r.Render(wanted); err != nil {
		return err
	}
	if cmp.Or(slice.Spec.Class, authv1beta1.DefaultResourceSliceClass) == wanted.Spec.Class &&
		equality.Semantic.DeepEqual(slice.Spec.Resources, wanted.Spec.Resources) && wantsNode(slice) == wantsNode(wanted) &&
		slice.Annotations[authv1beta1.NodeSelectorAnnotation] == wanted.Annotations[authv1beta1.NodeSelectorAnnotation] {
		return nil
	}
	return failure.Unmet("choose another name, or "+r.Otherwise, "it is there already, and asks for something else: %s", asks(slice))
}

func wantsNode(slice *authv1beta1.ResourceSlice) bool {
	return authv1beta1.IsSet(slice.Annotations, authv1beta1.CreateVirtualNodeAnnotation)
}

// asks says what a slice asks for.
func asks(slice *authv1beta1.ResourceSlice) string {
	with := "without a virtual node"
	if wantsNode(slice) {
		with = "with a virtual node"
	}
	if nodes := slice.Annotations[authv1beta1.NodeSelectorAnnotation]; nodes != "" {
		with += ", of nodes with " + nodes
	}
	return fmt.Sprintf("%s of class %s, %s", Amounts(slice.Spec.Resources), cmp.Or(slice.Spec.Class, authv1beta1.DefaultResourceSliceClass), with)
}

// requireProvider refuses a cluster that cannot be asked for anything.
func requireProvider(ctx context.Context, cluster *target.Cluster, id string) error {
	installation, err := cluster.RequireInstalled(ctx)
	if err != nil {
		return err
	}
	if installation.ClusterID == id {
		return failure.Unmet("name the provider with --remote-cluster-id", "%s is this cluster itself", id)
	}
	namespace := corev1beta1.TenantNamespacePrefix + id
	rights := append(target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list"),
		target.Rights(authv1beta1.GroupVersion.Group, "identities", namespace, "get")...)
	if err := cluster.RequireRights(ctx, rights); err != nil {
		return err
	}
	identity := &authv1beta1.Identity{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: authv1beta1.ControlPlaneIdentityPrefix + id}}
	if found, err := cluster.Get(ctx, identity); err != nil || found {
		if err == nil {
			err = cluster.RequireNotCutOff(ctx, id)
		}
		return err
	}
	peer, err := cluster.ForeignCluster(ctx, id)
	if err != nil {
		return err
	}
	if peer == nil {
		return cluster.NoPeer(ctx, id)
	}
	return failure.Unmet("authenticate first with '"+cluster.Command("liqoctl authenticate --remote-kubeconfig FILE")+"', or peer with 'liqoctl peer'",
		"%s is no provider of %s: it was never asked to be", id, cluster.Name)
}
