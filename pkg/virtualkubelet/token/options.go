package token

import (
	"errors"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/reflection"
)

// Place is where a local pod runs, as far as it is known.
type Place struct {
	// Local is the local pod, which is not changed.
	Local *corev1.Pod
	// Lost says that the provider was asked and does not answer.
	Lost bool
	// UID of the pod's ShadowPod; empty while none is known. The fields below are set with it.
	UID types.UID
	// Shadow is the pod's ShadowPod; nil as long as the caches do not show it.
	Shadow *offloadingv1beta1.ShadowPod
	// Namespace is the twin namespace.
	Namespace string
	// Provider is the client of the provider.
	Provider kubernetes.Interface
	// Epoch grows when what is watched at the Provider is to be begun anew.
	Epoch int64
}

// Recorder writes Events about local pods.
type Recorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Options of a Keeper. Home, Remote, Node, Local and Place must be given.
type Options struct {
	// Home and Remote are the IDs of this cluster and of the provider.
	Home, Remote string
	// Node is the virtual node.
	Node string
	// Local is this cluster, with the node's own identity.
	Local kubernetes.Interface
	// Place tells where a pod runs; false if there is no such pod. It answers from memory.
	Place func(pod types.NamespacedName) (Place, bool)
	// API is how pods at the provider reach this cluster's API server.
	API reflection.HomeAPI
	// APIAddress is where they reach it if API names no host, invalid as long as there is none; nil means that there never is.
	APIAddress func() netip.AddrPort
	// MaxLifetime of tokens (default and at most reflection.MaxTokenLifetime, at least reflection.MinTokenLifetime).
	MaxLifetime time.Duration
	// Workers is how many pods are handled at a time; the Keeper follows it. With zero the pods keep the tokens that they have. Nil means 3.
	Workers *latest.Value[int]
	// Recorder of Events; nil records none.
	Recorder Recorder
	// Registerer of the metrics; nil means that they are not shown.
	Registerer prometheus.Registerer
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
	// Jitter returns a duration below its argument; nil means a random one.
	Jitter func(limit time.Duration) time.Duration
}

const (
	defaultWorkers = 3
	// minBackOff and maxBackOff bound the wait after failures.
	minBackOff = 100 * time.Millisecond
	maxBackOff = 60 * time.Second
	// timeout bounds everything that is done for one pod at a time.
	timeout = 60 * time.Second
	// maxJitter spreads renewals.
	maxJitter = 30 * time.Second
	// ledgerGrace is how long the ledger may take to show a Secret after the write, and the least time between two attempts
	// to put a lost one back.
	ledgerGrace = 30 * time.Second
	// tellEvery is the least time between two Events about failures of one pod.
	tellEvery = 5 * time.Minute
	// patience is how many failures that may be gone at the next try are not worth an Event.
	patience = 3
	// tolerance is by how much a token may live longer than it was asked to.
	tolerance = 30 * time.Second
)

func (o *Options) complete() error {
	if o.Home == "" || o.Remote == "" || o.Node == "" || o.Local == nil || o.Place == nil {
		return errors.New("keeping the pods' tokens: both cluster IDs, the node, the local client and the place of pods must be given")
	}
	if o.MaxLifetime <= 0 {
		o.MaxLifetime = reflection.MaxTokenLifetime
	}
	o.MaxLifetime = min(max(o.MaxLifetime, reflection.MinTokenLifetime), reflection.MaxTokenLifetime)
	if o.Workers == nil {
		o.Workers = latest.New(defaultWorkers)
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Jitter == nil {
		o.Jitter = rand.N[time.Duration]
	}
	return nil
}
