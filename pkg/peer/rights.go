package peer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// deniedToRevoke is how many times in a row a peer must deny all rights before they count as gone: an API server that has just
	// started may deny what it grants a moment later.
	deniedToRevoke = 2
	// rightsInterval is how long a peer is not asked for our rights that we probe ourselves: watches that were opened before go on without
	// them, so that nothing else may tell. A probe that asks for rights asks for nothing else.
	rightsInterval = 30 * time.Second
	// maxRights is how many rights one probe asks for at most. Of more, it asks for others each time.
	maxRights = 8
	// reviews is where a peer is asked for rights. What it answers there is no reason to ask again.
	reviews = "/selfsubjectaccessreviews"
)

// Right is one that a peer grants as long as the peering works.
type Right = authorizationv1.ResourceAttributes

// Revoked tells whether the peer answers, and has taken back the rights without which nothing of the peering works. Such a peer is
// Connected, not Lost: watches that were opened before still tell what becomes of our objects.
func (s State) Revoked() bool { return s.Connected && s.Reason == ReasonRevoked }

// Usable tells whether the peer answers and lets us work.
func (s State) Usable() bool { return s.Connected && !s.Revoked() }

// rights is what is known of whether the peer lets us work. Its owner locks.
type rights struct {
	// doubted says that something spoke against our rights since the peer last told of them, or that it never did.
	doubted bool
	// asked is when it last told.
	asked time.Time
	// denied is how many times in a row the peer denied all of them.
	denied int
	// told is what somebody else found out, who asked the peer; empty if nothing speaks against our rights.
	told string
	// message says which rights the peer denied.
	message string
}

// due tells whether the next probe has to ask for our rights, of which nothing may be heard for so long.
func (r *rights) due(now time.Time, silence time.Duration) bool {
	return r.doubted || r.denied > 0 || now.Sub(r.asked) >= silence
}

// silence is how long nothing may be heard of our rights.
func (o *Options) silence() time.Duration {
	if o.Witness != nil {
		return maxSilence
	}
	return rightsInterval
}

// gone tells whether our rights were taken back.
func (r *rights) gone() bool { return r.told != "" || r.denied >= deniedToRevoke }

// undecided tells whether the next answer decides.
func (r *rights) undecided() bool { return r.denied > 0 && !r.gone() }

// silent takes that the peer does not tell, so that nothing is known.
func (r *rights) silent(now time.Time) { r.doubted, r.asked = false, now }

// answered takes what the peer said: an empty message if it grants our rights.
func (r *rights) answered(denial string, now time.Time) {
	r.doubted, r.asked, r.message = false, now, denial
	if denial == "" {
		r.denied = 0
	} else {
		r.denied = min(r.denied+1, deniedToRevoke)
	}
}

// judge writes into the state of a peer what became of our rights.
func (r *rights) judge(s *State) {
	switch {
	case s.Connected && r.gone():
		s.Reason, s.Message = ReasonRevoked, r.message
		if r.told != "" {
			s.Message = r.told
		}
	case s.Connected && s.Reason == ReasonRevoked:
		s.Reason, s.Message = ReasonConnected, itAnswers
	}
}

// Tell takes over what somebody else found out who asked the same peer: that our rights were taken back, in words, or, with an empty
// message, that nothing speaks against them. It does not block for longer than the subscribers of the state.
func (p *Peer) Tell(revoked string) {
	p.mu.Lock()
	same := p.rights.told == revoked
	p.mu.Unlock()
	if same {
		return
	}
	p.change(func(*State) { p.rights.told = cut(revoked) })
}

// doubtRights has the next probe ask for our rights if a request is forbidden. That may be for other reasons: admission and quotas
// forbid with the same code.
func (p *Peer) doubtRights(request *http.Request, response *http.Response) {
	if response == nil || response.StatusCode != http.StatusForbidden || strings.HasSuffix(request.URL.Path, reviews) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rights.doubted = true
}

// askRights asks for our rights if there is reason to. It returns what to note of the answer, or nil without one, and whether the peer
// answered.
func (p *Peer) askRights(ctx context.Context, clients Clients) (note func(*rights), answered bool) {
	now := p.options.Clock.Now()
	p.mu.Lock()
	due := p.rights.due(now, p.options.silence())
	p.mu.Unlock()
	if p.options.Rights == nil || !due {
		return nil, false
	}
	wanted := p.options.Rights()
	if len(wanted) == 0 {
		return func(r *rights) { r.answered("", now) }, false
	}
	rand.Shuffle(len(wanted), func(i, j int) { wanted[i], wanted[j] = wanted[j], wanted[i] })
	for i := range wanted[:min(len(wanted), maxRights)] {
		granted, err := grants(ctx, clients, &wanted[i], p.options)
		switch {
		case apierrors.IsForbidden(err):
			return func(r *rights) { r.silent(now) }, true
		case err != nil:
			return nil, false
		case granted:
			return func(r *rights) { r.answered("", now) }, true
		}
	}
	w := &wanted[0]
	denial := fmt.Sprintf("the peer's API server answers, and has taken our rights back: we may not %s %s in its namespace %s any more",
		w.Verb, w.Resource, w.Namespace)
	return func(r *rights) { r.answered(denial, now) }, true
}

// grants asks the peer whether we have a right.
func grants(ctx context.Context, clients Clients, right *Right, o Options) (granted bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, o.ProbeTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: right}}
	answer, err := clients.Kube.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("asking cluster %s for our rights: %w", o.ClusterID, err)
	}
	return answer.Status.Allowed, nil
}
