package unpeer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/removal"
)

// dropTwins removes the namespaces of the peer that nothing removes any more, because what asked for them is gone.
func (s *side) dropTwins(ctx context.Context) error {
	twins, err := offloaded.Twins(ctx, s.cluster, s.peerID)
	if err != nil {
		return err
	}
	for i := range twins {
		if err := s.cluster.Remove(ctx, &twins[i]); err != nil {
			return err
		}
	}
	for i := range twins {
		if err := s.releasePods(ctx, twins[i].Name); err != nil {
			return err
		}
		if err := removal.Delete(ctx, s.observer, s.cluster, &twins[i], true); err != nil {
			return err
		}
	}
	return nil
}

// releasePods lets the pods of a twin go when they end: nobody waits to learn how, and our controllers may have no rights there any more.
func (s *side) releasePods(ctx context.Context, twin string) error {
	pods := &corev1.PodList{}
	ours := client.MatchingLabels{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}
	if err := s.cluster.List(ctx, pods, client.InNamespace(twin), ours); err != nil {
		return err
	}
	for i := range pods.Items {
		// A kubelet writes the status of its pods at any time.
		err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			found, err := s.cluster.Get(ctx, &pods.Items[i])
			if err != nil || !found {
				return err
			}
			_, err = s.unbind(ctx, &pods.Items[i], offloadingv1beta1.ShadowPodRecordFinalizer)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
