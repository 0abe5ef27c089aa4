package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

// errDeposed says that another replica may be active now.
var errDeposed = errors.New("another virtual kubelet took over this node, or the lease could not be renewed in time")

// lead does the work while this replica is the active one. Once it no longer is, the process ends: nothing that was known
// is worth keeping.
func lead(ctx context.Context, c kubernetes.Interface, f flags, replica string, work func(context.Context) error) error {
	running, cancel := context.WithCancel(ctx)
	defer cancel()
	result := make(chan error, 1)
	var started, deposed atomic.Bool
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Name: f.node + "-leader", Namespace: f.tenantNamespace},
			Client:     c.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: replica},
		},
		Name: f.node, ReleaseOnCancel: true,
		LeaseDuration: f.leaseDuration, RenewDeadline: f.leaseRenew, RetryPeriod: f.leaseRetry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) {
				started.Store(true)
				result <- work(ctx)
				cancel()
			},
			OnStoppedLeading: func() { deposed.Store(running.Err() == nil) },
			OnNewLeader: func(leader string) {
				if leader != replica {
					klog.FromContext(ctx).Info("Another replica is active", "replica", leader)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("preparing the choice of the active replica: %w", err)
	}
	elector.Run(running)
	if !started.Load() {
		return nil // the end came first
	}
	err = <-result
	if deposed.Load() {
		return errors.Join(errDeposed, err)
	}
	return err
}
