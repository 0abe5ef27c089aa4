package target

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// ForeignCluster returns what the cluster knows of a peer; nil if it knows none of that ID.
func (c *Cluster) ForeignCluster(ctx context.Context, peerID string) (*corev1beta1.ForeignCluster, error) {
	list := &corev1beta1.ForeignClusterList{}
	if err := c.List(ctx, list); err != nil {
		return nil, err
	}
	index := slices.IndexFunc(list.Items, func(f corev1beta1.ForeignCluster) bool { return string(f.Spec.ClusterID) == peerID })
	if index < 0 {
		return nil, nil
	}
	return &list.Items[index], nil
}

// MarkDead says of a peer that it will not come back, or takes that word back, and that of CutOff. It tells whether anything changed.
func (c *Cluster) MarkDead(ctx context.Context, peer *corev1beta1.ForeignCluster, dead bool) (bool, error) {
	if peer == nil || dead == peer.IsMarkedDead() && (dead || !peer.IsCutOff()) {
		return false, nil
	}
	changed := peer.DeepCopy()
	if dead {
		metav1.SetMetaDataAnnotation(&changed.ObjectMeta, corev1beta1.PermanentlyUnreachableAnnotation, "true")
	} else {
		delete(changed.Annotations, corev1beta1.PermanentlyUnreachableAnnotation)
		delete(changed.Annotations, corev1beta1.CutOffAnnotation)
	}
	return true, c.patchPeer(ctx, peer, changed)
}

// CutOff says of a provider that it is not talked to any more, although it answers.
func (c *Cluster) CutOff(ctx context.Context, peer *corev1beta1.ForeignCluster) error {
	if peer == nil || peer.IsCutOff() {
		return nil
	}
	changed := peer.DeepCopy()
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, corev1beta1.CutOffAnnotation, "true")
	return c.patchPeer(ctx, peer, changed)
}

func (c *Cluster) patchPeer(ctx context.Context, peer, changed *corev1beta1.ForeignCluster) error {
	if err := c.Client.Patch(ctx, changed, client.MergeFrom(peer)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing %s: %w", c.Describe(peer), err)
	}
	return nil
}
