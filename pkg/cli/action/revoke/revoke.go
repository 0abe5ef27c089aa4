package revoke

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/identity"
)

// DefaultTimeout of Run.
const DefaultTimeout = 2 * time.Minute

// Options of Run.
type Options struct {
	// Cluster that the peer has reach into.
	Cluster *target.Cluster
	// PeerID is the cluster ID of the peer.
	PeerID string
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm asks whether to go on, before anything is touched; the question says what goes. An error ends the command. nil means that
	// nobody is asked.
	Confirm func(ctx context.Context, question string) error
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Report says what was taken from whom.
type Report struct {
	// PeerID of the peer.
	PeerID string `json:"peerID"`
	// Consumer says that its certificates have no rights here.
	Consumer bool `json:"consumer"`
	// Provider says that it is not talked to any more, and holds nothing that is worth anything here.
	Provider bool `json:"provider"`
	// Network says that the tunnel to it is cut.
	Network bool `json:"network"`
}

// found is what the cluster has of the peer.
type found struct {
	tenants  []authv1beta1.Tenant
	provider bool
	network  bool
}

// Run takes the peer's reach into the cluster away, in whichever directions the two are peered.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if err := identity.ValidateClusterID(o.PeerID); err != nil {
		return nil, failure.Misuse("list the peers with 'liqoctl info'", "%w", err)
	}
	if _, err := o.Cluster.RequireInstalled(ctx); err != nil {
		return nil, err
	}
	has, err := look(ctx, o)
	if err != nil {
		return nil, err
	}
	if o.Confirm != nil {
		if err := o.Confirm(ctx, Question(o.Cluster.Name, o.PeerID, len(has.tenants) > 0, has.provider, has.network)); err != nil {
			return nil, err
		}
	}
	// Whoever is asked may take their time.
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	report := &Report{PeerID: o.PeerID}
	return report, o.revoke(ctx, has, report)
}

// revoke takes what was found, and notes it.
func (o *Options) revoke(ctx context.Context, has *found, report *Report) error {
	if err := o.note(ctx, has); err != nil {
		return err
	}
	tunnel := network.Parting{Cluster: o.Cluster, PeerID: o.PeerID, Observer: o.Observer, NoWait: true}
	if has.network {
		if _, err := network.Part(ctx, tunnel); err != nil {
			return err
		}
	}
	if len(has.tenants) > 0 {
		if err := revokeConsumer(ctx, *o, has.tenants); err != nil {
			return err
		}
		report.Consumer = true
	}
	if has.provider {
		if err := unpeer.CutOff(ctx, o.Cluster, o.PeerID, o.Observer); err != nil {
			return err
		}
		report.Provider = true
	}
	if has.network {
		// What has the longest way to go is waited for last.
		tunnel.NoWait = false
		if _, err := network.Part(ctx, tunnel); err != nil {
			return err
		}
		report.Network = true
	}
	return nil
}

// note says on the ForeignCluster who revokes, before anything goes: whoever connects meanwhile is refused. A consumer whose certificates have
// no rights already was revoked by whom it says.
func (o *Options) note(ctx context.Context, has *found) error {
	mark := has.provider || len(has.tenants) == 0
	if !mark && !slices.ContainsFunc(has.tenants, func(t authv1beta1.Tenant) bool { return !identity.AccessOf(&t.Spec).Revoked }) {
		return nil
	}
	peer, err := o.Cluster.ForeignCluster(ctx, o.PeerID)
	if err != nil {
		return err
	}
	return o.Cluster.CutOff(ctx, peer, mark)
}

