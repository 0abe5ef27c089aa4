package api

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

var (
	// ErrNotFound is returned by a Remote for a pod that is not on this node, or whose namespace is not offloaded;
	// the caller gets 404.
	ErrNotFound = errors.New("pod not found on this node")
	// ErrNotConnected is returned by a Remote while the provider cannot be reached; the caller gets 502.
	ErrNotConnected = errors.New("the provider cluster is not connected")
	// ErrStandsBy says that nothing is known of the node's pods: another process works for the node, or this one has just begun to. The
	// caller gets 502.
	ErrStandsBy = errors.New("this virtual kubelet stands by for another one, or has just taken over the node; try again in a moment")
)

// Remote finds the twin of a local pod.
type Remote interface {
	// Twin returns where the twin of the local pod runs. The uid is empty when the caller did not name one; otherwise
	// a pod with another uid is ErrNotFound. Errors match ErrNotFound, ErrNotConnected or ErrStandsBy where these are the cause.
	// It answers from memory: it is called once per request and must not block on the provider.
	Twin(ctx context.Context, namespace, pod, uid string) (Target, error)
}

// Target is one pod at the provider.
type Target struct {
	// Config connects to the provider's API server; it is copied before use.
	Config *rest.Config
	// Namespace and Pod name the twin at the provider.
	Namespace, Pod string
	// Containers are all containers of the pod, init and ephemeral ones included; nil means that they are not known
	// here and the provider decides.
	Containers []string
	// RequestLogs asks the provider to let the pod's logs be read, which it then does after a moment. Asking again costs
	// nothing. Nil means that there is nobody to ask.
	RequestLogs func(context.Context) error
}

// Limits bound what one peer can cost.
type Limits struct {
	// Streams is how many logs, exec, attach and port-forward streams may run at once; each forwarded connection
	// counts as one. Default 100.
	Streams int
	// DialTimeout is how long the provider may take to accept a stream. Default 30 s.
	DialTimeout time.Duration
	// GrantTimeout is how long the provider may take to let logs be read once it was asked. Default 10 s.
	GrantTimeout time.Duration
	// IdleTimeout ends a stream that carried no data for so long. Default 4 h, as a kubelet.
	IdleTimeout time.Duration
	// LogTimeout is how long the provider may take, in all, to send a log that is not followed; the time that the caller
	// takes to read does not count. Default 10 min.
	LogTimeout time.Duration
	// LogBytes is how much it may send of a log that is not followed. Default 1 GiB: a kubelet keeps far less of a container.
	LogBytes int64
}

// Options are what a Server needs. Without a default: Remote, LocalClient, NodeName and GetCertificate.
type Options struct {
	// Remote finds the twins.
	Remote Remote
	// LocalClient sends TokenReviews and SubjectAccessReviews to the local API server.
	LocalClient kubernetes.Interface
	// ClientCA verifies client certificates; nil means that only tokens are accepted. Run keeps it up to date when it
	// is a dynamiccertificates.ControllerRunner. See ClientCA for the usual one.
	ClientCA dynamiccertificates.CAContentProvider
	// GetCertificate returns the serving certificate of the node.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// Address is the host:port to listen on. Default ":10250".
	Address string
	// Listener is used instead of Address when set; Run closes it.
	Listener net.Listener
	// NodeName is the virtual node that authorization is asked for.
	NodeName string
	// Gatherer is what /metrics shows. Default prometheus.DefaultGatherer.
	Gatherer prometheus.Gatherer
	// Registerer takes this package's own metrics; nil means that none are kept.
	Registerer prometheus.Registerer
	// Limits bound the streams; zero fields take their defaults.
	Limits Limits
	// Working tells whether the pods of this node are known; until then questions about them are answered with ErrStandsBy, and Remote
	// and Pods are not called. Default: they always are.
	Working func() bool
	// Pods lists the local pods of this node, for /pods and /runningpods. Default: none.
	Pods func() []*corev1.Pod
	// Usage answers what the pods of this node use, at /metrics/resource, /metrics/cadvisor, /metrics/probes and /stats/summary. Default:
	// nobody knows.
	Usage http.Handler
	// Serving is called once, when callers can be told apart and are answered from then on. Default: nothing.
	Serving func()
	// Clock measures dial and idle timeouts. Default: the real one.
	Clock clock.WithDelayedExecution
}

const (
	defaultAddress      = ":10250"
	defaultStreams      = 100
	defaultDialTimeout  = 30 * time.Second
	defaultGrantTimeout = 10 * time.Second
	defaultIdleTimeout  = 4 * time.Hour
	defaultLogTimeout   = 10 * time.Minute
	defaultLogBytes     = 1 << 30
)

// complete fills defaults and reports what is missing.
func (o *Options) complete() error {
	var missing []error
	for name, absent := range map[string]bool{
		"Remote": o.Remote == nil, "LocalClient": o.LocalClient == nil,
		"GetCertificate": o.GetCertificate == nil, "NodeName": o.NodeName == "",
	} {
		if absent {
			missing = append(missing, errors.New("the kubelet endpoint needs the option "+name))
		}
	}
	if o.Limits.Streams < 0 || o.Limits.DialTimeout < 0 || o.Limits.GrantTimeout < 0 || o.Limits.IdleTimeout < 0 ||
		o.Limits.LogTimeout < 0 || o.Limits.LogBytes < 0 {
		missing = append(missing, errors.New("the limits of the kubelet endpoint must not be negative"))
	}
	o.Address = orDefault(o.Address, defaultAddress)
	o.Limits.Streams = orDefault(o.Limits.Streams, defaultStreams)
	o.Limits.DialTimeout = orDefault(o.Limits.DialTimeout, defaultDialTimeout)
	o.Limits.GrantTimeout = orDefault(o.Limits.GrantTimeout, defaultGrantTimeout)
	o.Limits.IdleTimeout = orDefault(o.Limits.IdleTimeout, defaultIdleTimeout)
	o.Limits.LogTimeout = orDefault(o.Limits.LogTimeout, defaultLogTimeout)
	o.Limits.LogBytes = orDefault(o.Limits.LogBytes, defaultLogBytes)
	if o.Gatherer == nil {
		o.Gatherer = prometheus.DefaultGatherer
	}
	if o.Working == nil {
		o.Working = func() bool { return true }
	}
	if o.Pods == nil {
		o.Pods = func() []*corev1.Pod { return nil }
	}
	if o.Usage == nil {
		o.Usage = http.NotFoundHandler()
	}
	if o.Serving == nil {
		o.Serving = func() {}
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return errors.Join(missing...)
}

func orDefault[T comparable](value, fallback T) T {
	var zero T
	if value == zero {
		return fallback
	}
	return value
}
