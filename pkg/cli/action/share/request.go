package share

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// denials is how often the same denial must be seen in a row before it is believed: the provider may be working on it.
const denials = 4

// Request asks a provider for a share of its resources, by a ResourceSlice, and may make a virtual node of it.
type Request struct {
	// Cluster that asks, and its ID, which the controller manager fills in if it is empty.
	Cluster    *target.Cluster
	ConsumerID string
	// ProviderID of the cluster that is asked.
	ProviderID string
	// Name of the ResourceSlice, its VirtualNode and its Node.
	Name string
	// Class of the ResourceSlice; empty means what it has, and else default.
	Class string
	// Resources to ask for; what is left out is for the provider to decide. nil means those that are asked for already.
	Resources corev1.ResourceList
	// Nodes are the labels of the provider's nodes to ask for; none leave what is asked for already, and else all.
	Nodes labels.Set
	// NoVirtualNode asks for resources without making a node of them.
	NoVirtualNode bool
	// Observer is told each step.
	Observer progress.Observer
	// Again says how to ask again, Otherwise how to ask for something else, and ClassFlag with which flag for another class.
	Again, Otherwise, ClassFlag string
}

// Namespace that the objects are in.
func (r *Request) Namespace() string { return corev1beta1.TenantNamespacePrefix + r.ProviderID }

func (r *Request) meta() metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.Namespace(), Name: r.Name}
}

// Rights are what a user needs for all steps.
func (r *Request) Rights() []target.Right {
	rights := target.Rights(authv1beta1.GroupVersion.Group, "resourceslices", r.Namespace(), "get", "create", "update")
	if r.NoVirtualNode {
		return rights
	}
	rights = append(rights, target.Rights(offloadingv1beta1.GroupVersion.Group, "virtualnodes", r.Namespace(), "get")...)
	return append(rights, target.Rights("", "nodes", "", "get")...)
}

// WhyTaken says that the name of the node is that of one that is none of the provider's, so that the virtual node could never be created; empty
// if it is not.
func (r *Request) WhyTaken(ctx context.Context) (string, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
	found, err := r.Cluster.Get(ctx, node)
	if err != nil || !found || r.NoVirtualNode {
		return "", err
	}
	if node.Labels[corev1beta1.TypeLabel] != corev1beta1.VirtualNodeType {
		return r.Cluster.Describe(node) + " is a real node, and the virtual node would have that name", nil
	}
	if owner := node.Labels[corev1beta1.RemoteClusterIDLabel]; owner != "" && owner != r.ProviderID {
		return r.Cluster.Describe(node) + " is a virtual node of " + owner + ", and that of " + r.ProviderID + " would have its name", nil
	}
	return "", nil
}

// Ask writes the slice as render wants it, and waits for the provider's answer. The change is empty if that came to nothing.
func (r *Request) Ask(ctx context.Context, render func(*authv1beta1.ResourceSlice) error) (*authv1beta1.ResourceSlice, target.Change, error) {
	slice, change := &authv1beta1.ResourceSlice{ObjectMeta: r.meta()}, target.Change("")
	err := progress.Run(ctx, r.Observer, r.Cluster.Name, "Asking "+r.ProviderID+" for resources", func(ctx context.Context, task progress.Task) (string, error) {
		var err error
		if change, err = r.Cluster.Ensure(ctx, slice, func() error { return render(slice) }); err != nil {
			return "", err
		}
		judge := &verdict{request: r}
		err = await.Until(ctx, task, r.Cluster.Describe(slice)+" to be granted", func(ctx context.Context) (bool, string, error) {
			if found, err := r.Cluster.Get(ctx, slice); err != nil || !found {
				return false, "it is gone", err
			}
			return judge.look(slice)
		})
		if err != nil {
			return "", err
		}
		granted := fmt.Sprintf("%s granted %s", r.ProviderID, Amounts(slice.Status.Resources))
		if len(r.Nodes) > 0 && !labels.Equals(slice.Status.NodeSelector, r.Nodes) {
			return "", progress.Warned(granted + ", and of all its nodes: who answers this class there knows no node selectors")
		}
		if less := Shortfall(slice.Status.Resources, slice.Spec.Resources); less != "" {
			return "", progress.Warned(granted + "; less than asked for: " + less)
		}
		return granted, nil
	})
	return slice, change, err
}

