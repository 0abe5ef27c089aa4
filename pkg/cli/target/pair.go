package target

import (
	"context"
	"fmt"

	"github.com/Masterminds/semver/v3"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
)

// Pair is the two clusters of a peering.
type Pair struct {
	// Consumer uses the resources of the Provider.
	Consumer, Provider *Cluster
	// ConsumerID and ProviderID are their cluster IDs.
	ConsumerID, ProviderID string
	// ConsumerHas and ProviderHas are what they have of Liqo.
	ConsumerHas, ProviderHas *Installation
}

// ConsumerNamespace is the tenant namespace in the consumer cluster.
func (p *Pair) ConsumerNamespace() string { return corev1beta1.TenantNamespacePrefix + p.ProviderID }

// ProviderNamespace is the tenant namespace in the provider cluster.
func (p *Pair) ProviderNamespace() string { return corev1beta1.TenantNamespacePrefix + p.ConsumerID }

// RequirePair checks that two clusters can be a pair: both answer and have Liqo, they are two, and their versions fit unless
// anyVersion says not to mind.
func RequirePair(ctx context.Context, consumer, provider *Cluster, anyVersion bool) (*Pair, error) {
	for _, cluster := range []*Cluster{consumer, provider} {
		if _, err := cluster.Reach(ctx); err != nil {
			return nil, err
		}
	}
	if err := requireTwo(ctx, consumer, provider); err != nil {
		return nil, err
	}
	home, err := consumer.RequireInstalled(ctx)
	if err != nil {
		return nil, err
	}
	peer, err := provider.RequireInstalled(ctx)
	if err != nil {
		return nil, err
	}
	if home.ClusterID == peer.ClusterID {
		return nil, failure.Unmet("uninstall Liqo in one of them and install it again with another --cluster-id",
			"both clusters have the cluster ID %s, and peers tell clusters apart by it", home.ClusterID)
	}
	if !anyVersion {
		if why := WhyVersionsDiffer(home.Version, peer.Version); why != "" {
			return nil, failure.Unmet("upgrade the older one with 'liqoctl install', or add --skip-validation to go on at your own risk",
				"%s (%s) and %s (%s) cannot peer: %s", consumer.Name, home.Version, provider.Name, peer.Version, why)
		}
	}
	return &Pair{
		Consumer: consumer, Provider: provider, ConsumerID: home.ClusterID, ProviderID: peer.ClusterID, ConsumerHas: home, ProviderHas: peer,
	}, nil
}

// requireTwo refuses one cluster that was given twice, whatever it is called in the kubeconfigs.
func requireTwo(ctx context.Context, consumer, provider *Cluster) error {
	first, err := consumer.UID(ctx)
	if err != nil {
		return err
	}
	second, err := provider.UID(ctx)
	if err != nil {
		return err
	}
	if first != "" && first == second {
		return failure.Unmet("name the other cluster with --remote-kubeconfig or --remote-context",
			"the local and the remote cluster are the same one (%s and %s)", consumer.Name, provider.Name)
	}
	return nil
}

// WhyVersionsDiffer returns why two versions of Liqo do not work together, empty if they do or if that cannot be told.
func WhyVersionsDiffer(a, b string) string {
	first, errFirst := semver.NewVersion(a)
	second, errSecond := semver.NewVersion(b)
	if errFirst != nil || errSecond != nil {
		return ""
	}
	if first.Major() != second.Major() || first.Minor() != second.Minor() {
		return fmt.Sprintf("peers must run the same minor version, and %d.%d is not %d.%d",
			first.Major(), first.Minor(), second.Major(), second.Minor())
	}
	return ""
}
