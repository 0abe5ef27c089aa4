package virtualnode

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/placement"
)

const (
	// callTimeout bounds each call of a drain: one that hangs must not hold the worker.
	callTimeout = 10 * time.Second
	// stopTimeout is how long after its own deletion a virtual kubelet's pod is waited for: its local node may be gone too.
	stopTimeout = 2 * time.Minute
	// named is how many pods a message names.
	named = 3
)

// drain cordons the Node and asks its pods to leave, and waits until they have.
func (r *reconciler) drain(ctx context.Context, s *scope) error {
	if s.node == nil || !isNodeOf(s.node, s.vn) {
		return nil
	}
	s.nodeState = offloadingv1beta1.StatusDraining
	if err := r.cordon(ctx, s); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.MatchingFields{"spec.nodeName": s.node.Name}); err != nil {
		return fmt.Errorf("listing the pods of Node %s: %w", s.node.Name, err)
	}
	orphaned, err := r.orphaned(ctx, s)
	if err != nil {
		return err
	}
	s.orphaned = orphaned
	var left, blocked []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		if placement.BelongsToNode(pod) {
			continue
		}
		left = append(left, pod.Namespace+"/"+pod.Name)
		why, err := r.expel(ctx, s, pod)
		if err != nil {
			return err
		}
		if why != "" {
			blocked = append(blocked, fmt.Sprintf("%s/%s: %s", pod.Namespace, pod.Name, why))
		}
	}
	if len(left) == 0 {
		return nil
	}
	message := fmt.Sprintf("waiting for %d pods to leave Node %s (%s)", len(left), s.node.Name, some(left))
	if len(blocked) > 0 {
		message += "; blocked: " + some(blocked)
	}
	if !s.dead && r.overdue(s) {
		message += fmt.Sprintf("; if cluster %s will not come back, use liqoctl unpeer --force", s.vn.Spec.ClusterID)
	}
	return reconcile.Wait(offloadingv1beta1.ReasonDraining, message, poll)
}

// orphaned tells whether no virtual kubelet can end the node's pods any more: the one that was there went with the tenant namespace,
// in which no other one can be made. What the pods stand for at the provider goes with the NamespaceMap.
func (r *reconciler) orphaned(ctx context.Context, s *scope) (bool, error) {
	if s.deployment != nil || !s.terminating {
		return false, nil
	}
	pods, err := r.kubeletPods(ctx, s.vn)
	return len(pods) == 0, err
}

// overdue tells whether the time is over in which PodDisruptionBudgets are respected.
func (r *reconciler) overdue(s *scope) bool {
	return !s.vn.DeletionTimestamp.IsZero() && r.Clock.Since(s.vn.DeletionTimestamp.Time) > r.DrainTimeout
}

// expel makes one pod leave and returns what keeps it, if something does.
func (r *reconciler) expel(ctx context.Context, s *scope, pod *corev1.Pod) (string, error) {
	uid := client.Preconditions{UID: &pod.UID}
	var err error
	switch {
	case s.dead, s.orphaned:
		err = r.Delete(ctx, pod, uid, client.GracePeriodSeconds(0))
	case !pod.DeletionTimestamp.IsZero():
		return "", nil
	case r.overdue(s):
		err = r.Delete(ctx, pod, uid)
	default:
		eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}}}
		err = r.SubResource("eviction").Create(ctx, pod, eviction)
	}
	switch {
	case apierrors.IsTooManyRequests(err):
		return "a PodDisruptionBudget does not let it go yet", nil
	case client.IgnoreNotFound(err) == nil, apierrors.IsConflict(err):
		return "", nil
	case apierrors.IsForbidden(err):
		return err.Error(), nil
	}
	return "", fmt.Errorf("removing Pod %s/%s from Node %s: %w", pod.Namespace, pod.Name, s.node.Name, err)
}

func (r *reconciler) cordon(ctx context.Context, s *scope) error {
	if s.node.Spec.Unschedulable {
		return nil
	}
	changed := s.node.DeepCopy()
	changed.Spec.Unschedulable = true
	if err := r.Patch(ctx, changed, client.MergeFrom(s.node)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("cordoning Node %s: %w", s.node.Name, err)
	}
	s.node = changed
	return nil
}

// undeploy removes the virtual kubelet and waits for its pods, so that it does not act after its node is gone.
func (r *reconciler) undeploy(ctx context.Context, s *scope) error {
	s.nodeState = offloadingv1beta1.StatusNone
	if s.node != nil && isNodeOf(s.node, s.vn) {
		s.nodeState = offloadingv1beta1.StatusDeleting
	}
	if s.deployment != nil {
		s.kubelet = offloadingv1beta1.StatusDeleting
		if s.deployment.DeletionTimestamp.IsZero() {
			if err := keep.Delete(ctx, r.Client, s.deployment, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
				return err
			}
		}
	}
	pods, err := r.kubeletPods(ctx, s.vn)
	if err != nil {
		return err
	}
	var left []string
	for i := range pods {
		if deleted := pods[i].DeletionTimestamp; deleted.IsZero() || r.Clock.Since(deleted.Time) < stopTimeout {
			left = append(left, pods[i].Namespace+"/"+pods[i].Name)
		}
	}
	if len(left) == 0 {
		s.kubelet = offloadingv1beta1.StatusNone
		return nil
	}
	s.kubelet = offloadingv1beta1.StatusDeleting
	return reconcile.Wait(offloadingv1beta1.ReasonDraining, "waiting for the virtual kubelet to stop ("+some(left)+")", poll)
}

// kubeletPods lists the pods of the virtual kubelet.
func (r *reconciler) kubeletPods(ctx context.Context, vn *offloadingv1beta1.VirtualNode) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := r.Live.List(ctx, &pods, client.InNamespace(vn.Namespace), client.MatchingLabels(selectorOf(vn))); err != nil {
		return nil, fmt.Errorf("listing the virtual kubelet's pods in %s: %w", vn.Namespace, err)
	}
	return pods.Items, nil
}

// unregister removes the Node.
func (r *reconciler) unregister(ctx context.Context, s *scope) error {
	if s.node == nil || !isNodeOf(s.node, s.vn) {
		s.nodeState = offloadingv1beta1.StatusNone
		return nil
	}
	if err := keep.Delete(ctx, r.Client, s.node); err != nil {
		return err
	}
	s.node, s.nodeState = nil, offloadingv1beta1.StatusNone
	return nil
}

// unmap removes the provider's NamespaceMap with its last VirtualNode. What becomes of the twins is seen to by others.
func (r *reconciler) unmap(ctx context.Context, s *scope) error {
	others, err := r.others(ctx, s.vn)
	if err != nil || oneStays(others) {
		return err
	}
	if draining, err := r.oneDrains(ctx, others); err != nil || draining {
		return err
	}
	var nm offloadingv1beta1.NamespaceMap
	found, err := find(ctx, r.Live, client.ObjectKey{Namespace: s.vn.Namespace, Name: string(s.vn.Spec.ClusterID)}, &nm)
	if err != nil || !found || !nm.DeletionTimestamp.IsZero() || placement.IsPeersMap(&nm) {
		return err
	}
	return keep.Delete(ctx, r.Client, &nm)
}

// some names the first few of a list.
func some(list []string) string {
	if len(list) <= named {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:named], ", "), len(list)-named)
}