// Render fills in what is wanted of the slice; a request that was changed by hand stays unless another one is wanted.
func (r *Request) Render(slice *authv1beta1.ResourceSlice) error {
	if !slice.DeletionTimestamp.IsZero() {
		return failure.Unmet("wait until it is gone, and "+r.Again, "it is being deleted")
	}
	for key, value := range map[string]string{
		corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: r.ProviderID, corev1beta1.RemoteClusterIDLabel: r.ProviderID,
	} {
		metav1.SetMetaDataLabel(&slice.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, authv1beta1.CreateVirtualNodeAnnotation, fmt.Sprint(!r.NoVirtualNode))
	if len(r.Nodes) > 0 {
		metav1.SetMetaDataAnnotation(&slice.ObjectMeta, authv1beta1.NodeSelectorAnnotation, r.Nodes.String())
	}
	spec := &slice.Spec
	if spec.ConsumerClusterID == nil && r.ConsumerID != "" {
		spec.ConsumerClusterID = ptr.To(corev1beta1.ClusterID(r.ConsumerID))
	}
	if spec.ProviderClusterID == nil {
		spec.ProviderClusterID = ptr.To(corev1beta1.ClusterID(r.ProviderID))
	}
	spec.Class = cmp.Or(authv1beta1.ResourceSliceClass(r.Class), spec.Class, authv1beta1.DefaultResourceSliceClass)
	if r.Resources != nil && !equality.Semantic.DeepEqual(spec.Resources, r.Resources) {
		spec.Resources = r.Resources
	}
	return nil
}

// wayOut is what a consumer can do about a denial.
func (r *Request) wayOut(reason string) string {
	switch reason {
	case authv1beta1.ReasonDefaultClassDisabled:
		return "ask the provider's administrator for its class, and " + r.Otherwise + " with " + r.ClassFlag
	case authv1beta1.ReasonTenantDrained:
		return "ask the provider's administrator to activate the tenant again, and " + r.Again
	case authv1beta1.ReasonTenantLimit:
		return "delete a ResourceSlice that is not needed any more, or ask the provider's administrator, and " + r.Again
	case authv1beta1.ReasonInvalidSlice:
		return "ask for something else, and " + r.Otherwise
	default:
		return "ask the provider's administrator, and " + r.Again
	}
}

// verdict reads the provider's answer off a slice's conditions.
type verdict struct {
	request *Request
	denial  string
	seen    int
}

func (v *verdict) look(slice *authv1beta1.ResourceSlice) (done bool, missing string, err error) {
	authentication, resources := find(slice.Status.Conditions, authv1beta1.AuthenticationCondition), find(slice.Status.Conditions, authv1beta1.ResourcesCondition)
	for _, condition := range []*corev1beta1.Condition{authentication, resources} {
		if condition != nil && condition.ObservedGeneration < slice.Generation {
			return false, "the provider has not answered the present request yet", nil
		}
		if condition == nil || condition.Status != authv1beta1.Denied {
			continue
		}
		if v.denial != condition.Reason {
			v.denial, v.seen = condition.Reason, 0
		}
		if v.seen++; v.seen >= denials {
			return false, "", failure.New(failure.Failed, v.request.wayOut(condition.Reason),
				"the provider denied ResourceSlice %s: %s: %s", slice.Name, condition.Reason, condition.Message)
		}
		return false, condition.Reason + ": " + condition.Message, nil
	}
	if accepted(slice) {
		return true, "", nil
	}
	if ready := find(slice.Status.Summary, corev1beta1.ConditionReady); ready != nil && ready.Message != "" {
		return false, ready.Reason + ": " + ready.Message, nil
	}
	return false, "no answer of the provider yet", nil
}

// accepted tells whether the provider accepted both parts of a slice.
func accepted(slice *authv1beta1.ResourceSlice) bool {
	for _, kind := range []string{authv1beta1.AuthenticationCondition, authv1beta1.ResourcesCondition} {
		if condition := find(slice.Status.Conditions, kind); condition == nil || condition.Status != authv1beta1.Accepted {
			return false
		}
	}
	return true
}

func find(conditions []corev1beta1.Condition, kind string) *corev1beta1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// VirtualNode waits for the VirtualNode that the controller manager makes of the slice.
func (r *Request) VirtualNode(ctx context.Context) error {
	return progress.Run(ctx, r.Observer, r.Cluster.Name, "Creating virtual node "+r.Name, func(ctx context.Context, task progress.Task) (string, error) {
		node := &offloadingv1beta1.VirtualNode{ObjectMeta: r.meta()}
		err := await.Until(ctx, task, r.Cluster.Describe(node)+" to be ready", func(ctx context.Context) (bool, string, error) {
			found, err := r.Cluster.Get(ctx, node)
			if err != nil || !found {
				return false, r.whyNoVirtualNode(ctx), err
			}
			ready := find(node.Status.All(), corev1beta1.ConditionReady)
			if ready == nil {
				return false, "the controller manager has not looked at it yet", nil
			}
			return ready.Status == string(metav1.ConditionTrue), ready.Reason + ": " + ready.Message, nil
		})
		return "Virtual node " + node.Name + " runs", err
	})
}

// whyNoVirtualNode is what the slice says while its VirtualNode does not exist.
func (r *Request) whyNoVirtualNode(ctx context.Context) string {
	slice := &authv1beta1.ResourceSlice{ObjectMeta: r.meta()}
	if found, err := r.Cluster.Get(ctx, slice); err == nil && found {
		for _, kind := range []string{authv1beta1.IdentityCondition, corev1beta1.ConditionReady} {
			condition := find(slice.Status.Summary, kind)
			if condition == nil || condition.Status == string(metav1.ConditionTrue) || condition.Message == "" {
				continue
			}
			return condition.Reason + ": " + condition.Message
		}
	}
	return "the controller manager has not created it yet"
}

// Node waits until pods can be scheduled onto the virtual node.
func (r *Request) Node(ctx context.Context) error {
	return progress.Run(ctx, r.Observer, r.Cluster.Name, "Waiting for node "+r.Name, func(ctx context.Context, task progress.Task) (string, error) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.Name}}
		virtual := &offloadingv1beta1.VirtualNode{ObjectMeta: r.meta()}
		if found, err := r.Cluster.Get(ctx, virtual); err == nil && found && !ptr.Deref(virtual.Spec.CreateNode, true) {
			return "", progress.Warned("Virtual node " + virtual.Name + " has no Node, because its createNode is false")
		}
		err := await.Until(ctx, task, r.Cluster.Describe(node)+" to be ready", func(ctx context.Context) (bool, string, error) {
			if found, err := r.Cluster.Get(ctx, node); err != nil || !found {
				return false, "it does not exist yet", err
			}
			return Ready(node)
		})
		return "Node " + node.Name + " is ready", err
	})
}

