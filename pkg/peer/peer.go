package peer

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/signal"
)

// ErrNotConnected says that there are no usable credentials for the peer yet.
var ErrNotConnected = errors.New("not connected: there are no usable credentials for the peer yet")

// The defaults of Options.
const (
	DefaultProbeInterval  = 10 * time.Second
	DefaultProbeTimeout   = 5 * time.Second
	DefaultRequestTimeout = 30 * time.Second
)

// Options say which peer, and how it is watched over.
type Options struct {
	// ClusterID of the peer, for messages.
	ClusterID string
	// Kubeconfig is where the credentials come from.
	Kubeconfig Source
	// Scheme of Clients.Client; nil means Kubernetes' own kinds.
	Scheme *runtime.Scheme
	// Mapper of Clients.Client; nil means that it is discovered at the peer.
	Mapper meta.RESTMapper
	// Endpoints says where the peer may be. The zero value refuses loopback and link-local addresses.
	Endpoints identity.EndpointPolicy
	// Wrap is around the transport of all requests to the peer; nil adds nothing.
	Wrap transport.WrapperFunc
	// ProbeInterval between two probes (default 10 s).
	ProbeInterval time.Duration
	// ProbeTimeout of one probe (default 5 s).
	ProbeTimeout time.Duration
	// RequestTimeout of every request but watches and streams (default 30 s).
	RequestTimeout time.Duration
	// Witness tells whether somebody else knows that the peer answers, as a virtual kubelet does that probes it, too. A connected peer
	// is not probed while it says so, but every five minutes, and at once after a request that failed or a Doubt. It is asked
	// once in each ProbeInterval and must not block; nil stands for nobody.
	Witness func(context.Context) bool
	// Rights are those of which the peer grants at least one as long as the peering works. It is asked for them with new credentials,
	// after a request that it forbade, with each probe as long as it denies them, and every 30 s, in place of another probe; every five
	// minutes with a Witness. nil or none stand for nothing to ask.
	Rights func() []Right
	// UserAgent shown to the peer.
	UserAgent string
	// Meter shows the connection as metrics while it runs; nil shows nothing.
	Meter *Meter
	// Clock times the probes; nil means the real one.
	Clock clock.WithTicker
	// Log of the connection.
	Log logr.Logger
}

// State is what is known about the connection.
type State struct {
	// Connected says that the peer answered lately. See Usable for whether it lets us work.
	Connected bool
	// Reason is one of the reasons of this package.
	Reason string
	// Message says in words what was last observed.
	Message string
	// Since is when Connected last changed.
	Since time.Time
	// ServerVersion of the peer, such as v1.36.3; empty before the first answer.
	ServerVersion string
	// Epoch grows when what is watched at the peer is to be begun anew: with other credentials, and when the peer is usable again. Watches that
	// were refused or cut off meanwhile would be tried again late, and what they told before may be long past. Zero means no credentials yet.
	Epoch int64
}

// Lost tells whether the peer was asked and does not answer. Before the first answer or failure nothing is known of it: then it
// is neither Connected nor Lost.
func (s State) Lost() bool {
	return !s.Connected && s.Reason != ReasonProbing && s.Reason != ReasonNoCredentials && s.Reason != ReasonThrottled
}

// Clients of the peer. They are the same values until the credentials change.
type Clients struct {
	// Kube is for Kubernetes' own kinds.
	Kube kubernetes.Interface
	// Dynamic is for kinds that are named at run time.
	Dynamic dynamic.Interface
	// REST sends and receives what its caller encodes and decodes; nil if the peer is not reached by HTTP.
	REST rest.Interface
	// Client is for the kinds in Options.Scheme; it reads from the peer, not from a cache.
	Client client.WithWatch
	// User is who we are to the peer, by our certificate; empty without one.
	User string
}

// access is what a kubeconfig gives.
type access struct {
	config  *rest.Config
	clients Clients
	raw     string
}

// Peer is one live connection to one peer. Make it with New; all methods may be called at any time from anywhere.
type Peer struct {
	options  Options
	wake     signal.Signal
	doubted  signal.Signal
	patience *patience
	intake   *intake

	// access are the current credentials; nil before the first.
	access atomic.Pointer[access]
	// tried are those that were probed last; only probes use them.
	tried *access

	mu       sync.Mutex
	state    State
	failures int
	// cause of the last failure that is told of; empty while the peer answers.
	cause       string
	testimony   testimony
	rights      rights
	subscribers map[int]func(State)
	next        int
	// notify keeps subscribers' calls in order.
	notify sync.Mutex
}

// New checks the options. Nothing happens before Run.
func New(o Options) (*Peer, error) {
	if o.ClusterID == "" || o.Kubeconfig == nil {
		return nil, errors.New("making a peer: the cluster ID and the source of its kubeconfig must be given")
	}
	if o.Scheme == nil {
		o.Scheme = scheme.Scheme
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	o.ProbeInterval = defaulted(o.ProbeInterval, DefaultProbeInterval)
	o.ProbeTimeout = defaulted(o.ProbeTimeout, DefaultProbeTimeout)
	o.RequestTimeout = defaulted(o.RequestTimeout, DefaultRequestTimeout)
	return &Peer{
		options:     o,
		wake:        signal.New(),
		doubted:     signal.New(),
		patience:    &patience{clock: o.Clock, told: signal.New()},
		intake:      newIntake(o.RequestTimeout),
		subscribers: map[int]func(State){},
		state:       State{Reason: ReasonNoCredentials, Message: ErrNotConnected.Error(), Since: o.Clock.Now()},
	}, nil
}

func defaulted(value, fallback time.Duration) time.Duration {
	if value <= 0 {
		return fallback
	}
	return value
}

// Config returns the current configuration, as a copy; ErrNotConnected before the first credentials. Clients made from it
// have the deadlines and bounds of this package, and end to be current with other credentials.
func (p *Peer) Config() (*rest.Config, error) {
	access := p.access.Load()
	if access == nil {
		return nil, fmt.Errorf("cluster %q: %w", p.options.ClusterID, ErrNotConnected)
	}
	return rest.CopyConfig(access.config), nil
}

// Clients returns the current clients; ErrNotConnected before the first credentials.
func (p *Peer) Clients() (Clients, error) {
	access := p.access.Load()
	if access == nil {
		return Clients{}, fmt.Errorf("cluster %q: %w", p.options.ClusterID, ErrNotConnected)
	}
	return access.clients, nil
}

// State returns what is known now.
func (p *Peer) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}

