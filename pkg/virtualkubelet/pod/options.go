package pod

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
)

// Peer is the connection to the provider.
type Peer interface {
	// Clients returns the current clients; it fails as long as there are no credentials.
	Clients() (peer.Clients, error)
	// Config returns the current configuration, for streams.
	Config() (*rest.Config, error)
	// State tells whether the provider answers.
	State() peer.State
	// Subscribe has f called after changes of the state; f does not block.
	Subscribe(f func(peer.State)) (cancel func())
}

// Recorder writes Events about local pods.
type Recorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Options of a Reconciler. Home, Remote, Node, Local and Peer must be given.
type Options struct {
	// Home and Remote are the IDs of this cluster and of the provider.
	Home, Remote string
	// Node is the virtual node.
	Node string
	// NodeIP is the node's address, which its pods show as their host's.
	NodeIP string
	// Host returns the node as it is known. Pods that it cannot take are rejected. Nil means that nothing is ever known of it.
	Host func() reflection.Host
	// Local is this cluster, with the node's own identity.
	Local kubernetes.Interface
	// Account is this cluster, with the ServiceAccount: it labels pods, which a node may not. Nil labels none.
	Account kubernetes.Interface
	// Peer is the provider.
	Peer Peer
	// Recorder of Events; nil records none.
	Recorder Recorder
	// Registerer of metrics; nil registers none.
	Registerer prometheus.Registerer
	// Confirm asks, past all caches, whether the namespace is still to be offloaded to the provider. It is called before a
	// pod is given up, because a cache may show the past. Nil means that the Mapping is trusted.
	Confirm func(ctx context.Context, namespace string) (offloaded bool, err error)
	// UsesChanged is called when the answer of Uses about an object may have changed, and with empty names when it becomes
	// known; it does not block. Nil means that nobody asks.
	UsesChanged func(namespace, kind, name string)
	// API is how pods at the provider reach this cluster's API server, as far as is known now; nil means not at all.
	API func() reflection.HomeAPI
	// Placed is called when the Place of a local pod may have changed, or the pod is gone; it does not block. Nil means that
	// nobody wants to know.
	Placed func(pod types.NamespacedName)
	// Claims tells which claim at the provider stands for one of this cluster, or why a pod that uses it cannot run there. A
	// claim that has to be one of an ephemeral volume comes with the UID of its pod. Nil means the one of the same name.
	Claims func(ctx context.Context, namespace, name string, owner types.UID) (remote string, refused *reflection.Skip, err error)
	// Wanted is which pods are to run at the provider, and how; the Reconciler follows it. Nil means none.
	Wanted *latest.Value[Wanted]
	// MaxRemotePods of one namespace are accepted from the provider, and as many ShadowPods (default 20000).
	MaxRemotePods int
	// Budget bounds how much memory takes what is accepted from the provider, with all others that share it, besides what pods of this
	// node account for; nil means one of its own.
	Budget *replica.Budget
	// Removals holds back the removal of many ShadowPods at once whose pods a list did not show; nil holds none.
	Removals *massremoval.Guard
	// HideAddresses keeps the addresses of remote pods out of local ones.
	HideAddresses bool
	// Clock tells the time; nil means the real one.
	Clock clock.WithTicker
}

// Wanted is which pods are to run at the provider, and how, as of now.
type Wanted struct {
	Settings
	Mapping Mapping
	// Workers of each of the two queues. With zero the pods stay as they are, and what is bound to the node waits.
	Workers int
}

// Settings are what the VirtualNode and the network say.
type Settings struct {
	// Patch of the virtual node; may be nil.
	Patch *offloadingv1beta1.OffloadingPatch
	// NotReflected stays at home.
	NotReflected reflection.NotReflected
	// PodPrefixes are the ranges that the provider's pods lie in; empty if not known: then no address is shown.
	PodPrefixes []netip.Prefix
	// OwnPrefixes are ranges of this cluster.
	OwnPrefixes []netip.Prefix
	// Addresses says how an address of the provider is reached from this cluster; nil means as it is.
	Addresses reflection.Addresses
	// NetworkDown says that it is proved that no packet comes to the provider's pods: then none is shown as ready.
	NetworkDown bool
	// NetworkWatched says that pods of which the provider says that they are not reached are not ready.
	NetworkWatched bool
}

// Mapping is what is known about the offloaded namespaces. The zero value knows nothing.
type Mapping struct {
	// Known says that the NamespaceMap was read. Without it no namespace counts as not offloaded.
	Known bool
	// Desired maps local namespaces to the twins that this cluster wants.
	Desired map[string]string
	// Effective is the part of Desired that the provider accepted.
	Effective map[string]string
	// Leaving are the local namespaces whose twin the provider says is being removed.
	Leaving map[string]bool
}

const (
	// defaultRemotePods is four times what Kubernetes is tested with in one namespace, 3000 to 5000 (its scalability thresholds).
	defaultRemotePods = 20_000
	// expected is what the ShadowPod and the Pod of a pod of this node may take in the budget, in bytes, so that who has many is not taken
	// for flooded.
	expected = 16 << 10
	// minBackOff and maxBackOff bound the wait after failures.
	minBackOff = 50 * time.Millisecond
	maxBackOff = 60 * time.Second
	// patience is how many failures in a row to create a ShadowPod pass before the pod shows why, which takes some seconds: most are over
	// at once.
	patience = 7
	// creationSeen is how long a creation may take to show up in the cache.
	creationSeen = 30 * time.Second
	// endingSeen is how long the provider may take to begin to end a pod that it was asked to end; then its ShadowPod goes nevertheless.
	endingSeen = 5 * time.Second
	// removalSeen is how long this API server may take between the two steps of a removal.
	removalSeen = 5 * time.Second
	// statusCalm collects changes of a pod that has not started yet into one write. Most pods start sooner, and then that one
	// write says that they run.
	statusCalm = 5 * time.Second
	// startCalm is the same while nothing is known of the remote pod but that it waits its turn, as those of a burst do that the
	// provider's scheduler and kubelets work off: the local pod shows that already.
	startCalm = 20 * time.Second
	// statusPace is how far apart the writes of a pod's status are.
	statusPace = time.Second
	// restless is for how long after a write of its status another one of the pod takes of what all pods of the node may write: each second so
	// many, and so many at once, as when hundreds of pods start together.
	restless       = time.Minute
	restlessWrites = 50
	restlessBurst  = 1000
	// localTimeout bounds each call to this cluster.
	localTimeout = 30 * time.Second
	// surveyTimeout bounds each look for what an earlier life left in a twin.
	surveyTimeout = 30 * time.Second
	// eventLife is how long an API server keeps an Event.
	eventLife = time.Hour
	// pulse is how often the queues show that they are alive.
	pulse = 10 * time.Second
)

func (o *Options) complete() error {
	if o.Home == "" || o.Remote == "" || o.Node == "" || o.Local == nil || o.Peer == nil {
		return errors.New("reflecting pods: both cluster IDs, the node, the local client and the peer must be given")
	}
	if o.Wanted == nil {
		o.Wanted = &latest.Value[Wanted]{}
	}
	if o.MaxRemotePods <= 0 {
		o.MaxRemotePods = defaultRemotePods
	}
	if o.Budget == nil {
		o.Budget = replica.NewBudget(replica.DefaultBudget)
	}
	if o.Host == nil {
		o.Host = func() reflection.Host { return reflection.Host{} }
	}
	if o.API == nil {
		o.API = func() reflection.HomeAPI { return reflection.HomeAPI{} }
	}
	if o.Placed == nil {
		o.Placed = func(types.NamespacedName) {}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}
