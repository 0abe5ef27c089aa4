package virtualnode

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/translation"
	"liqo.io/liqo/pkg/placement"
)

// poll is how long to wait for something that sends no event.
const poll = 5 * time.Second

// scope is what the phases of one pass learn.
type scope struct {
	// vn as it is in the API server, changed by the phases.
	vn *offloadingv1beta1.VirtualNode
	// before is the object as it was read.
	before *offloadingv1beta1.VirtualNode
	// node of the name, whoever it belongs to, or nil; set by gather and register.
	node *corev1.Node
	// deployment of the virtual kubelet, or nil; set by gather and deploy.
	deployment *appsv1.Deployment
	// taken says that the Deployment's name is somebody else's; set by gather.
	taken bool
	// dead says that the provider is given up; set by gather.
	dead bool
	// terminating says that the tenant namespace is being deleted, and with it our rights there; set by gather.
	terminating bool
	// orphaned says that there is no virtual kubelet any more to end the node's pods, nor will there be one; set by drain.
	orphaned bool
	// revoked says in words that the provider took our rights back, by which observation; empty if it did not. Set by gather.
	revoked string
	// cordoned says in words that the provider takes no new pods; empty if it does. Set by gather.
	cordoned string
	// over says in words by how much more of the node's pods runs than the provider offers; empty if no more does. Set by gather.
	over string
	// mapped says that a Configuration tells which ranges are those of the provider's pods. Set by configured.
	mapped bool
	// template that virtual kubelets are run with; set by configure.
	template *offloadingv1beta1.VkOptionsTemplateSpec
	// kubelet and nodeState are the statuses of the conditions; each phase that knows better replaces them.
	kubelet, nodeState string
}

// gather reads what exists. The end of a VirtualNode is not decided by a cache, which may show the past: a Node that it does not show
// would stay, undrained, and a provider that was given up once would lose its pods.
func (r *reconciler) gather(ctx context.Context, s *scope) error {
	reader := client.Reader(r.Client)
	if !s.vn.DeletionTimestamp.IsZero() {
		reader = r.Live
	}
	s.kubelet, s.nodeState = offloadingv1beta1.StatusNone, offloadingv1beta1.StatusNone
	var node corev1.Node
	if found, err := find(ctx, reader, client.ObjectKey{Name: s.vn.Name}, &node); err != nil {
		return err
	} else if found {
		s.node = &node
		if isNodeOf(&node, s.vn) {
			s.nodeState = stateOf(&node)
		}
	}
	var deployment appsv1.Deployment
	if found, err := find(ctx, reader, client.ObjectKeyFromObject(s.vn), &deployment); err != nil {
		return err
	} else if found && metav1.IsControlledBy(&deployment, s.vn) {
		s.deployment = &deployment
		s.kubelet = offloadingv1beta1.StatusCreating
	} else if found {
		s.taken = true
	}
	var fc corev1beta1.ForeignCluster
	found, err := find(ctx, reader, client.ObjectKey{Name: string(s.vn.Spec.ClusterID)}, &fc)
	s.dead = found && fc.IsDead()
	if err != nil {
		return err
	}
	if !s.vn.DeletionTimestamp.IsZero() {
		var namespace corev1.Namespace
		found, err = find(ctx, r.Live, client.ObjectKey{Name: s.vn.Namespace}, &namespace)
		s.terminating = found && !namespace.DeletionTimestamp.IsZero()
		return err
	}
	if found && fc.IsRevoked() {
		s.revoked = conditions.Find(fc.Status.Modules.Authentication.Conditions, corev1beta1.AuthIdentityControlPlaneStatus).Message
		return nil
	}
	a, err := r.answer(ctx, s.vn)
	s.revoked, s.cordoned, s.over = a.denied, a.cordoned, a.over
	return err
}

// configured finds out whether the provider has a Configuration.
func (r *reconciler) configured(ctx context.Context, s *scope) error {
	if !r.Networking {
		return nil
	}
	configuration, err := translation.Find(ctx, r.Client, string(s.vn.Spec.ClusterID))
	s.mapped = configuration != nil
	return err
}

// find reads an object from the cache and tells whether it exists.
func (r *reconciler) find(ctx context.Context, key client.ObjectKey, into client.Object) (bool, error) {
	return find(ctx, r.Client, key, into)
}

func find(ctx context.Context, reader client.Reader, key client.ObjectKey, into client.Object) (bool, error) {
	err := reader.Get(ctx, key, into)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %T %s: %w", into, key, err)
	}
	return true, nil
}

