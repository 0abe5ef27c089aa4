package peer

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/action/authenticate"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/action/networktest"
	"liqo.io/liqo/pkg/cli/action/share"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// DefaultTimeout of Run.
const DefaultTimeout = 10 * time.Minute

// Options of Run.
type Options struct {
	// Consumer and Provider clusters.
	Consumer, Provider *target.Cluster
	// ProxyURL through which the consumer reaches the provider's API server; empty for a direct connection, nil for what is there.
	ProxyURL *string
	// NoNetwork leaves the networks of the two clusters alone; Network says how they are connected otherwise. They are left alone too if
	// neither cluster has the network module.
	NoNetwork bool
	Network   network.Settings
	// NoResourceSlice only authenticates, and connects the networks.
	NoResourceSlice bool
	// Class of the ResourceSlice; empty means what it has, and else default.
	Class string
	// Resources to ask for; what is left out is for the provider to decide. nil means those that are asked for already.
	Resources corev1.ResourceList
	// NoVirtualNode asks for resources without making a node of them.
	NoVirtualNode bool
	// DeleteVolumes gives up what the provider has of namespaces that are gone, with the data. Without it that is a reason to refuse.
	DeleteVolumes bool
	// SkipValidation lets clusters with different versions peer.
	SkipValidation bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
	// Streams run commands in the pods of a cluster; nil means through its API server.
	Streams func(*target.Cluster) networktest.Streams
}

// Report says what is in place.
type Report struct {
	authenticate.Report
	// Network that connects the two clusters; nil if it was left alone.
	Network *network.Report `json:"network,omitempty"`
	// ResourceSlice in the consumer's tenant namespace.
	ResourceSlice string `json:"resourceSlice,omitempty"`
	// Resources that the provider granted.
	Resources corev1.ResourceList `json:"resources,omitempty"`
	// VirtualNode, and the name of its Node.
	VirtualNode string `json:"virtualNode,omitempty"`
	// Offloaded are the namespaces that are offloaded to the virtual node already, as after a revocation.
	Offloaded []string `json:"offloaded,omitempty"`
}

type run struct {
	Options
	pair   *target.Pair
	report *Report
	// joining are the networks, filled by network; nil if they are left alone.
	joining *network.Joining
}

// Run peers the consumer with the provider.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	r := &run{Options: o, report: &Report{}}
	steps := []func(context.Context) error{r.preconditions, r.earlier, r.unmark, r.authenticate, r.network, r.slice, r.connected, r.virtualNode, r.node}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return r.report, err
		}
	}
	if r.wantsNode() {
		r.report.Offloaded = r.offloaded(ctx)
	}
	return r.report, nil
}

