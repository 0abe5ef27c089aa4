package mirror

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/kube/registry"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/reflection"
)

// FieldManager owns the fields that the engine writes at providers.
const FieldManager = "reflection.liqo.io"

// Peer is the connection to the provider, as far as the engine needs it.
type Peer interface {
	// Client returns the current client; it fails as long as there are no credentials.
	Client() (client.WithWatch, error)
	// State tells whether the provider answers; epoch grows when what is followed there is to be begun anew.
	State() (connected bool, epoch int64)
	// Version of the provider's API server, such as v1.36.3; empty if it is not known yet.
	Version() string
	// Subscribe has f called after each change of State or Version; f does not block. No call starts after cancel returned.
	Subscribe(f func()) (cancel func())
}

// Recorder writes Events about local objects.
type Recorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// References knows what the pods use that are bound to any of the provider's virtual nodes: the engine works for all of them.
type References interface {
	// Referenced tells whether one of them uses the object of a kind, by the name that users configure the kind with. While
	// nothing is known about pods yet, objects whose policy asks for it are left as they are: neither made nor removed.
	// Whoever implements it calls Engine.Reconsider when an answer changes, and when answers become known.
	Referenced(namespace, kind, name string) (used, known bool)
}

// Options of an Engine.
type Options struct {
	// Home is this cluster's ID.
	Home string
	// Remote is the provider's cluster ID.
	Remote string
	// NodeName is the virtual node, for metrics.
	NodeName string
	// Kinds to reflect; nil means all of reflection.Kinds.
	Kinds []reflection.Kind
	// Wanted is what is to be reflected, and how; the engine follows it. Nil means nothing.
	Wanted *latest.Value[Wanted]
	// Local is the reflection account's client of this cluster; it reads live.
	Local client.WithWatch
	// Peer is the connection to the provider.
	Peer Peer
	// References tells what pods use; nil says that nothing is used.
	References References
	// Recorder of Events; nil records none.
	Recorder Recorder
	// Registerer of metrics; nil registers none.
	Registerer prometheus.Registerer
	// Clock tells the time; nil means the real one.
	Clock clock.WithTickerAndDelayedExecution
	// RequestTimeout bounds every call (default 30 s).
	RequestTimeout time.Duration
	// Removals holds back the removal of many copies at once whose originals a list did not show; nil holds none.
	Removals *massremoval.Guard
	// MaxRemoteObjects of a kind are accepted from the provider in one namespace (default 10000).
	MaxRemoteObjects int
	// Budget bounds how much memory takes what is accepted from the provider, with all others that share it; nil means one of its own.
	Budget *replica.Budget
}

// The defaults of Options.
const (
	DefaultRequestTimeout   = 30 * time.Second
	DefaultMaxRemoteObjects = 10000
)

// The times by which the engine works.
const (
	// minBackOff and maxBackOff bound the wait after failures.
	minBackOff = 50 * time.Millisecond
	maxBackOff = 60 * time.Second
	// minRefused and maxRefused bound the wait after a refusal: rules change without anybody telling, and mostly late.
	minRefused = time.Second
	maxRefused = 2 * time.Minute
	// namespaceFresh is how old a namespace's annotations may be when something new crosses.
	namespaceFresh = time.Minute
	// namespaceRefresh is how often they are read anyway.
	namespaceRefresh = 10 * time.Minute
	// overlayLife is how long a write's answer is believed against an older cache.
	overlayLife = 10 * time.Second
	// ledgerGrace is how long the provider may take to enter a write into its ledger.
	ledgerGrace = 5 * time.Second
	// ledgerLate is how long after a write to look at the object itself if the ledger was not rewritten since, and
	// ledgerLatest how long that pause grows.
	ledgerLate   = 15 * time.Second
	ledgerLatest = time.Hour
	// warnAfter is how often a passing failure must repeat, and warnPatience how long it must last, before it is told: that an API
	// server starts, or has not counted a new namespace's quota yet, is nothing to act upon.
	warnAfter    = 5
	warnPatience = 30 * time.Second
)

func (o *Options) complete() error {
	switch {
	case o.Home == "" || o.Remote == "":
		return errors.New("making a reflection engine: both cluster IDs must be given")
	case o.Local == nil || o.Peer == nil:
		return errors.New("making a reflection engine: the local client and the peer must be given")
	}
	if o.Kinds == nil {
		o.Kinds = reflection.Kinds()
	}
	if o.Wanted == nil {
		o.Wanted = &latest.Value[Wanted]{}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.RequestTimeout <= 0 {
		o.RequestTimeout = DefaultRequestTimeout
	}
	if o.MaxRemoteObjects <= 0 {
		o.MaxRemoteObjects = DefaultMaxRemoteObjects
	}
	if o.Budget == nil {
		o.Budget = replica.NewBudget(replica.DefaultBudget)
	}
	return nil
}

// Values of the label result.
const (
	resultCreated = "created"
	resultUpdated = "updated"
	resultDeleted = "deleted"
	// resultBroughtBack is a write of the local status.
	resultBroughtBack = "broughtback"
)

// reporter tells what happened: Events to users, metrics to operators.
type reporter struct {
	recorder Recorder
	items    *prometheus.CounterVec
	errors   *prometheus.CounterVec
}

func newReporter(o Options) (*reporter, error) {
	constant := prometheus.Labels{"cluster_id": o.Remote, "node_name": o.NodeName}
	r := &reporter{
		recorder: o.Recorder,
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_virtual_kubelet_reflection_item_counter", ConstLabels: constant,
			Help: "Writes that reflection made, at the provider unless the result is broughtback, by namespace, kind and result.",
		}, []string{"namespace", "reflector_resource", "result"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_virtual_kubelet_reflection_error_counter", ConstLabels: constant,
			Help: "Failures of reflection, by namespace, kind and reason.",
		}, []string{"namespace", "reflector_resource", "reason"}),
	}
	for _, counter := range []**prometheus.CounterVec{&r.items, &r.errors} {
		var err error
		if *counter, err = registry.Ensure(o.Registerer, *counter); err != nil {
			return nil, fmt.Errorf("counting what reflection does: %w", err)
		}
	}
	return r, nil
}

func (r *reporter) done(kind, namespace, result string) {
	r.items.WithLabelValues(namespace, kind, result).Inc()
}

func (r *reporter) failed(kind, namespace, reason string) {
	r.errors.WithLabelValues(namespace, kind, reason).Inc()
}

// forget drops the series of a namespace that is no longer reflected.
func (r *reporter) forget(namespace string) {
	r.items.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	r.errors.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
}

func (r *reporter) event(object reflection.Object, kind, reason, message string) {
	if r.recorder != nil {
		r.recorder.Event(object.DeepCopyObject(), kind, reason, message)
	}
}

// NewErrorCounter returns the counter of failures of reflection to a provider through a virtual node, by namespace, kind and reason. It
// is the one that Engines of the same registerer count in.
func NewErrorCounter(registerer prometheus.Registerer, remote, node string) (*prometheus.CounterVec, error) {
	reporter, err := newReporter(Options{Remote: remote, NodeName: node, Registerer: registerer})
	if err != nil {
		return nil, err
	}
	return reporter.errors, nil
}
