package servingcert

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// Follower serves the certificate that a Keeper puts into a Secret. It reads and watches that Secret, and nothing else.
type Follower struct {
	secret client.ObjectKey
	rounds rounds

	mu      sync.RWMutex
	serving *tls.Certificate
	token   string
	lastErr error
}

var (
	_ manager.Runnable               = (*Follower)(nil)
	_ manager.LeaderElectionRunnable = (*Follower)(nil)
)

// NewFollower makes a Follower of a Secret, with a client that has no cache. It does nothing until Start or Look.
func NewFollower(c client.WithWatch, secret client.ObjectKey, now clock.Clock) *Follower {
	objects := map[schema.GroupVersionKind][]client.ObjectKey{secretKind: {secret}}
	return &Follower{secret: secret, rounds: rounds{client: c, interval: DefaultInterval, clock: now, objects: objects, changed: make(signal, 1)}}
}

// NeedLeaderElection is false: every replica serves.
func (f *Follower) NeedLeaderElection() bool { return false }

// Start follows the Secret until ctx ends.
func (f *Follower) Start(ctx context.Context) error { return f.rounds.run(ctx, f.Look) }

// Look reads the Secret once. What was read before is served on while it holds no certificate. It may be called before Start.
func (f *Follower) Look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	secret := &corev1.Secret{}
	err := f.rounds.client.Get(ctx, f.secret, secret)
	material := Parse(secret.Data)
	switch {
	case err != nil:
		err = fmt.Errorf("reading Secret %s: %w", f.secret, err)
	case material.Serving == nil:
		err = fmt.Errorf("the Secret %s holds no certificate: Liqo's Deployment for certificates puts it there", f.secret)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.lastErr = err; err == nil {
		f.serving, f.token = material.Serving, string(secret.Data[TokenKey])
	}
	return err
}

// Token is what API servers, who read the configurations, say at the end of Options.SecretPaths, and nobody else can; empty if there is none
// yet. It is the same in all replicas, and changes with the authority.
func (f *Follower) Token() string {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.token
}

// GetCertificate is for tls.Config. It fails until there is a certificate.
func (f *Follower) GetCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if f.serving == nil {
		return nil, errors.New("there is no serving certificate yet")
	}
	return f.serving, nil
}

// Ready is a readiness check: nil while a valid certificate is served.
func (f *Follower) Ready(*http.Request) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	switch {
	case f.serving == nil && f.lastErr != nil:
		return fmt.Errorf("there is no webhook serving certificate: %w", f.lastErr)
	case f.serving == nil:
		return errors.New("there is no webhook serving certificate yet")
	}
	return whyExpired(f.serving.Leaf.NotAfter, f.rounds.clock.Now())
}
