package main

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
	"liqo.io/liqo/pkg/virtualkubelet/storage"
)

// newStorage makes the storage fabric; nil if it is turned off. What was provided before stays as it is then.
func (k *kubelet) newStorage(ctx context.Context) (*storage.Reconciler, error) {
	workers := k.flags.Reflectors.Settings(nil, nil).Workers(settings.Claims)
	if workers == 0 {
		return nil, nil
	}
	return storage.New(storage.Options{
		Home: k.flags.Home, Remote: k.flags.Provider.ID, Node: k.flags.Node,
		Local: k.account, Peer: k.peer, Recorder: recorder(ctx, k.account), Workers: workers, Budget: k.budget, Removals: k.removals.guard,
	})
}

// resolveClaim tells pods which claims stand for theirs; nil while the storage fabric is off.
func (k *kubelet) resolveClaim() func(context.Context, string, string, types.UID) (string, *reflection.Skip, error) {
	if k.storage == nil {
		return nil
	}
	return k.storage.Resolve
}