// validate refuses a VirtualNode that contradicts its namespace or whose name is taken.
func (r *reconciler) validate(ctx context.Context, s *scope) error {
	invalid := func(format string, args ...any) error {
		return reconcile.Terminate(offloadingv1beta1.ReasonInvalidVirtualNode, fmt.Errorf(format, args...))
	}
	var tn corev1.Namespace
	if found, err := r.find(ctx, client.ObjectKey{Name: s.vn.Namespace}, &tn); err != nil || !found {
		return err
	}
	if tn.Labels[corev1beta1.TenantNamespaceLabel] != "true" || tn.Labels[corev1beta1.RemoteClusterIDLabel] != string(s.vn.Spec.ClusterID) {
		return invalid("namespace %s is not the tenant namespace of cluster %s: create the VirtualNode in %s%s",
			s.vn.Namespace, s.vn.Spec.ClusterID, corev1beta1.TenantNamespacePrefix, s.vn.Spec.ClusterID)
	}
	if s.vn.Spec.KubeconfigSecretRef == nil || s.vn.Spec.KubeconfigSecretRef.Name == "" {
		return invalid("spec.kubeconfigSecretRef is required: it names the Secret with the kubeconfig for cluster %s", s.vn.Spec.ClusterID)
	}
	if s.node != nil && !isNodeOf(s.node, s.vn) {
		// Another node may leave the name, of which no event comes here.
		return reconcile.NotOurs(offloadingv1beta1.ReasonInvalidVirtualNode, "Node", client.ObjectKeyFromObject(s.node))
	}
	return nil
}

// configure reads the template.
func (r *reconciler) configure(ctx context.Context, s *scope) error {
	key := client.ObjectKey{Namespace: r.Namespace, Name: offloadingv1beta1.DefaultVkOptionsTemplate}
	if ref := s.vn.Spec.VkOptionsTemplateRef; ref != nil && ref.Name != "" {
		key.Name = ref.Name
		if ref.Namespace != "" {
			key.Namespace = ref.Namespace
		}
	}
	var template offloadingv1beta1.VkOptionsTemplate
	found, err := r.find(ctx, key, &template)
	if err != nil {
		return err
	}
	if !found {
		return reconcile.Wait(offloadingv1beta1.ReasonTemplateMissing,
			fmt.Sprintf("waiting for VkOptionsTemplate %s: create it, or name another one in spec.vkOptionsTemplateRef", key), reconcile.RefusedRetry)
	}
	s.template = &template.Spec
	return nil
}

// mapping ensures the NamespaceMap of the provider.
func (r *reconciler) mapping(ctx context.Context, s *scope) error {
	id := string(s.vn.Spec.ClusterID)
	labels := map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: id, corev1beta1.RemoteClusterIDLabel: id}
	nm := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.vn.Namespace, Name: id, Labels: labels}}
	_, err := r.keeper().Keep(ctx, keep.Wanted{
		Object: nm,
		Set:    func(client.Object) {}, // what it asks for is decided elsewhere
		Ours:   func(live client.Object) bool { return !placement.IsPeersMap(live.(*offloadingv1beta1.NamespaceMap)) },
	})
	if err == nil && !nm.DeletionTimestamp.IsZero() {
		return reconcile.Wait(offloadingv1beta1.ReasonTwinTerminating, fmt.Sprintf("waiting for the earlier NamespaceMap %s/%s to go", s.vn.Namespace, id), poll)
	}
	return err
}

// deploy ensures the Deployment of the virtual kubelet.
func (r *reconciler) deploy(ctx context.Context, s *scope) error {
	deployment, err := Render(Rendering{VirtualNode: s.vn, Template: s.template, ClusterID: r.ClusterID, Namespace: r.Namespace, PodCIDRs: r.PodCIDRs,
		NodeIdentity: r.NodeIdentity, PlainMetrics: r.PlainMetrics})
	if err != nil {
		return err
	}
	deployment.OwnerReferences = []metav1.OwnerReference{ownerOf(s.vn)}
	if s.taken {
		return reconcile.NotOurs(offloadingv1beta1.ReasonInvalidVirtualNode, "Deployment", client.ObjectKeyFromObject(deployment))
	}
	// Kubernetes fills in what is left out: the digest alone says what was asked for.
	hash := offloadingv1beta1.RenderedHashAnnotation
	if s.deployment != nil && s.deployment.Annotations[hash] == deployment.Annotations[hash] {
		return nil
	}
	keeper := keep.Keeper{Client: r.Client, Live: r.Live, Reason: offloadingv1beta1.ReasonInvalidVirtualNode}
	if _, err := keep.Known(ctx, keeper, s.deployment, keep.Wanted{Object: deployment, Ours: keep.ControlledBy(s.vn)}); err != nil {
		return err
	}
	s.deployment, s.kubelet = deployment, offloadingv1beta1.StatusCreating
	return nil
}

