package unpeer

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/identity"
)

const (
	// patience is how long the controllers may take to give up on a dead peer before their finalizers are removed by hand.
	patience = 30 * time.Second
	// judgement is how long they may take to find out whether a peer that answered lately still does.
	judgement = 45 * time.Second
)

// replicators are the finalizers that only wait for something at the peer.
var replicators = []string{authv1beta1.ReplicationFinalizer, authv1beta1.ReplicatorFinalizer}

// ForceOptions of Force.
type ForceOptions struct {
	// Cluster that is alive.
	Cluster *target.Cluster
	// PeerID is the cluster ID of the peer that is not.
	PeerID string
	// DeleteVolumes also gives up volumes at a peer that is not dead, and the peer's own here, with their data. Without it they are a reason
	// to refuse.
	DeleteVolumes bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm asks whether to go on, before anything is touched; the question says what goes. An error ends the command. nil means that
	// nobody is asked.
	Confirm func(ctx context.Context, question string) error
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Force removes everything of a peer that is dead, or took our rights back, from this cluster, whichever side of the peering that is. A
// peer that works is left in order, from this side alone.
func Force(ctx context.Context, o ForceOptions) (*Report, error) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if err := identity.ValidateClusterID(o.PeerID); err != nil {
		return nil, failure.Misuse("list the peers with 'liqoctl info'", "%w", err)
	}
	installation, err := o.Cluster.RequireInstalled(ctx)
	if err != nil {
		return nil, err
	}
	if installation.ClusterID == o.PeerID {
		return nil, failure.Misuse("give the ID of the peer; list them with 'liqoctl info'", "%s is this cluster's own ID", o.PeerID)
	}
	report := &Report{Residue: map[string][]string{}}
	s := newSide(o.Cluster, o.PeerID, o.Observer)
	s.release = s.goneOrReleased
	if err := s.askForce(ctx, o, installation.ClusterID); err != nil {
		return nil, err
	}
	// Whoever is asked may take their time.
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	answers, err := s.giveUp(ctx)
	if err != nil {
		return report, err
	}
	volumes := s.tellVolumes
	if answers {
		volumes = func(ctx context.Context) error { return s.giveUpVolumes(ctx, o.DeleteVolumes) }
	}
	for _, step := range []func(context.Context) error{
		volumes, s.leaveProvider, s.dropIdentities, s.dropTenants, s.dropReplicas, s.dropTwins,
		func(ctx context.Context) error { return s.leaveNetwork(ctx, false) },
		func(ctx context.Context) error { return deleteNamespaces(ctx, true, s) },
	} {
		if err := step(ctx); err != nil {
			return report, err
		}
	}
	return report, verify(ctx, o.Observer, report, true, end{o.Cluster, o.PeerID})
}

// giveUp tells the controllers not to wait for the peer, and waits until they have asked it once more. A peer that answers and lets us
// work is not given up, whatever the administrator says: it is left in order, and what protects data there holds.
func (s *side) giveUp(ctx context.Context) (answers bool, err error) {
	peer, err := s.cluster.ForeignCluster(ctx, s.peerID)
	if err != nil {
		return false, err
	}
	if peer == nil {
		s.observer.Note(progress.Info, s.cluster.Name, "There is no ForeignCluster for "+s.peerID)
		return false, nil
	}
	title := "Marking " + s.peerID + " as permanently unreachable"
	err = progress.Run(ctx, s.observer, s.cluster.Name, title, func(ctx context.Context, task progress.Task) (string, error) {
		if _, err := s.cluster.MarkDead(ctx, peer, true); err != nil {
			return "", err
		}
		limited, cancel := context.WithTimeout(ctx, judgement)
		defer cancel()
		err := await.Until(limited, task, "the controllers of Liqo to ask "+s.peerID, func(ctx context.Context) (bool, string, error) {
			peer, err := s.cluster.ForeignCluster(ctx, s.peerID)
			answers = err == nil && peer != nil && !peer.IsMarkedDead()
			return err == nil && (peer == nil || answers || peer.IsDead()), "they have not told yet whether it answers", err
		})
		if failure.CodeOf(err) == failure.Timeout && ctx.Err() == nil {
			return "", failure.New(failure.Timeout, "see why with 'liqoctl info', and run the same command again",
				"%s answered when it was asked last, and liqo-controller-manager does not ask it now (cluster %s)", s.peerID, s.cluster.Name)
		}
		if err != nil || !answers {
			return "", err
		}
		return s.peerID + " answers and lets this cluster work: it is not given up, and what it has of this cluster is removed in order", nil
	})
	return answers, err
}

