package networktest

import (
	"cmp"
	"context"
	"time"

	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
)

// DefaultTimeout of Test and Diff.
const DefaultTimeout = 5 * time.Minute

// Options of Test and Diff.
type Options struct {
	// Local is the cluster that is looked at, Remotes its peers, as far as they can be reached. Without any, each peer is looked at from here.
	Local   *target.Cluster
	Remotes []*target.Cluster
	// Repair has agents put right what differs.
	Repair bool
	// Timeout of the whole; 0 means DefaultTimeout.
	Timeout time.Duration
	// Streams run commands in the pods of a cluster; nil means through its API server.
	Streams func(*target.Cluster) Streams
}

func (o *Options) streams(c *target.Cluster) Streams {
	if o.Streams != nil {
		return o.Streams(c)
	}
	return c
}

// limited is a context that ends with the timeout.
func (o *Options) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, cmp.Or(o.Timeout, DefaultTimeout))
}

// Test looks at the network between a cluster and its peers.
func Test(ctx context.Context, o Options) (*Report, error) {
	ctx, cancel := o.limited(ctx)
	defer cancel()
	report := &Report{Checks: []Check{}}
	if len(o.Remotes) == 0 {
		status, err := network.ReadStatus(ctx, o.Local)
		if err != nil {
			return nil, err
		}
		if len(status.Peers) == 0 {
			return nil, failure.Unmet("connect the networks with 'liqoctl network connect', or name the other cluster with --remote-kubeconfig",
				"cluster %s is connected to no peer", o.Local.Name)
		}
		for i := range status.Peers {
			f, err := gather(ctx, o.Local, o.streams(o.Local), status.Peers[i].ClusterID)
			if err != nil {
				return nil, err
			}
			report.Checks = append(report.Checks, judge([]*facts{f}).Checks...)
		}
		return report, nil
	}
	for _, remote := range o.Remotes {
		sides, err := o.both(ctx, remote)
		if err != nil {
			return nil, err
		}
		report.Checks = append(report.Checks, judge(sides).Checks...)
	}
	return report, nil
}

// both reads what the two ends of a peering know.
func (o *Options) both(ctx context.Context, remote *target.Cluster) ([]*facts, error) {
	pair, err := target.RequirePair(ctx, o.Local, remote, true)
	if err != nil {
		return nil, err
	}
	local, err := gather(ctx, o.Local, o.streams(o.Local), pair.ProviderID)
	if err != nil {
		return nil, err
	}
	other, err := gather(ctx, remote, o.streams(remote), pair.ConsumerID)
	if err != nil {
		return nil, err
	}
	for _, ends := range []struct {
		from, to *facts
		here     *target.Cluster
		there    *target.Cluster
	}{{local, other, o.Local, remote}, {other, local, remote, o.Local}} {
		if ends.to.isolated {
			continue
		}
		pods, err := podsOf(ctx, ends.there, ends.to)
		if err != nil {
			return nil, err
		}
		ends.from.reach(ctx, o.streams(ends.here), pods)
	}
	return []*facts{local, other}, nil
}
