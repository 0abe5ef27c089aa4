package unpeer

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/volume"
)

// giveUpVolumes refuses while volumes at the provider hold data, unless the user has decided to lose it: then their claims are
// deleted, and then the virtual nodes told not to wait for these volumes.
func (s *side) giveUpVolumes(ctx context.Context, decided bool) error {
	volumes, err := volume.At(ctx, s.cluster, s.peerID, "")
	if err != nil || len(volumes) == 0 {
		return err
	}
	if !decided {
		return volume.Refuse(volumes, "unpeering from "+s.peerID)
	}
	if err := volume.Delete(ctx, s.observer, s.cluster, volumes); err != nil {
		return err
	}
	nodes := &offloadingv1beta1.VirtualNodeList{}
	if err := s.cluster.List(ctx, nodes, client.InNamespace(s.namespace)); err != nil {
		return err
	}
	for i := range nodes.Items {
		if string(nodes.Items[i].Spec.ClusterID) != s.peerID {
			continue
		}
		if err := volume.Decide(ctx, s.cluster, &nodes.Items[i], volumes); err != nil {
			return err
		}
	}
	return nil
}

// tellVolumes names the volumes that are lost with a dead peer. Their claims stay: whoever needs the data learns of it.
func (s *side) tellVolumes(ctx context.Context) error {
	volumes, err := volume.At(ctx, s.cluster, s.peerID, "")
	for _, v := range volumes {
		s.observer.Note(progress.Warning, s.cluster.Name, fmt.Sprintf(
			"The data of PersistentVolumeClaim %s/%s is in %s and cannot be reached any more; delete the claim to start anew",
			v.Claim.Namespace, v.Claim.Name, s.peerID))
	}
	return err
}
