package event

import (
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/utils/clock"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
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

// Locals knows which local objects are at the provider. Its methods answer from memory.
type Locals interface {
	// Find returns the local object that target names if it is known to stand behind a remote object of the given kind. It
	// is not changed. A claim is named as it is at the provider.
	Find(remoteKind string, target corev1.ObjectReference) (reflection.Object, bool)
	// Crossed tells whether something of a local namespace is at the provider.
	Crossed(namespace string) bool
}

// Options of a Carrier. Home, Remote, Events, Peer and Locals must be given; nothing is carried without Wanted.
type Options struct {
	// Home and Remote are the IDs of this cluster and of the provider.
	Home, Remote string
	// NodeName is the virtual node, for metrics.
	NodeName string
	// Events of this cluster, written with the reflection account.
	Events typedcorev1.EventsGetter
	// Peer is the provider.
	Peer Peer
	// Locals knows the local objects.
	Locals Locals
	// Wanted is what is to be carried; the Carrier follows it.
	Wanted *latest.Value[Wanted]
	// Registerer of metrics; nil registers none.
	Registerer prometheus.Registerer
	// Clock tells the time; nil means the real one.
	Clock clock.WithTicker
}

// Wanted is what is to be carried, as of now.
type Wanted struct {
	// Config says how many workers write, and by which policy. Zero workers carry nothing.
	Config offloadingv1beta1.ReflectorConfig
	// Mapping says which local namespaces have which twins.
	Mapping map[string]string
}

const (
	// calm is how long Normal Events and repeats are held back.
	calm = 10 * time.Second
	// lookEvery is how often namespaces without watch are asked for whether something crossed meanwhile.
	lookEvery = 15 * time.Second
	// callTimeout bounds each request that is not a watch; watchTimeout ends watches, which then go on.
	callTimeout  = 15 * time.Second
	watchTimeout = 10 * time.Minute
	// minBackOff and maxBackOff bound the wait after failures.
	minBackOff = time.Second
	maxBackOff = time.Minute
	// findTries is how often a local object is looked for, findFirst the first wait, which doubles: six seconds in all.
	findTries = 6
	findFirst = 200 * time.Millisecond
	// writeTries is how often a write is tried.
	writeTries = 3
	// maxHeld bounds how many Events wait at each stage, maxUnknown those about objects that are not known.
	maxHeld    = 2000
	maxUnknown = 200
	// maxText bounds each text of a remote Event while it waits.
	maxText = 2048
	// cacheSize is how many objects and Events the limits remember.
	cacheSize = 2048
	// writesPerSecond and writeBurst bound the writes of each type for the whole provider; a kubelet may make 50.
	writesPerSecond = 10
	writeBurst      = 200
	// tokenWait is how long a write that found no token waits for the next look.
	tokenWait = time.Second
	// readsPerSecond and readBurst bound what is read from the provider; above it is not listened to for deaf.
	readsPerSecond = 200
	readBurst      = 5000
	deaf           = 30 * time.Second
)

func (o *Options) complete() error {
	if o.Home == "" || o.Remote == "" || o.Events == nil || o.Peer == nil || o.Locals == nil {
		return errors.New("carrying Events: both cluster IDs, the local Events, the peer and the local objects must be given")
	}
	if o.Wanted == nil {
		o.Wanted = &latest.Value[Wanted]{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return nil
}
