package peer

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/version"
)

// Reasons of a State.
const (
	// ReasonConnected: the last probe was answered.
	ReasonConnected = "Connected"
	// ReasonNoCredentials: there was no usable kubeconfig yet.
	ReasonNoCredentials = "NoCredentials"
	// ReasonInvalidKubeconfig: the newest kubeconfig is not acceptable; the one before stays in use.
	ReasonInvalidKubeconfig = "InvalidKubeconfig"
	// ReasonProbing: the first answer is awaited.
	ReasonProbing = "Probing"
	// ReasonUnreachable: the peer did not answer several probes in a row.
	ReasonUnreachable = "Unreachable"
	// ReasonThrottled: the peer answers, and asked for fewer requests within the last minute.
	ReasonThrottled = "RemoteThrottled"
	// ReasonUnauthorized: the peer answers, but does not accept the credentials.
	ReasonUnauthorized = "Unauthorized"
	// ReasonRevoked: the peer answers, and took our rights back.
	ReasonRevoked = "RightsRevoked"
)

// itAnswers is the message of a peer that works.
const itAnswers = "the peer's API server answers"

const (
	// failuresToLose is how many probes in a row must fail before the peer counts as lost.
	failuresToLose = 2
	minBackOff     = time.Second
	maxBackOff     = 60 * time.Second
	maxVersion     = 64 << 10
	maxText        = 256
)

// probeLoop probes at once after new credentials, else after each delay, unless that is spared.
func (p *Peer) probeLoop(ctx context.Context) error {
	for {
		spared := p.spared(ctx)
		if !spared {
			p.probe(ctx)
		}
		timer := p.options.Clock.NewTimer(max(p.delay(), p.patience.left()))
		if !p.rest(ctx, timer.C(), spared) {
			timer.Stop()
			return nil
		}
		timer.Stop()
	}
}

// rest waits for the time of the next probe. It returns false if the context ended.
func (p *Peer) rest(ctx context.Context, over <-chan time.Time, spared bool) bool {
	for {
		select {
		case <-ctx.Done():
			return false
		case <-p.patience.told:
			p.change(throttled)
		case <-p.wake:
			// They may have come just before a probe that tried them. One that follows at once would pass for a second opinion.
			if p.untried() {
				return true
			}
		case <-p.doubted:
			// A peer that is probed anyway is not probed more often.
			if spared {
				return true
			}
		case <-over:
			return true
		}
	}
}

// untried tells whether the present credentials were not probed yet.
func (p *Peer) untried() bool { return p.access.Load() != p.tried }

// throttled says that the peer asks for patience. That it answers so is an answer: who was connected still is.
func throttled(s *State) {
	s.Reason, s.Message = ReasonThrottled, "the peer's API server asks for fewer requests (429 Too Many Requests); what changes takes longer to cross"
}

// delay is the time to the next probe: the interval while all is well, short after a first failure, then growing.
func (p *Peer) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.access.Load() == nil || p.failures == 0 {
		return p.options.ProbeInterval
	}
	return BackOff(p.failures, minBackOff, min(p.options.ProbeInterval, maxBackOff), rand.Float64())
}

// BackOff is the delay after so many failures in a row (at least one): base, doubled with each, at most limit, and shortened
// by up to a fifth by random, a number from 0 to 1, so that many callers do not come back together.
func BackOff(failures int, base, limit time.Duration, random float64) time.Duration {
	delay := base << min(max(failures-1, 0), 20)
	if delay > limit || delay <= 0 {
		delay = limit
	}
	return delay - time.Duration(random*float64(delay)/5)
}

