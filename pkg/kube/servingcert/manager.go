package servingcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

const (
	// DefaultInterval is the time between two looks at the Secret and the webhook configurations while nobody changes them: everything
	// that is due has days to be done in.
	DefaultInterval = 6 * time.Hour

	passTimeout  = 30 * time.Second
	firstBackOff = time.Second
	maxBackOff   = time.Minute
	// Who keeps changing what we keep has it put back so often at once, and then once in every repairs.
	repairsAtOnce = 10
	repairs       = 10 * time.Second
	fieldManager  = client.FieldOwner("liqo-serving-certificate")
)

// Options are the settings of a Manager.
type Options struct {
	// Client reads from, watches and writes to the local API server, without a cache.
	Client client.WithWatch
	// Namespace and SecretName say where the certificate is kept.
	Namespace, SecretName string
	// DNSNames are the names that API servers call: see ServiceDNSNames.
	DNSNames []string
	// WebhookConfigurations are the names of the validating and mutating webhook configurations that get the caBundle. A
	// name may belong to one of either kind or to both. Only webhooks that call a Service in Namespace are touched.
	WebhookConfigurations []string
	// WebhookSelector must match the labels of those configurations, and its labels are put on the Secret.
	// Default: liqo.io/webhook=true.
	WebhookSelector labels.Set
	// SecretPaths are the paths of webhooks that want to know whether a request comes from an API server: a slash and Token follow them in
	// the configurations.
	SecretPaths []string
	// Interval is the time between two looks while nothing changes. Default: DefaultInterval.
	Interval time.Duration
	// Clock is the real one by default.
	Clock clock.Clock
}

// ServiceDNSNames are the names under which a Service is called.
func ServiceDNSNames(service, namespace string) []string {
	name := service + "." + namespace + ".svc"
	return []string{name, name + ".cluster.local"}
}

// Manager keeps the certificate, and serves it.
type Manager struct {
	options Options
	changed signal

	mu       sync.RWMutex
	serving  *tls.Certificate
	token    string
	injected bool
	lastErr  error
}

var (
	_ manager.Runnable               = (*Manager)(nil)
	_ manager.LeaderElectionRunnable = (*Manager)(nil)
)

// New makes a Manager. It does nothing until Start or Ensure.
func New(options Options) (*Manager, error) {
	switch {
	case options.Client == nil:
		return nil, errors.New("the serving certificate needs a client")
	case options.Namespace == "" || options.SecretName == "":
		return nil, errors.New("the serving certificate needs the namespace and name of its Secret")
	case len(options.DNSNames) == 0 || slices.Contains(options.DNSNames, ""):
		return nil, errors.New("the serving certificate needs at least one DNS name, and none may be empty")
	case slices.Contains(options.WebhookConfigurations, ""):
		return nil, errors.New("the name of a webhook configuration is empty")
	}
	if options.WebhookSelector == nil {
		options.WebhookSelector = labels.Set{corev1beta1.WebhookLabel: "true"}
	}
	if options.Interval <= 0 {
		options.Interval = DefaultInterval
	}
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	return &Manager{options: options, changed: make(signal, 1)}, nil
}

// NeedLeaderElection is false: every replica serves.
func (m *Manager) NeedLeaderElection() bool { return false }

// Start looks after the certificate until ctx ends: when something that it keeps was changed, and when something may be due. Failures are
// logged, tried again with back-off, and told by Ready.
func (m *Manager) Start(ctx context.Context) error {
	log := ctrl.LoggerFrom(ctx).WithName("serving-certificate")
	var following sync.WaitGroup
	defer following.Wait()
	m.follow(ctx, &following)
	backOff, limit := firstBackOff, rate.NewLimiter(rate.Every(repairs), repairsAtOnce)
	for {
		wait := m.options.Interval
		if err := m.Ensure(ctx); err != nil && ctx.Err() == nil {
			log.Error(err, "Cannot keep the webhook serving certificate", "retryAfter", backOff)
			wait, backOff = backOff, min(2*backOff, maxBackOff)
		} else {
			backOff = firstBackOff
		}
		timer := m.options.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-timer.C():
		case <-m.changed:
			timer.Stop()
			if limit.Wait(ctx) != nil {
				return nil
			}
		}
	}
}

// Ensure makes one pass: the Secret holds what it should, the webhook configurations trust it, and only then is it served.
// It may be called before Start.
func (m *Manager) Ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	material, err := m.ensureSecret(ctx)
	if err != nil {
		m.record(nil, false, err)
		return err
	}
	token, err := material.token()
	if err != nil {
		m.record(nil, false, err)
		return err
	}
	m.mu.Lock()
	m.token = token
	m.mu.Unlock()
	err = m.inject(ctx, material.Bundle(), token)
	m.record(material.Serving, err == nil, err)
	return err
}

// record takes over a certificate: one that is not trusted everywhere yet only if there is no valid one.
func (m *Manager) record(serving *tls.Certificate, injected bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lastErr = err
	m.injected = m.injected || injected
	if serving != nil && (injected || m.serving == nil || !validNow(m.serving.Leaf, m.options.Clock.Now())) {
		m.serving = serving
	}
}

// Token is what API servers, who read the configurations, say at the end of SecretPaths, and nobody else can; empty if there is none yet. It
// is the same in all replicas, and changes with the authority.
func (m *Manager) Token() string {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.token
}

// GetCertificate is for tls.Config. It fails until there is a certificate.
func (m *Manager) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if m.serving == nil {
		return nil, errors.New("there is no serving certificate yet")
	}
	return m.serving, nil
}

// Ready is a readiness check: nil once a valid certificate is served that API servers were told to trust. Later trouble with
// the API server does not make it fail while the certificate is valid.
func (m *Manager) Ready(*http.Request) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	switch {
	case m.serving == nil || !m.injected:
		if m.lastErr != nil {
			return fmt.Errorf("the webhook serving certificate is not in place: %w", m.lastErr)
		}
		return errors.New("the webhook serving certificate is not in place yet")
	case !validNow(m.serving.Leaf, m.options.Clock.Now()):
		return fmt.Errorf("the webhook serving certificate expired at %s", m.serving.Leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	return nil
}
