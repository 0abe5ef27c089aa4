package servingcert

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

const (
	// maxRaces bounds how often in a row another replica may be faster within one pass.
	maxRaces     = 5
	fieldManager = client.FieldOwner("liqo-serving-certificate")
)

// Options are the settings of a Keeper.
type Options struct {
	// Client reads from, watches and writes to the local API server, without a cache.
	Client client.WithWatch
	// Namespace is where the Secrets are. That named AuthorityName is the Keeper's alone; that named SecretName is for those who serve.
	Namespace, AuthorityName, SecretName string
	// DNSNames are the names that API servers call: see ServiceDNSNames.
	DNSNames []string
	// WebhookConfigurations are the names of the validating and mutating webhook configurations that get the caBundle. A
	// name may belong to one of either kind or to both. Only webhooks that call a Service in Namespace are touched.
	WebhookConfigurations []string
	// WebhookSelector must match the labels of those configurations, and its labels are put on the Secrets.
	// Default: liqo.io/webhook=true.
	WebhookSelector labels.Set
	// SecretPaths are the paths of webhooks that want to know whether a request comes from an API server: a slash and the token follow them in
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

// Keeper keeps the Secrets and the webhook configurations.
type Keeper struct {
	options Options
	rounds  rounds

	mu sync.RWMutex
	// expires is when the certificate expires that was in place when the last pass succeeded.
	expires time.Time
	lastErr error
}

var (
	_ manager.Runnable               = (*Keeper)(nil)
	_ manager.LeaderElectionRunnable = (*Keeper)(nil)
)

// NewKeeper makes a Keeper. It does nothing until Start or Ensure.
func NewKeeper(options Options) (*Keeper, error) {
	switch {
	case options.Client == nil:
		return nil, errors.New("the serving certificate needs a client")
	case options.Namespace == "" || options.AuthorityName == "" || options.SecretName == "":
		return nil, errors.New("the serving certificate needs the namespace and names of its Secrets")
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
	objects := map[schema.GroupVersionKind][]client.ObjectKey{secretKind: {
		{Namespace: options.Namespace, Name: options.AuthorityName}, {Namespace: options.Namespace, Name: options.SecretName}}}
	for _, config := range configurations() {
		kind := admissionregistrationv1.SchemeGroupVersion.WithKind(config.kind)
		for _, name := range options.WebhookConfigurations {
			objects[kind] = append(objects[kind], client.ObjectKey{Name: name})
		}
	}
	return &Keeper{options: options, rounds: rounds{client: options.Client, interval: options.Interval, clock: options.Clock, objects: objects,
		changed: make(signal, 1)}}, nil
}

// secretKind is the kind of what both of us follow.
var secretKind = corev1.SchemeGroupVersion.WithKind("Secret")

// NeedLeaderElection is false: see write.
func (k *Keeper) NeedLeaderElection() bool { return false }

// Start looks after the certificate until ctx ends: when something that it keeps was changed, and when something may be due.
func (k *Keeper) Start(ctx context.Context) error { return k.rounds.run(ctx, k.Ensure) }

// Ensure makes one pass: the authority's Secret holds what it should, the webhook configurations trust it, and only then is it served.
// It may be called before Start.
func (k *Keeper) Ensure(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	var expires time.Time
	var err error
	for range maxRaces {
		if expires, err = k.pass(ctx); !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) {
			break
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lastErr = err; err == nil {
		k.expires = expires
	}
	return err
}

// pass returns when the certificate expires that is in place now.
func (k *Keeper) pass(ctx context.Context) (expires time.Time, err error) {
	authority, err := k.read(ctx, k.options.AuthorityName)
	if err != nil {
		return time.Time{}, err
	}
	served, err := k.read(ctx, k.options.SecretName)
	if err != nil {
		return time.Time{}, err
	}
	material, err := k.issue(ctx, authority, served)
	if err != nil {
		return time.Time{}, err
	}
	token, err := material.token()
	if err != nil {
		return time.Time{}, err
	}
	err = k.inject(ctx, material.Bundle(), token)
	// What is not trusted everywhere yet is served only if what was served before is of no use.
	if err == nil || !usable(Parse(served.Data), k.options.DNSNames, k.options.Clock.Now()) {
		err = errors.Join(err, k.serve(ctx, served, material, token))
	}
	return material.Serving.Leaf.NotAfter, err
}

// Ready is a readiness check: nil once a valid certificate is in place that API servers were told to trust. Later trouble with
// the API server does not make it fail while the certificate is valid.
func (k *Keeper) Ready(*http.Request) error {
	k.mu.RLock()
	defer k.mu.RUnlock()
	switch {
	case k.expires.IsZero() && k.lastErr != nil:
		return fmt.Errorf("the webhook serving certificate is not in place: %w", k.lastErr)
	case k.expires.IsZero():
		return errors.New("the webhook serving certificate is not in place yet")
	}
	return whyExpired(k.expires, k.options.Clock.Now())
}

func whyExpired(expires, now time.Time) error {
	if now.After(expires) {
		return fmt.Errorf("the webhook serving certificate expired at %s", expires.UTC().Format(time.RFC3339))
	}
	return nil
}