// look finds out what the cluster has of the peer, and whether the user may take it away.
func look(ctx context.Context, o Options) (*found, error) {
	namespace, auth := corev1beta1.TenantNamespacePrefix+o.PeerID, authv1beta1.GroupVersion.Group
	reading := append(target.Rights(auth, "tenants", namespace, "list"), target.Rights(auth, "identities", namespace, "list")...)
	for _, resource := range []string{"gatewayclients", "gatewayservers", "publickeies"} {
		reading = append(reading, target.Rights(networkingv1beta1.GroupVersion.Group, resource, namespace, "list")...)
	}
	if err := o.Cluster.RequireRights(ctx, reading); err != nil {
		return nil, err
	}
	has, err := o.find(ctx, namespace)
	if err != nil {
		return nil, err
	}
	rights := target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list", "patch")
	if len(has.tenants) > 0 {
		rights = append(rights, target.Rights(auth, "tenants", namespace, "get", "patch")...)
		rights = append(rights, target.Rights(rbacv1.GroupName, "rolebindings", "", "list")...)
	}
	if has.provider {
		rights = append(rights, unpeer.CutOffRights(o.PeerID)...)
	}
	if len(has.tenants) == 0 && !has.provider && !has.network {
		return nil, failure.Unmet("list the peers with 'liqoctl info'", "%s is not peered with %s, in either direction", o.Cluster.Name, o.PeerID)
	}
	if err := o.Cluster.RequireRights(ctx, rights); err != nil {
		return nil, err
	}
	return has, network.RequirePartRights(ctx, o.Cluster, o.PeerID)
}

// find reads what the cluster has of the peer.
func (o *Options) find(ctx context.Context, namespace string) (has *found, err error) {
	has = &found{}
	tenants, identities := &authv1beta1.TenantList{}, &authv1beta1.IdentityList{}
	for _, list := range []client.ObjectList{tenants, identities} {
		if err := o.Cluster.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return nil, err
		}
	}
	for i := range tenants.Items {
		if string(tenants.Items[i].Spec.ClusterID) == o.PeerID {
			has.tenants = append(has.tenants, tenants.Items[i])
		}
	}
	for i := range identities.Items {
		has.provider = has.provider || string(identities.Items[i].Spec.ClusterID) == o.PeerID
	}
	has.network, err = network.HasTunnel(ctx, o.Cluster, o.PeerID)
	return has, err
}

// Question says what goes with a peer's reach.
func Question(home, peer string, consumer, provider, tunnel bool) string {
	question := ""
	if consumer {
		question = fmt.Sprintf("All certificates of %s lose their rights in %s. What it runs here goes on, until it is peered again. ", peer, home)
	}
	if provider {
		question += fmt.Sprintf("%s does not talk to %s any more: its virtual nodes here go with their pods, which are made again elsewhere if something "+
			"controls them, and what runs or is stored there is given up. ", home, peer)
	}
	if tunnel {
		question += fmt.Sprintf("Pods of %s and %s do not reach each other any more.", home, peer)
	}
	return strings.TrimSpace(question)
}

// revokeConsumer takes the rights of a consumer's certificates, and waits until no RoleBinding names any of them.
func revokeConsumer(ctx context.Context, o Options, tenants []authv1beta1.Tenant) error {
	title := "Revoking the certificates of " + o.PeerID
	return progress.Run(ctx, o.Observer, o.Cluster.Name, title, func(ctx context.Context, task progress.Task) (string, error) {
		for i := range tenants {
			tenant := &tenants[i]
			changed := tenant.DeepCopy()
			changed.Spec.RevokedPeering = identity.Revocation(&tenant.Spec)
			if changed.Spec.RevokedPeering == tenant.Spec.RevokedPeering {
				continue
			}
			// What is revoked is what was read: a key that the consumer was given meanwhile is another decision.
			patch := client.MergeFromWithOptions(tenant, client.MergeFromWithOptimisticLock{})
			if err := o.Cluster.Client.Patch(ctx, changed, patch); client.IgnoreNotFound(err) != nil {
				return "", fmt.Errorf("revoking %s: %w", o.Cluster.Describe(tenant), err)
			}
		}
		return "The certificates of " + o.PeerID + " have no rights", await.Until(ctx, task, "the rights of "+o.PeerID+" to be taken",
			func(ctx context.Context) (bool, string, error) {
				left, err := bound(ctx, o)
				return err == nil && left == "", left + " still gives it rights: is liqo-controller-manager running?", err
			})
	})
}

// bound names a RoleBinding that gives rights to the consumer; empty if there is none.
func bound(ctx context.Context, o Options) (string, error) {
	list := &rbacv1.RoleBindingList{}
	if err := o.Cluster.List(ctx, list, client.MatchingLabels{corev1beta1.ManagedLabel: "true"}); err != nil {
		return "", err
	}
	for i := range list.Items {
		for _, subject := range list.Items[i].Subjects {
			if identity.StandsFor(subject.Name, o.PeerID) {
				return target.Name(&list.Items[i]), nil
			}
		}
	}
	return "", nil
}