// Ready tells whether a Node is ready, and else what its kubelet says.
func Ready(node *corev1.Node) (ready bool, missing string, err error) {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, condition.Reason + ": " + condition.Message, nil
		}
	}
	return false, "its kubelet has not reported yet", nil
}

// Shortfall names what less was granted of than asked for, as cpu 4 of 8; empty if nothing.
func Shortfall(granted, asked corev1.ResourceList) string {
	var parts []string
	for _, name := range capacity.Less(granted, asked) {
		has, want := granted[name], asked[name]
		parts = append(parts, fmt.Sprintf("%s %s of %s", name, has.String(), want.String()))
	}
	return strings.Join(parts, ", ")
}

// Amounts says a list of resources in one line, in a fixed order.
func Amounts(resources corev1.ResourceList) string {
	if len(resources) == 0 {
		return "nothing in particular"
	}
	order := map[corev1.ResourceName]int{corev1.ResourceCPU: -3, corev1.ResourceMemory: -2, corev1.ResourcePods: -1}
	names := slices.SortedFunc(maps.Keys(resources), func(a, b corev1.ResourceName) int {
		if order[a] != order[b] {
			return order[a] - order[b]
		}
		return strings.Compare(string(a), string(b))
	})
	parts := make([]string, len(names))
	for i, name := range names {
		quantity := resources[name]
		parts[i] = string(name) + " " + quantity.String()
	}
	return strings.Join(parts, ", ")
}
