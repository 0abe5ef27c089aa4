package main

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/storage"
)

// startStorage runs the storage fabric, unless it is turned off. What was provided before stays as it is then.
func (k *kubelet) startStorage(ctx context.Context, group *errgroup.Group) error {
	claims := k.flags.reflectors.config(claimKind, nil)
	if claims.NumWorkers == 0 {
		return nil
	}
	reconciler, err := storage.New(storage.Options{
		Home: k.flags.homeCluster, Remote: k.flags.foreignCluster, Node: k.flags.node,
		Local: k.account, Peer: k.peer, Recorder: recorder(ctx, k.account), Workers: int(claims.NumWorkers), Budget: k.budget, Removals: k.removals.guard,
	})
	if err != nil {
		return err
	}
	k.storage = reconciler
	k.mirror.setLeads(reconciler.SetLeads)
	group.Go(func() error { return reconciler.Run(ctx) })
	return nil
}

func (k *kubelet) setStorage(vn *offloadingv1beta1.VirtualNode, not reflection.NotReflected) {
	if k.storage != nil {
		k.storage.SetSettings(storage.Settings{Offered: vn.Spec.StorageClasses, NotReflected: not,
			Waiting: strings.FieldsFunc(vn.Annotations[offloadingv1beta1.WaitingVolumesAnnotation], func(c rune) bool { return c == ',' })})
	}
}

// employStorage changes how many claims are handled at a time.
func (k *kubelet) employStorage(workers int) {
	if k.storage != nil {
		k.storage.SetWorkers(workers)
	}
}

func (k *kubelet) mapStorage(effective map[string]string) {
	if k.storage != nil {
		k.storage.SetMapping(effective)
	}
}

// resolveClaim tells pods which claims stand for theirs; nil while the storage fabric is off.
func (k *kubelet) resolveClaim() func(context.Context, string, string, types.UID) (string, *reflection.Skip, error) {
	if k.storage == nil {
		return nil
	}
	return k.storage.Resolve
}
