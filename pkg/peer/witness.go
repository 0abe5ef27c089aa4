package peer

import (
	"context"
	"net/http"
	"time"
)

// maxSilence is how long a peer is not probed at most, whoever else knows that it answers: credentials are ours alone, and so is the
// version that we know.
const maxSilence = 5 * time.Minute

// testimony is why a connected peer need not be probed, or has to be.
type testimony struct {
	// doubts counts what spoke against the peer; cleared is how many of them there were when it was asked last and answered.
	doubts, cleared int64
	// answered is when that was.
	answered time.Time
}

// Doubt has a connected peer asked at once that was not asked because of Options.Witness, and whether we still have our rights there. It
// does not block.
func (p *Peer) Doubt() {
	p.mu.Lock()
	p.testimony.doubts++
	p.rights.doubted = true
	p.mu.Unlock()
	p.doubted.Raise()
}

// AnsweredSince tells whether the peer answered something that it was asked after the given time. If not, it is asked at once.
func (p *Peer) AnsweredSince(since time.Time) bool {
	p.mu.Lock()
	answered := p.testimony.answered.After(since)
	p.mu.Unlock()
	if !answered {
		p.Doubt()
	}
	return answered
}

// spared tells whether the next probe can be left out: the peer answered the last one, nothing spoke against it since, and somebody
// else knows that it still answers.
func (p *Peer) spared(ctx context.Context) bool {
	if p.options.Witness == nil {
		return false
	}
	p.mu.Lock()
	t := p.testimony
	well := p.failures == 0 && (p.options.Rights == nil || !p.rights.due(p.options.Clock.Now(), p.options.silence())) &&
		p.state.Connected && p.state.Reason == ReasonConnected && t.doubts == t.cleared && p.options.Clock.Since(t.answered) < maxSilence
	p.mu.Unlock()
	return well && p.options.Witness(ctx)
}

// suspicion counts as doubts the requests that got no answer, and those whose answer is that we are not known.
func (p *Peer) suspicion(request *http.Request, response *http.Response, err error) {
	if err != nil && request.Context().Err() == nil || response != nil && response.StatusCode == http.StatusUnauthorized {
		p.Doubt()
	}
}

// suspiciousTransport notices what speaks against the peer.
type suspiciousTransport struct {
	next http.RoundTripper
	peer *Peer
}

// RoundTrip implements http.RoundTripper.
func (t *suspiciousTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	t.peer.suspicion(request, response, err)
	t.peer.doubtRights(request, response)
	return response, err
}

// WrappedRoundTripper lets client-go find the transport below.
func (t *suspiciousTransport) WrappedRoundTripper() http.RoundTripper { return t.next }