func ownerOf(vn *offloadingv1beta1.VirtualNode) metav1.OwnerReference {
	return *metav1.NewControllerRef(vn, offloadingv1beta1.GroupVersion.WithKind("VirtualNode"))
}

// register ensures the Node, or removes it where the VirtualNode does not want one.
func (r *reconciler) register(ctx context.Context, s *scope) error {
	if !createsNode(s.vn, s.template) {
		if s.node == nil {
			return nil
		}
		if err := r.drain(ctx, s); err != nil {
			return err
		}
		return r.unregister(ctx, s)
	}
	w := want(s.vn, s.template, s.node)
	if s.cordoned != "" {
		w.taints = append(w.taints, corev1.Taint{Key: offloadingv1beta1.CordonedTaint, Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	if s.node == nil {
		node, err := newNode(s.vn.Name, w)
		if err != nil {
			return err
		}
		err = r.Create(ctx, node)
		if apierrors.IsAlreadyExists(err) {
			return reconcile.Wait(offloadingv1beta1.ReasonNodeNotReady, fmt.Sprintf("waiting for the cache to show Node %s", node.Name), time.Second)
		}
		if err != nil {
			return fmt.Errorf("creating Node %s: %w", node.Name, err)
		}
		s.node, s.nodeState = node, offloadingv1beta1.StatusCreating
		return nil
	}
	node, err := reconciled(s.node, w)
	if err != nil || !differs(s.node, node) {
		return err
	}
	// The list of taints has no owners of its own: the lock keeps taints that others add at the same time.
	if err := r.Patch(ctx, node, client.MergeFromWithOptions(s.node, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("changing Node %s: %w", node.Name, err)
	}
	s.node = node
	return nil
}

// forgetConfirmation takes the confirmation of removals away once nothing is held any more.
func (r *reconciler) forgetConfirmation(ctx context.Context, s *scope) error {
	_, confirmed := s.vn.Annotations[offloadingv1beta1.ConfirmedRemovalsAnnotation]
	if !confirmed || s.node == nil || conditionOf(s.node, offloadingv1beta1.RemovalsHeldCondition) != nil {
		return nil
	}
	delete(s.vn.Annotations, offloadingv1beta1.ConfirmedRemovalsAnnotation)
	return r.patch(ctx, s)
}

// inspect says what is not ready yet.
func (r *reconciler) inspect(ctx context.Context, s *scope) error {
	if s.deployment.Status.AvailableReplicas < 1 || s.deployment.Status.ObservedGeneration < s.deployment.Generation {
		why, err := r.explain(ctx, s)
		if err != nil {
			return err
		}
		return reconcile.Wait(offloadingv1beta1.ReasonVirtualKubeletStarting, why, 3*poll)
	}
	s.kubelet = offloadingv1beta1.StatusRunning
	if s.revoked != "" {
		return reconcile.Wait(offloadingv1beta1.ReasonRightsRevoked, s.revoked, reconcile.RefusedRetry)
	}
	if s.node == nil {
		return nil
	}
	ready := nodeReady(s.node)
	if ready != nil && ready.Status != corev1.ConditionTrue && ready.Reason == offloadingv1beta1.ReasonRightsRevoked {
		return reconcile.Wait(offloadingv1beta1.ReasonRightsRevoked, ready.Message, reconcile.RefusedRetry)
	}
	if ready == nil || ready.Status != corev1.ConditionTrue {
		return reconcile.Wait(offloadingv1beta1.ReasonNodeNotReady, notReady(s.node.Name, ready), reconcile.RefusedRetry)
	}
	return nil
}

// stateOf is the status of the condition about a Node.
func stateOf(node *corev1.Node) string {
	switch ready := nodeReady(node); {
	case ready == nil:
		return offloadingv1beta1.StatusCreating
	case ready.Status == corev1.ConditionTrue:
		return offloadingv1beta1.StatusRunning
	default:
		return offloadingv1beta1.StatusNotReady
	}
}

func nodeReady(node *corev1.Node) *corev1.NodeCondition { return conditionOf(node, corev1.NodeReady) }

// conditionOf is a condition of a Node; nil if it does not have it, or is not there.
func conditionOf(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	if node == nil {
		return nil
	}
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

func notReady(name string, ready *corev1.NodeCondition) string {
	if ready == nil {
		return fmt.Sprintf("waiting for the virtual kubelet to report the state of Node %s", name)
	}
	return fmt.Sprintf("Node %s is not ready: %s", name, ready.Reason+": "+ready.Message)
}
