package unpeer

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/cli/action/authenticate"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/residue"
	"liqo.io/liqo/pkg/cli/target"
)

const (
	// DefaultTimeout of Run and Force.
	DefaultTimeout = 2 * time.Minute
	// settle is how long garbage collection may take after the last deletion before what is left counts as residue.
	settle = 20 * time.Second
)

// Options of Run.
type Options struct {
	// Consumer and Provider clusters.
	Consumer, Provider *target.Cluster
	// DeleteNamespaces also removes the tenant namespaces. It is refused if the clusters peer in both directions.
	DeleteNamespaces bool
	// DeleteVolumes also gives up volumes at the provider, with their data. Without it they are a reason to refuse.
	DeleteVolumes bool
	// NoWait returns without waiting for identity, tenant and namespaces to be gone. What depends on the provider is always
	// waited for.
	NoWait bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Confirm asks whether to go on, once all preconditions hold and before anything is touched; the question says what goes. An
	// error ends the command. nil means that nobody is asked.
	Confirm func(ctx context.Context, question string) error
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Report says what is left.
type Report struct {
	// ConsumerID and ProviderID of the former pair. Force leaves the one that it does not know empty.
	ConsumerID string `json:"consumerID,omitempty"`
	ProviderID string `json:"providerID,omitempty"`
	// Residue of the peering, by cluster ID.
	Residue map[string][]string `json:"residue"`
}

// Run ends the peering of the consumer with the provider.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	pair, mutual, err := precheck(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := ask(ctx, o, pair); err != nil {
		return nil, err
	}
	// Whoever is asked may take their time.
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	report := &Report{ConsumerID: pair.ConsumerID, ProviderID: pair.ProviderID, Residue: map[string][]string{}}
	consumer, provider := newSide(pair.Consumer, pair.ProviderID, o.Observer), newSide(pair.Provider, pair.ConsumerID, o.Observer)
	if err := consumer.giveUpVolumes(ctx, o.DeleteVolumes); err != nil {
		return report, err
	}
	if err := consumer.leaveProvider(ctx); err != nil {
		return report, err
	}
	if err := authenticate.Separate(ctx, pair, !o.NoWait, o.Observer); err != nil {
		return report, err
	}
	if err := leaveNetworks(ctx, o, mutual, consumer, provider); err != nil {
		return report, err
	}
	if o.DeleteNamespaces {
		if err := deleteNamespaces(ctx, !o.NoWait, consumer, provider); err != nil {
			return report, err
		}
	}
	if o.NoWait || mutual {
		return report, nil
	}
	return report, verify(ctx, o.Observer, report, o.DeleteNamespaces, end{pair.Consumer, pair.ProviderID}, end{pair.Provider, pair.ConsumerID})
}

// leaveNetworks removes the network between the two clusters, unless they also peer the other way round.
func leaveNetworks(ctx context.Context, o Options, mutual bool, sides ...*side) error {
	if mutual {
		return nil
	}
	for _, side := range sides {
		if err := side.leaveNetwork(ctx, o.NoWait); err != nil {
			return err
		}
	}
	return nil
}

// precheck finds the pair, and whether the clusters peer in both directions, and refuses what could not be done to the end.
func precheck(ctx context.Context, o Options) (pair *target.Pair, mutual bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	err = progress.Run(ctx, o.Observer, "", "Checking preconditions", func(ctx context.Context, _ progress.Task) (string, error) {
		if _, err := o.Provider.Reach(ctx); err != nil {
			text, _ := failure.NextOf(err)
			return "", failure.Unmet("start it; if it will never come back: liqoctl unpeer --force CLUSTER_ID", "%s", text)
		}
		var err error
		if pair, err = target.RequirePair(ctx, o.Consumer, o.Provider, true); err != nil {
			return "", err
		}
		reading := target.Rights(authv1beta1.GroupVersion.Group, "tenants", pair.ConsumerNamespace(), "list")
		if err := pair.Consumer.RequireRights(ctx, reading); err != nil {
			return "", err
		}
		if mutual, err = isMutual(ctx, pair); err != nil {
			return "", err
		}
		if mutual && o.DeleteNamespaces {
			return "", failure.Unmet("leave --delete-namespaces out, or end the other peering first",
				"%s also uses resources of %s, which needs the tenant namespaces", pair.ProviderID, pair.ConsumerID)
		}
		if err := newSide(pair.Consumer, pair.ProviderID, o.Observer).requireProvider(ctx); err != nil {
			return "", err
		}
		return "Preconditions hold", requireRights(ctx, o, pair, mutual)
	})
	return pair, mutual, err
}

// isMutual tells whether the provider is also a consumer of its consumer.
func isMutual(ctx context.Context, pair *target.Pair) (bool, error) {
	tenants := &authv1beta1.TenantList{}
	err := pair.Consumer.List(ctx, tenants, client.InNamespace(pair.ConsumerNamespace()))
	return len(tenants.Items) > 0, err
}

// end is one cluster, and the peer that it should have forgotten.
type end struct {
	cluster *target.Cluster
	peerID  string
}

// verify lists what is left once garbage collection had its time.
func verify(ctx context.Context, observer progress.Observer, report *Report, namespacesToo bool, ends ...end) error {
	for _, end := range ends {
		name := end.cluster.Name
		err := progress.Run(ctx, observer, name, "Looking for what is left of "+end.peerID, func(ctx context.Context, task progress.Task) (string, error) {
			limited, cancel := context.WithTimeout(ctx, settle)
			defer cancel()
			var items []residue.Item
			err := await.Until(limited, task, "everything of "+end.peerID+" to be gone", func(ctx context.Context) (bool, string, error) {
				var err error
				items, err = residue.OfPeer(ctx, end.cluster, end.peerID, namespacesToo)
				if len(items) > 0 {
					return false, items[0].String(), err
				}
				return err == nil, "", err
			})
			if len(items) > 0 && failure.CodeOf(err) == failure.Timeout {
				report.Residue[name] = residue.Strings(items)
				return "", left(name, items)
			}
			return "Nothing is left of " + end.peerID, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func left(name string, items []residue.Item) error {
	return failure.New(failure.Problems, "see why with 'kubectl get ... -o yaml', and run the same command again",
		"something of the peering is left (cluster %s): %s", name, join(items))
}
