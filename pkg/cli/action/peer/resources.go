package peer

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

func isVirtual(node *corev1.Node) bool {
	return node.Labels[corev1beta1.TypeLabel] == corev1beta1.VirtualNodeType
}

// slice asks the provider for resources, and waits for its answer.
func (r *run) slice(ctx context.Context) error {
	if r.NoResourceSlice {
		return nil
	}
	consumer := r.pair.Consumer
	return progress.Run(ctx, r.Observer, consumer.Name, "Asking "+r.pair.ProviderID+" for resources", func(ctx context.Context, task progress.Task) (string, error) {
		slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: r.pair.ConsumerNamespace(), Name: r.pair.ProviderID}}
		change, err := consumer.Ensure(ctx, slice, func() error { return r.render(slice) })
		if err != nil {
			return "", err
		}
		r.report.Changed = r.report.Changed || change != target.Unchanged
		r.report.ResourceSlice = slice.Name
		judge := &verdict{}
		err = await.Until(ctx, task, consumer.Describe(slice)+" to be granted", func(ctx context.Context) (bool, string, error) {
			if found, err := consumer.Get(ctx, slice); err != nil || !found {
				return false, "it is gone", err
			}
			return judge.look(slice)
		})
		if err != nil {
			return "", err
		}
		r.report.Resources = slice.Status.Resources
		granted := fmt.Sprintf("%s granted %s", r.pair.ProviderID, Amounts(slice.Status.Resources))
		if less := Shortfall(slice.Status.Resources, slice.Spec.Resources); less != "" {
			return "", progress.Warned(granted + "; less than asked for: " + less)
		}
		return granted, nil
	})
}

// render fills in what this command wants of the slice; a request that was changed by hand stays unless flags say otherwise.
func (r *run) render(slice *authv1beta1.ResourceSlice) error {
	if !slice.DeletionTimestamp.IsZero() {
		return failure.Unmet("wait for 'liqoctl unpeer' to end, and peer again", "it is being deleted")
	}
	for key, value := range map[string]string{
		corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: r.pair.ProviderID, corev1beta1.RemoteClusterIDLabel: r.pair.ProviderID,
	} {
		metav1.SetMetaDataLabel(&slice.ObjectMeta, key, value)
	}
	metav1.SetMetaDataAnnotation(&slice.ObjectMeta, authv1beta1.CreateVirtualNodeAnnotation, fmt.Sprint(!r.NoVirtualNode))
	spec := &slice.Spec
	if spec.ConsumerClusterID == nil {
		spec.ConsumerClusterID = ptr.To(corev1beta1.ClusterID(r.pair.ConsumerID))
	}
	if spec.ProviderClusterID == nil {
		spec.ProviderClusterID = ptr.To(corev1beta1.ClusterID(r.pair.ProviderID))
	}
	spec.Class = cmp.Or(authv1beta1.ResourceSliceClass(r.Class), spec.Class, authv1beta1.DefaultResourceSliceClass)
	if r.Resources != nil && !equality.Semantic.DeepEqual(spec.Resources, r.Resources) {
		spec.Resources = r.Resources
	}
	return nil
}

// denied are the ways out of denials that a consumer has.
var denied = map[string]string{
	authv1beta1.ReasonDefaultClassDisabled: "ask the provider's administrator for its class, and peer again with --resource-slice-class",
	authv1beta1.ReasonTenantDrained:        "ask the provider's administrator to activate the tenant again, and peer again",
	authv1beta1.ReasonTenantLimit:          "delete a ResourceSlice that is not needed any more, or ask the provider's administrator, and peer again",
	authv1beta1.ReasonInvalidSlice:         "ask for something else, and peer again",
}

// verdict reads the provider's answer off a slice's conditions.
type verdict struct {
	denial string
	seen   int
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
			return false, "", failure.New(failure.Failed, cmp.Or(denied[condition.Reason], "ask the provider's administrator, and peer again"),
				"the provider denied ResourceSlice %s: %s: %s", slice.Name, condition.Reason, condition.Message)
		}
		return false, condition.Reason + ": " + condition.Message, nil
	}
	accepted := authentication != nil && authentication.Status == authv1beta1.Accepted &&
		resources != nil && resources.Status == authv1beta1.Accepted
	if accepted {
		return true, "", nil
	}
	if ready := find(slice.Status.Summary, corev1beta1.ConditionReady); ready != nil && ready.Message != "" {
		return false, ready.Reason + ": " + ready.Message, nil
	}
	return false, "no answer of the provider yet", nil
}

func find(conditions []corev1beta1.Condition, kind string) *corev1beta1.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// virtualNode waits for the VirtualNode that the controller manager makes of the slice.
func (r *run) virtualNode(ctx context.Context) error {
	if !r.wantsNode() {
		return nil
	}
	consumer := r.pair.Consumer
	return progress.Run(ctx, r.Observer, consumer.Name, "Creating virtual node "+r.pair.ProviderID, func(ctx context.Context, task progress.Task) (string, error) {
		node := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: r.pair.ConsumerNamespace(), Name: r.pair.ProviderID}}
		err := await.Until(ctx, task, consumer.Describe(node)+" to be ready", func(ctx context.Context) (bool, string, error) {
			found, err := consumer.Get(ctx, node)
			if err != nil || !found {
				return false, r.whyNoVirtualNode(ctx), err
			}
			ready := find(node.Status.All(), corev1beta1.ConditionReady)
			if ready == nil {
				return false, "the controller manager has not looked at it yet", nil
			}
			return ready.Status == string(metav1.ConditionTrue), ready.Reason + ": " + ready.Message, nil
		})
		r.report.VirtualNode = node.Name
		return "Virtual node " + node.Name + " runs", err
	})
}

// whyNoVirtualNode is what the slice says while its VirtualNode does not exist.
func (r *run) whyNoVirtualNode(ctx context.Context) string {
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: r.pair.ConsumerNamespace(), Name: r.pair.ProviderID}}
	if found, err := r.pair.Consumer.Get(ctx, slice); err == nil && found {
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

// node waits until pods can be scheduled onto the virtual node.
func (r *run) node(ctx context.Context) error {
	if !r.wantsNode() {
		return nil
	}
	consumer := r.pair.Consumer
	return progress.Run(ctx, r.Observer, consumer.Name, "Waiting for node "+r.pair.ProviderID, func(ctx context.Context, task progress.Task) (string, error) {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: r.pair.ProviderID}}
		virtual := &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: r.pair.ConsumerNamespace(), Name: r.pair.ProviderID}}
		if found, err := consumer.Get(ctx, virtual); err == nil && found && !ptr.Deref(virtual.Spec.CreateNode, true) {
			return "", progress.Warned("Virtual node " + virtual.Name + " has no Node, because its createNode is false")
		}
		err := await.Until(ctx, task, consumer.Describe(node)+" to be ready", func(ctx context.Context) (bool, string, error) {
			if found, err := consumer.Get(ctx, node); err != nil || !found {
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