func (p *Peer) probe(ctx context.Context) {
	if p.patience.left() > 0 {
		return
	}
	p.mu.Lock()
	access, doubts, asked := p.access.Load(), p.testimony.doubts, p.options.Clock.Now()
	serverVersion, connected := p.state.ServerVersion, p.state.Connected
	p.mu.Unlock()
	if p.tried = access; access == nil {
		return
	}
	// Who tells of our rights answers: a peer that is known is asked for no more.
	note, answered := p.askRights(ctx, access.clients)
	var err error
	if !answered || !connected {
		serverVersion, err = p.ask(ctx, access.clients)
	}
	p.options.Meter.probed(ctx, p.options.ClusterID, p.options.Clock.Since(asked), err)
	if ctx.Err() != nil {
		return
	}
	p.change(func(s *State) {
		if p.access.Load() != access {
			return // the answer is about credentials that were replaced meanwhile
		}
		if note != nil && err == nil {
			note(&p.rights)
		}
		if err == nil && !s.Connected && p.rights.undecided() {
			p.failures = 0
			return // The next answer decides. Until then all is as it was: a restart is no news.
		}
		if err == nil {
			p.testimony.cleared, p.testimony.answered = doubts, asked
			s.Connected, s.ServerVersion = true, serverVersion
			s.Reason, s.Message = ReasonConnected, itAnswers
		}
		p.note(s, err)
	})
}

// note takes how a probe ended: well, with a request for patience, or not at all. The caller of change holds the lock.
func (p *Peer) note(s *State, err error) {
	if apierrors.IsTooManyRequests(err) || err == nil && p.patience.lately() {
		throttled(s)
	}
	if err == nil || apierrors.IsTooManyRequests(err) {
		p.failures, p.cause = 0, ""
		return
	}
	p.failures++
	unauthorized := apierrors.IsUnauthorized(err)
	if !unauthorized && p.failures < failuresToLose {
		return
	}
	s.Connected = false
	s.Reason, s.Message = ReasonUnreachable, cut(explain(err))
	if cause := causeOf(err); cause != "" {
		p.cause = cause
	}
	if unauthorized {
		s.Reason, s.Message = ReasonUnauthorized, "the peer's API server does not accept our certificate: it expired or was revoked; peer again"
	}
}

// ask gets the peer's version: the cheapest question that every authenticated user may ask and that checks the credentials.
func (p *Peer) ask(ctx context.Context, clients Clients) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, p.options.ProbeTimeout)
	defer cancel()
	// No retries: waiting out a 429 would look like no answer at all.
	body, err := clients.Kube.Discovery().RESTClient().Get().AbsPath("/version").MaxRetries(0).Do(ctx).Raw()
	if err != nil {
		return "", err
	}
	var info version.Info
	if len(body) > maxVersion || json.Unmarshal(body, &info) != nil {
		return "", fmt.Errorf("the answer is not that of a Kubernetes API server")
	}
	return cut(info.GitVersion), nil
}

// Causes of a probe's failure. A peer that is lost may get another one, such as one that was dead and was made anew.
const (
	causeStranger = "Stranger"
	causeSilence  = "Silence"
	causeNobody   = "Nobody"
)

// causeOf is why a probe failed: somebody else answers, nothing does in time, or nothing listens; empty if it is none of these.
func causeOf(err error) string {
	var stranger *tls.CertificateVerificationError
	switch {
	case errors.As(err, &stranger):
		return causeStranger
	case errors.Is(err, context.DeadlineExceeded):
		return causeSilence
	case errors.Is(err, syscall.ECONNREFUSED):
		return causeNobody
	}
	return ""
}

// explain says in words why a probe failed.
func explain(err error) string {
	switch causeOf(err) {
	case causeStranger:
		return fmt.Sprintf("something with another identity answers at the address of the peer's API server: if the cluster was made anew, end the "+
			"peering with 'liqoctl unpeer --force' and peer again: %s", err)
	case causeSilence:
		return "the peer's API server gives no answer in time: it hangs, or the way to it swallows requests"
	case causeNobody:
		return fmt.Sprintf("the peer's API server does not answer: nothing listens at its address: %s", err)
	}
	return fmt.Sprintf("the peer's API server does not answer: %s", err)
}

func cut(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText] + "..."
}

func (p *Peer) wrap(next http.RoundTripper) http.RoundTripper {
	bounded := &boundedTransport{next: harden(next), timeout: p.options.RequestTimeout, intake: p.intake}
	if p.options.Witness == nil && p.options.Rights == nil {
		return &patientTransport{patience: p.patience, next: bounded}
	}
	return &patientTransport{patience: p.patience, next: &suspiciousTransport{next: bounded, peer: p}}
}
