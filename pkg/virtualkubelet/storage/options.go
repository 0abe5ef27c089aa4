package storage

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
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
	// State tells whether the provider answers.
	State() peer.State
	// Subscribe has f called after changes of the state; f does not block.
	Subscribe(f func(peer.State)) (cancel func())
}

// Recorder writes Events about local claims.
type Recorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Options of a Reconciler. Home, Remote, Node, Local and Peer must be given.
type Options struct {
	// Home and Remote are the IDs of this cluster and of the provider.
	Home, Remote string
	// Node is the virtual node.
	Node string
	// Local is this cluster, with the reflection account.
	Local kubernetes.Interface
	// Peer is the provider.
	Peer Peer
	// Recorder of Events; nil records none.
	Recorder Recorder
	// Wanted is what is to be provided; the Reconciler follows it. Nil means nothing.
	Wanted *latest.Value[Wanted]
	// Leads says whether this is the virtual node, of all those of the provider, that looks after volumes once they are made: also after those
	// whose virtual node is gone. Only the node that was selected for a claim makes its volume. Nil means that it is not.
	Leads *latest.Value[bool]
	// MaxRemoteClaims of one namespace are accepted from the provider (default 10000).
	MaxRemoteClaims int
	// Budget bounds how much memory takes what is accepted from the provider, with all others that share it; nil means one of its own.
	Budget *replica.Budget
	// Removals holds back the removal of claims with data of which nothing is known here; nil holds none.
	Removals *massremoval.Guard
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
}

// Wanted is what is to be provided, as of now.
type Wanted struct {
	Settings
	// Mapping says which namespaces are offloaded, and to which twins.
	Mapping map[string]string
	// Workers is how many claims are handled at a time. With zero everything stays as it is.
	Workers int
}

// Settings are what the VirtualNode says.
type Settings struct {
	// Offered are the storage classes that were negotiated with the provider.
	Offered []authv1beta1.StorageType
	// NotReflected stays at home.
	NotReflected reflection.NotReflected
	// Waiting are the names of the volumes that were given back or deleted, and are still there.
	Waiting []string
}

const (
	// claimKind is what claims are called among the kinds that are reflected.
	claimKind = "persistentvolumeclaim"
	// minBackOff and maxBackOff bound the wait after failures.
	minBackOff = 100 * time.Millisecond
	maxBackOff = 60 * time.Second
	// callTimeout bounds what is done for one claim.
	callTimeout = 30 * time.Second
	// poll is how often something is looked at that sends no event: volumes of this cluster.
	poll = 15 * time.Second
	// maxPoll is how seldom that may become.
	maxPoll = 5 * time.Minute
	// defaultMaxRemoteClaims bounds what is accepted from the provider.
	defaultMaxRemoteClaims = 10000
	// maxWords bounds what is repeated of the provider's words.
	maxWords = 500
)

func (o *Options) complete() error {
	if o.Home == "" || o.Remote == "" || o.Node == "" || o.Local == nil || o.Peer == nil {
		return errors.New("providing volumes: both cluster IDs, the node, the local client and the peer must be given")
	}
	if o.Wanted == nil {
		o.Wanted = &latest.Value[Wanted]{}
	}
	if o.Leads == nil {
		o.Leads = &latest.Value[bool]{}
	}
	if o.MaxRemoteClaims <= 0 {
		o.MaxRemoteClaims = defaultMaxRemoteClaims
	}
	if o.Budget == nil {
		o.Budget = replica.NewBudget(replica.DefaultBudget)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}
