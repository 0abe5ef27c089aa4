package leader

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/klog/v2"
)

const (
	// lookEvery is how often a replica that stands by looks whether the Lease is free.
	lookEvery = 2 * time.Second
	// Winding is how long the work may take to end before the process ends without it. A replica that was deposed has to be through
	// before the Lease can be another's: see Terms.Validate.
	Winding = 8 * time.Second
	// releaseTimeout bounds the giving back of the Lease.
	releaseTimeout = 5 * time.Second
)

// errDeposed says that another replica may be active now.
var errDeposed = errors.New("another virtual kubelet took over this node, or the lease could not be renewed in time")

// errNotWound says that the work went on after it was told to end.
var errNotWound = errors.New("the work did not end in time; the lease is left to run out")

// Terms are those of the Lease. The active replica of a rolling update gives it back: that it runs out is for machines that are lost.
type Terms struct {
	// Enabled says that there may be several replicas.
	Enabled bool
	// Duration is how long a silent replica stays the active one for the others.
	Duration time.Duration
	// Renew is how long the active replica stays it without a renewal.
	Renew time.Duration
	// Retry is the time between two renewals.
	Retry time.Duration
}

// Validate sees to it that a replica which could not renew the Lease has ended before another one takes it.
func (t Terms) Validate() error {
	if t.Enabled && (t.Retry <= 0 || t.Renew < t.Retry+2*lookEvery || t.Duration < t.Renew+Winding) {
		return fmt.Errorf("--vk-lease-renew-interval must be at least %s more than --vk-lease-retry-period, and --vk-lease-duration at least %s more than it",
			2*lookEvery, Winding)
	}
	return nil
}

// Candidate is a replica that wants to be the active one of its node. All fields must be given.
type Candidate struct {
	// Client writes the Lease, whatever the fence says.
	Client kubernetes.Interface
	// Node is what the replicas run; its Lease is in the Namespace.
	Node, Namespace string
	Terms           Terms
	// Replica is the pod's name: a container that starts again holds the Lease still.
	Replica string
	// Owner of the Lease, with which it goes.
	Owner func(context.Context) (metav1.OwnerReference, error)
	// Fence is open as long as the replica is surely the active one.
	Fence *Fence
}

// Lead does the work while this replica is the active one. Once it no longer is, the process ends: nothing that was known
// is worth keeping. The Lease is given back when the work has ended, never before, so that no other replica begins meanwhile.
func (c Candidate) Lead(ctx context.Context, work func(context.Context) error) error {
	// The Lease outlives the context of the work.
	holding, let := context.WithCancel(context.WithoutCancel(ctx))
	defer let()
	var started, lost atomic.Bool
	// Kubernetes' elector goes on trying for its whole deadline; whoever sees that the Lease is another's has nothing to wait for.
	deposed := func() {
		if started.Load() {
			lost.Store(true)
			let()
		}
	}
	lock := &turn{candidate: c, another: deposed, LeaseLock: resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Name: leaseOf(c.Node), Namespace: c.Namespace},
		Client:     c.Client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: c.Replica},
	}}
	ended := make(chan error, 1)
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: c.Node,
		LeaseDuration: c.Terms.Duration, RenewDeadline: c.Terms.Renew - c.Terms.Retry, RetryPeriod: lookEvery,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(leading context.Context) {
				started.Store(true)
				working, cancel := context.WithCancel(ctx)
				defer cancel()
				defer context.AfterFunc(leading, cancel)()
				ended <- work(working)
				let()
			},
			OnStoppedLeading: func() {},
			OnNewLeader: func(leader string) {
				if leader != c.Replica && leader != "" {
					klog.FromContext(ctx).Info("Another replica is active; this one stands by", "active", leader)
				}
			},
		},
	})
	if err != nil {
		return fmt.Errorf("preparing the choice of the active replica: %w", err)
	}
	defer context.AfterFunc(ctx, func() {
		if !started.Load() {
			let()
			return
		}
		time.AfterFunc(Winding, let)
	})()
	elector.Run(holding)
	if !started.Load() {
		return nil // the end came first
	}
	over := lost.Load() || holding.Err() == nil
	err = wound(ended)
	if errors.Is(err, errNotWound) {
		return err
	}
	if release := lock.release(context.WithoutCancel(ctx)); release != nil {
		klog.FromContext(ctx).Error(release, "The Lease could not be given back; another replica has to wait until it has run out")
	}
	if over {
		return errors.Join(errDeposed, err)
	}
	return err
}

// wound waits for the end of the work, but not for ever.
func wound(ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-time.After(Winding):
		return errNotWound
	}
}

// leaseOf names the Lease of a node's virtual kubelets.
func leaseOf(node string) string { return node + "-leader" }

// turn is the Lease as the lock of a node. Its holder writes it no more often than it has to, while those who stand by look often.
type turn struct {
	resourcelock.LeaseLock
	candidate Candidate
	// another is called when the Lease is seen to be another replica's.
	another func()
	// written is when the Lease was last written as this replica's.
	written time.Time
}

// Create makes the Lease, which goes with its owner.
func (t *turn) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	lease := &coordinationv1.Lease{ObjectMeta: *t.LeaseMeta.DeepCopy(), Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&record)}
	owner, err := t.candidate.Owner(ctx)
	if err != nil {
		return err
	}
	lease.OwnerReferences = []metav1.OwnerReference{owner}
	begin := time.Now()
	if _, err := t.Client.Leases(lease.Namespace).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return err
	}
	if _, _, err := t.Get(ctx); err != nil { // what Update starts from
		return err
	}
	t.renewed(begin)
	return nil
}

// Get reads the Lease.
func (t *turn) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := t.LeaseLock.Get(ctx)
	if err == nil && record.HolderIdentity != "" && record.HolderIdentity != t.Identity() {
		t.another()
	}
	return record, raw, err
}

// renewed takes note of a write of the Lease as this replica's, which may have become effective at any time since it began.
func (t *turn) renewed(begin time.Time) {
	t.written = begin
	t.candidate.Fence.open(begin.Add(t.candidate.Terms.Renew))
}

// Update takes, renews or gives back the Lease.
func (t *turn) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	mine := record.HolderIdentity == t.Identity()
	if mine && !t.written.IsZero() && time.Since(t.written) < t.candidate.Terms.Retry {
		return nil
	}
	begin := time.Now()
	if err := t.LeaseLock.Update(ctx, record); err != nil {
		t.written = time.Time{}
		return err
	}
	t.written = time.Time{}
	if mine {
		t.renewed(begin)
	}
	return nil
}

// release gives the Lease back, if it is this replica's.
func (t *turn) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	record, _, err := t.Get(ctx)
	if err != nil {
		return fmt.Errorf("reading Lease %s: %w", t.Describe(), err)
	}
	if record.HolderIdentity != t.Identity() {
		return nil
	}
	now := metav1.Now()
	free := resourcelock.LeaderElectionRecord{LeaderTransitions: record.LeaderTransitions, LeaseDurationSeconds: 1, RenewTime: now, AcquireTime: now}
	if err := t.Update(ctx, free); err != nil {
		return fmt.Errorf("giving back Lease %s: %w", t.Describe(), err)
	}
	return nil
}
