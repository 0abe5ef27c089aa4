package node

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
)

// heartbeat renews the node's Lease with one write each; it reads only after a failure.
type heartbeat struct {
	client   kubernetes.Interface
	node     string
	duration time.Duration
	last     *coordinationv1.Lease
}

// renew makes or renews the Lease.
func (h *heartbeat) renew(ctx context.Context, owner *corev1.Node, now time.Time) error {
	leases := h.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	var err error
	if h.last == nil {
		if h.last, err = leases.Get(ctx, h.node, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			h.last, err = leases.Create(ctx, h.wanted(&coordinationv1.Lease{}, owner, now), metav1.CreateOptions{})
			return h.done(err)
		} else if err != nil {
			return h.done(err)
		}
	}
	h.last, err = leases.Update(ctx, h.wanted(h.last.DeepCopy(), owner, now), metav1.UpdateOptions{})
	return h.done(err)
}

func (h *heartbeat) done(err error) error {
	if err != nil {
		h.last = nil
		return fmt.Errorf("renewing Lease %s/%s: %w", corev1.NamespaceNodeLease, h.node, err)
	}
	return nil
}

func (h *heartbeat) wanted(lease *coordinationv1.Lease, owner *corev1.Node, now time.Time) *coordinationv1.Lease {
	lease.Name, lease.Namespace = h.node, corev1.NamespaceNodeLease
	lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: owner.Name, UID: owner.UID}}
	lease.Spec.HolderIdentity = ptr.To(h.node)
	lease.Spec.LeaseDurationSeconds = ptr.To(int32(h.duration / time.Second))
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(now))
	return lease
}