// Subscribe has f called on each change of Connected, Reason, Epoch or ServerVersion, and when the peer is lost for another cause, not for
// the present state. Calls come one at a time and must not block. No call starts after cancel returned, except from within f itself.
func (p *Peer) Subscribe(f func(State)) (cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := p.next
	p.next++
	p.subscribers[id] = f
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.subscribers, id)
	}
}

// change updates the state and tells the subscribers if it matters to them.
func (p *Peer) change(update func(*State)) {
	p.notify.Lock()
	defer p.notify.Unlock()
	p.mu.Lock()
	before, cause := p.state, p.cause
	update(&p.state)
	p.rights.judge(&p.state)
	// The first answer to credentials begins nothing anew: they just did.
	if p.state.Usable() && !before.Usable() && before.Reason != ReasonProbing {
		p.state.Epoch++
	}
	if p.state.Connected != before.Connected {
		p.state.Since = p.options.Clock.Now()
	}
	now := p.state
	var calls []func(State)
	if now.Connected != before.Connected || now.Reason != before.Reason || now.Epoch != before.Epoch ||
		now.ServerVersion != before.ServerVersion || !now.Connected && p.cause != cause {
		for _, f := range p.subscribers {
			calls = append(calls, f)
		}
	}
	p.mu.Unlock()
	for _, f := range calls {
		f(now)
	}
}

// Run loads the credentials and probes the peer until ctx ends.
func (p *Peer) Run(ctx context.Context) error {
	defer p.options.Meter.follow(p)()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for {
			if err := p.options.Kubeconfig.Run(ctx, p.load); err != nil {
				p.options.Log.Error(err, "The source of a peer's kubeconfig failed", "clusterID", p.options.ClusterID)
			}
			select {
			case <-ctx.Done():
				return
			case <-p.options.Clock.After(sourceRetry):
			}
		}
	})
	return p.probeLoop(ctx)
}

// load takes new credentials; bad ones leave the last good ones in place.
func (p *Peer) load(kubeconfig []byte) {
	if before := p.access.Load(); before != nil && before.raw == string(kubeconfig) {
		return
	}
	config, clients, err := p.build(kubeconfig)
	if err != nil {
		p.options.Log.Error(err, "A peer's kubeconfig is not usable", "clusterID", p.options.ClusterID)
		p.change(func(s *State) { s.Reason, s.Message = ReasonInvalidKubeconfig, err.Error() })
		return
	}
	p.change(func(s *State) {
		p.access.Store(&access{config, clients, string(kubeconfig)})
		p.failures = 0
		p.testimony.doubts++
		p.rights.doubted = true
		s.Epoch++
		if !s.Connected {
			s.Reason, s.Message = ReasonProbing, "waiting for the first answer of the peer"
		}
	})
	p.wake.Raise()
}

// Compact has Kubernetes' own kinds travel as protobuf, which takes less time and memory than JSON, on both sides.
func Compact(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	return config
}

func (p *Peer) build(kubeconfig []byte) (*rest.Config, Clients, error) {
	config, err := ParseKubeconfig(kubeconfig, p.options.Endpoints)
	if err != nil {
		return nil, Clients{}, err
	}
	config.UserAgent = p.options.UserAgent
	if config.UserAgent == "" {
		config.UserAgent = rest.DefaultKubernetesUserAgent()
	}
	// What is compressed says nothing of its size.
	config.DisableCompression = true
	config.Wrap(p.wrap)
	config.Wrap(p.options.Wrap)
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		// The words may quote the credentials.
		return nil, Clients{}, errors.New("the kubeconfig's certificate, key and CA do not make a usable TLS configuration")
	}
	clients := Clients{User: userOf(config.CertData)}
	if clients.Kube, err = kubernetes.NewForConfigAndClient(Compact(config), httpClient); err != nil {
		return nil, Clients{}, fmt.Errorf("making clients for cluster %q: %w", p.options.ClusterID, err)
	}
	clients.REST = clients.Kube.CoreV1().RESTClient()
	if clients.Dynamic, err = dynamic.NewForConfigAndClient(config, httpClient); err != nil {
		return nil, Clients{}, fmt.Errorf("making clients for cluster %q: %w", p.options.ClusterID, err)
	}
	clients.Client, err = client.NewWithWatch(config, client.Options{HTTPClient: httpClient, Scheme: p.options.Scheme, Mapper: p.options.Mapper})
	if err != nil {
		return nil, Clients{}, fmt.Errorf("making clients for cluster %q: %w", p.options.ClusterID, err)
	}
	return config, clients, nil
}

// userOf is the user that a client certificate stands for.
func userOf(certificate []byte) string {
	block, _ := pem.Decode(certificate)
	if block == nil {
		return ""
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return ""
	}
	return parsed.Subject.CommonName
}