func (r *run) preconditions(ctx context.Context) error {
	return progress.Run(ctx, r.Observer, "", "Checking preconditions", func(ctx context.Context, _ progress.Task) (string, error) {
		pair, err := target.RequirePair(ctx, r.Consumer, r.Provider, r.SkipValidation)
		if err != nil {
			return "", err
		}
		r.pair = pair
		if err := r.requireNetwork(); err != nil {
			return "", err
		}
		if err := pair.Consumer.RequireRights(ctx, r.consumerRights()); err != nil {
			return "", err
		}
		if err := pair.Provider.RequireRights(ctx, r.providerRights()); err != nil {
			return "", err
		}
		if err := r.free(ctx); err != nil {
			return "", err
		}
		if r.joins() {
			if err := network.RequireNodePort(ctx, pair, r.Network); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s can use resources of %s", pair.ConsumerID, pair.ProviderID), nil
	})
}

func (r *run) consumerRights() []target.Right {
	namespace := r.pair.ConsumerNamespace()
	rights := target.Rights("", "namespaces", "", "get")
	rights = append(rights, authenticate.ConsumerRights(r.pair)...)
	rights = append(rights, target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list")...)
	if r.joins() {
		rights = append(rights, network.Rights(r.pair.Consumer, namespace)...)
	}
	if !r.NoResourceSlice {
		rights = append(rights, r.request().Rights()...)
	}
	return rights
}

func (r *run) providerRights() []target.Right {
	rights := append(authenticate.ProviderRights(r.pair), target.Rights("", "namespaces", "", "list")...)
	rights = append(rights, target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list")...)
	rights = append(rights, target.Rights("", "persistentvolumeclaims", "", "list")...)
	if r.DeleteVolumes {
		rights = append(rights, target.Rights("", "namespaces", "", "delete")...)
	}
	if r.joins() {
		rights = append(rights, network.Rights(r.pair.Provider, r.pair.ProviderNamespace())...)
	}
	return rights
}

// joins tells whether the networks are connected: both clusters have the module, unless the preconditions do not hold.
func (r *run) joins() bool { return !r.NoNetwork && r.pair.ConsumerHas.Networking() }

// requireNetwork refuses clusters of which one has the network module and the other has not.
func (r *run) requireNetwork() error {
	if r.NoNetwork || r.pair.ConsumerHas.Networking() == r.pair.ProviderHas.Networking() {
		return nil
	}
	with, without := r.pair.Consumer, r.pair.Provider
	if r.pair.ProviderHas.Networking() {
		with, without = without, with
	}
	return failure.Unmet(
		"turn it on there with '"+without.Command("liqoctl install --set networking.enabled=true")+"', or add --networking-disabled to peer without",
		"cluster %s has the network module, and cluster %s has it not", with.Name, without.Name)
}

// network begins to connect the networks of the two clusters, once the consumer has its key: nothing that a network waits for, such as the
// address of a load balancer, keeps a key that was stolen from being replaced. Gateways start while other things are done.
func (r *run) network(ctx context.Context) (err error) {
	if r.joins() {
		r.joining, r.report.Network, err = network.Join(ctx, r.pair, r.Network, r.SkipValidation, r.Observer)
		r.report.Changed = r.report.Changed || r.report.Network != nil && r.report.Network.Changed
	}
	return err
}

// connected waits for the networks, from node to node: there is no virtual node before its pods can be reached.
func (r *run) connected(ctx context.Context) error {
	if r.joining == nil {
		return nil
	}
	if err := r.joining.Connected(ctx); err != nil {
		return err
	}
	return networktest.Overlay(ctx, r.pair, r.Streams, r.Observer)
}

func (r *run) wantsNode() bool { return !r.NoResourceSlice && !r.NoVirtualNode }

// free refuses a node name that is taken: the virtual node could never be created.
func (r *run) free(ctx context.Context) error {
	if !r.wantsNode() {
		return nil
	}
	why, err := r.request().WhyTaken(ctx)
	if err != nil || why == "" {
		return err
	}
	return failure.Unmet("peer with --create-virtual-node=false, and create one of another name", "%s", why)
}

// request asks the provider for resources, by a ResourceSlice that is named after it.
func (r *run) request() *share.Request {
	return &share.Request{
		Cluster: r.pair.Consumer, ConsumerID: r.pair.ConsumerID, ProviderID: r.pair.ProviderID, Name: r.pair.ProviderID,
		Class: r.Class, Resources: r.Resources, NoVirtualNode: r.NoVirtualNode, Observer: r.Observer,
		Again: "peer again", Otherwise: "peer again", ClassFlag: "--resource-slice-class",
	}
}

// slice asks the provider for resources, and waits for its answer.
func (r *run) slice(ctx context.Context) error {
	if r.NoResourceSlice {
		return nil
	}
	request := r.request()
	slice, change, err := request.Ask(ctx, request.Render)
	r.report.Changed = r.report.Changed || change == target.Created || change == target.Updated
	if change != "" {
		r.report.ResourceSlice = slice.Name
	}
	if err == nil {
		r.report.Resources = slice.Status.Resources
	}
	return err
}

// virtualNode waits for the VirtualNode that the controller manager makes of the slice.
func (r *run) virtualNode(ctx context.Context) error {
	if !r.wantsNode() {
		return nil
	}
	r.report.VirtualNode = r.pair.ProviderID
	return r.request().VirtualNode(ctx)
}

// node waits until pods can be scheduled onto the virtual node.
func (r *run) node(ctx context.Context) error {
	if !r.wantsNode() {
		return nil
	}
	return r.request().Node(ctx)
}

// unmark takes the word back that one of the two will not come back, or is cut off, which an earlier 'unpeer --force' or 'revoke' may have left:
// with the next outage what the new peering holds would be given up, and the networks would not be connected.
func (r *run) unmark(ctx context.Context) error {
	for _, side := range []struct {
		cluster *target.Cluster
		peerID  string
	}{{r.pair.Consumer, r.pair.ProviderID}, {r.pair.Provider, r.pair.ConsumerID}} {
		peer, err := side.cluster.ForeignCluster(ctx, side.peerID)
		if err != nil {
			return err
		}
		if side.cluster == r.pair.Provider && !peer.IsCutOff() {
			continue // Whether a provider of its own will come back is not ours to say.
		}
		mark := " is no longer marked as permanently unreachable"
		if peer.IsCutOff() {
			mark = " is no longer cut off"
		}
		changed, err := side.cluster.MarkDead(ctx, peer, false)
		if err != nil {
			return err
		}
		if changed {
			r.Observer.Note(progress.Info, side.cluster.Name, side.peerID+mark)
		}
	}
	return nil
}

func (r *run) authenticate(ctx context.Context) error {
	report, err := authenticate.Handshake(ctx, r.pair, r.ProxyURL, r.Observer)
	if report != nil {
		r.report.Report = *report
	}
	return err
}
