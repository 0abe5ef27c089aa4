package token

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/reflection"
)

// reconcile brings the tokens of one pod in step, and tells when to look again.
func (k *Keeper) reconcile(ctx context.Context, pod key) (next time.Duration, err error) {
	place, there := k.options.Place(pod)
	if !there || ended(place.Local) {
		k.forget(pod)
		return 0, nil
	}
	tokens := reflection.PodTokens(place.Local, k.options.API.At(k.options.APIAddress))
	if len(tokens) == 0 || place.secret() == "" {
		k.forget(pod)
		return 0, nil
	}
	s := k.known(pod, place.Local.UID)
	if place.UID == "" {
		return k.away(place, s), nil
	}
	k.settle(s, place.Namespace, place.secret())
	says, read := k.ledgers.look(place.Namespace, place.Provider, place.Epoch)
	if !read {
		return 0, nil // its arrival is an event
	}
	now, lifetime := k.options.Clock.Now(), k.lifetime(tokens)
	shape := k.shape(place, tokens)
	if entry, listed := says.entry(s.secret); s.shape == "" && listed && entry.PodUID == string(s.pod) && entry.Shape == shape &&
		entry.Expiration.Sub(now) <= lifetime+tolerance {
		s.adopt(entry, lifetime, k.options.Jitter(maxJitter))
	}
	write, then := s.due(shape, says, now)
	if !write {
		return k.until(then), nil
	}
	if err := k.renew(ctx, place, s, tokens); err != nil {
		return 0, err
	}
	s.shape, s.lifetime, s.seen, s.written, s.version = shape, lifetime, false, now, says.versionOrNone()
	s.schedule(s.expires, k.options.Jitter(maxJitter))
	k.metrics.written.WithLabelValues(pod.Namespace).Inc()
	k.recovered(place.Local, s)
	return k.until(s.renew), nil
}

// ended tells whether a pod needs no tokens any more.
func ended(local *corev1.Pod) bool {
	return reflection.Terminal(local.Status.Phase)
}

// lifetime of a pod's tokens: that of the shortest.
func (k *Keeper) lifetime(tokens []reflection.PodToken) time.Duration {
	shortest := k.options.MaxLifetime
	for _, token := range tokens {
		shortest = min(shortest, token.Lifetime)
	}
	return shortest
}

// shape is that of the Secret that the pod should have.
func (k *Keeper) shape(place Place, tokens []reflection.PodToken) string {
	values := map[string]string{}
	for _, token := range tokens {
		values[token.Key] = ""
	}
	return reflection.TokenShape(k.secret(place, values, time.Time{}))
}

func (k *Keeper) secret(place Place, values map[string]string, expires time.Time) *corev1.Secret {
	in := reflection.PodInput{Home: k.options.Home, Remote: k.options.Remote, Node: k.options.Node, Namespace: place.Namespace}
	secret := reflection.TokenSecret(place.Local, in, place.UID, values, expires)
	secret.Name = place.secret()
	return secret
}

// secret is the name of the Secret in which the pod looks for its tokens; empty if it does not.
func (p Place) secret() string {
	if p.Shadow == nil {
		return reflection.TokenSecretName(p.Local.Name)
	}
	return reflection.TokenSecretOf(p.Shadow)
}

// renew asks for the pod's tokens and writes them. Those that could not be written are kept until they are due: a provider that
// refuses them does not have this cluster issue new ones on every try.
func (k *Keeper) renew(ctx context.Context, place Place, s *state, tokens []reflection.PodToken) error {
	values := map[string]string{}
	var expires time.Time
	for _, token := range tokens {
		got := s.minted[token]
		if !got.fresh(k.options.Clock.Now(), min(token.Lifetime, k.options.MaxLifetime)) {
			var err error
			if got.value, got.expires, err = k.request(ctx, place.Local, token); err != nil {
				return err
			}
			if s.minted == nil {
				s.minted = map[reflection.PodToken]minted{}
			}
			s.minted[token] = got
		}
		values[token.Key] = got.value
		if expires.IsZero() || got.expires.Before(expires) {
			expires = got.expires
		}
	}
	if err := put(ctx, place.Provider, k.secret(place, values, expires), s.shape != ""); err != nil {
		return err
	}
	s.expires, s.minted = expires, nil
	return nil
}

// away looks after the tokens of a pod whose ShadowPod is not known, or whose provider does not answer: they stay as they
// are, and their end is told once.
func (k *Keeper) away(place Place, s *state) (next time.Duration) {
	if s.shape == "" {
		return 0
	}
	if k.options.Clock.Now().Before(s.renew) {
		return k.until(s.renew)
	}
	if place.Lost && !s.warned {
		s.warned = true
		k.event(place.Local, corev1.EventTypeWarning, reasonFailed, fmt.Sprintf(
			"cluster %q does not answer: the tokens of the pod's ServiceAccount end at %s and cannot be renewed until it does",
			k.options.Remote, s.expires.UTC().Format(time.RFC3339)))
	}
	return 0 // the provider's return is an event
}

func (p *published) entry(secret string) (reflection.TokenEntry, bool) {
	if p == nil {
		return reflection.TokenEntry{}, false
	}
	entry, there := p.entries[secret]
	return entry, there
}

func (p *published) versionOrNone() string {
	if p == nil {
		return ""
	}
	return p.version
}