// giveUpAgain repeats the administrator's word if the peer was lost after it had answered.
func (s *side) giveUpAgain(ctx context.Context) error {
	peer, err := s.cluster.ForeignCluster(ctx, s.peerID)
	if err != nil || peer.WhyLost() == "" {
		return err
	}
	_, err = s.cluster.MarkDead(ctx, peer, true)
	return err
}

func (s *side) dropIdentities(ctx context.Context) error {
	return s.deleteAll(ctx, &authv1beta1.IdentityList{}, nil, func(object client.Object) bool {
		typed, ok := object.(*authv1beta1.Identity)
		return ok && string(typed.Spec.ClusterID) == s.peerID
	})
}

// dropTenants ends what the peer may do here.
func (s *side) dropTenants(ctx context.Context) error {
	return s.deleteAll(ctx, &authv1beta1.TenantList{}, nil, func(object client.Object) bool {
		typed, ok := object.(*authv1beta1.Tenant)
		return ok && string(typed.Spec.ClusterID) == s.peerID
	})
}

// dropReplicas removes what the peer sent here; with the namespace maps go the twin namespaces and all that runs in them.
func (s *side) dropReplicas(ctx context.Context) error {
	sent := client.MatchingLabels{corev1beta1.ReplicatedLabel: "true"}
	for _, list := range []client.ObjectList{&offloadingv1beta1.NamespaceMapList{}, &authv1beta1.ResourceSliceList{}, &authv1beta1.RenewList{}} {
		if err := s.deleteAll(ctx, list, sent, nil); err != nil {
			return err
		}
	}
	return nil
}

// goneOrReleased waits for the controllers, and then removes the finalizers that only wait for the dead peer.
func (s *side) goneOrReleased(ctx context.Context, task progress.Task, object client.Object) error {
	first, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := removal.Gone(first, task, s.cluster, object)
	if err == nil || ctx.Err() != nil || failure.CodeOf(err) != failure.Timeout {
		return err
	}
	if err := s.giveUpAgain(ctx); err != nil {
		return err
	}
	if err := s.strip(ctx, object); err != nil {
		return err
	}
	return removal.Gone(ctx, task, s.cluster, object)
}

// strip removes the finalizers that only wait for the peer.
func (s *side) strip(ctx context.Context, object client.Object) error {
	found, err := s.cluster.Get(ctx, object)
	if err != nil || !found || object.GetDeletionTimestamp().IsZero() {
		return err
	}
	removed, err := s.unbind(ctx, object, replicators...)
	if removed && err == nil {
		s.observer.Note(progress.Warning, s.cluster.Name, fmt.Sprintf(
			"%s is released by hand: what it stands for at %s may be left there", s.cluster.Describe(object), s.peerID))
	}
	return err
}

// unbind removes finalizers from the object as it was read, and tells whether it had any of them.
func (s *side) unbind(ctx context.Context, object client.Object, finalizers ...string) (removed bool, err error) {
	before, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return false, nil
	}
	for _, finalizer := range finalizers {
		removed = controllerutil.RemoveFinalizer(object, finalizer) || removed
	}
	if !removed {
		return false, nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := s.cluster.Client.Patch(ctx, object, patch); client.IgnoreNotFound(err) != nil {
		return true, fmt.Errorf("releasing %s: %w", s.cluster.Describe(object), err)
	}
	return true, nil
}
