package caller

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/group"
	"k8s.io/apiserver/pkg/authentication/request/bearertoken"
	"k8s.io/apiserver/pkg/authentication/request/union"
	"k8s.io/apiserver/pkg/authentication/request/websocket"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	tokencache "k8s.io/apiserver/pkg/authentication/token/cache"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
)

const (
	// The kubelet caches for two and five minutes; shorter here, because a revoked right should end soon.
	tokenCacheTTL = time.Minute
	allowCacheTTL = time.Minute
	denyCacheTTL  = 10 * time.Second
	// maxAnswers bounds the answers that are remembered, and maxQuestion the length of each question in bytes: a caller
	// chooses the path that is asked about.
	maxAnswers  = 4096
	maxQuestion = 10_000
)

// Guard knows callers and their rights. Make it with New.
type Guard struct {
	callers authenticator.Request
	rights  authorizationclient.SubjectAccessReviewsGetter
	answers *utilcache.LRUExpireCache
}

// New makes a guard that asks with the given clients. Client certificates are accepted if verify, which says how they are
// verified, is not nil.
func New(tokens authenticationclient.TokenReviewsGetter, rights authorizationclient.SubjectAccessReviewsGetter, verify x509.VerifyOptionFunc) *Guard {
	var callers []authenticator.Request
	if verify != nil {
		callers = append(callers, x509.NewDynamic(verify, x509.CommonNameUserConversion))
	}
	cached := tokencache.New(&tokenReviews{tokens}, false, tokenCacheTTL, tokenCacheTTL)
	callers = append(callers, bearertoken.New(cached), websocket.NewProtocolAuthenticator(cached))
	return &Guard{
		callers: group.NewAuthenticatedGroupAdder(union.New(callers...)), rights: rights, answers: utilcache.NewLRUExpireCache(maxAnswers),
	}
}

// Who tells who sends a request: by its client certificate, or its token. Nobody is let in without either. An error says what
// is wrong with the credentials, or why they could not be checked.
func (g *Guard) Who(r *http.Request) (user.Info, bool, error) {
	response, ok, err := g.callers.AuthenticateRequest(r)
	if err != nil {
		return nil, false, fmt.Errorf("finding out who sends a request: %w", err)
	}
	if !ok || response == nil {
		return nil, false, nil
	}
	return response.User, true, nil
}

// May tells whether somebody has a right; what names it, by its attributes of a resource or of a path.
func (g *Guard) May(ctx context.Context, who user.Info, what authorizationv1.SubjectAccessReviewSpec) (bool, error) {
	what.User, what.UID, what.Groups, what.Extra = who.GetName(), who.GetUID(), who.GetGroups(), nil
	for key, values := range who.GetExtra() {
		if what.Extra == nil {
			what.Extra = map[string]authorizationv1.ExtraValue{}
		}
		what.Extra[key] = values
	}
	question, err := json.Marshal(what)
	if err != nil {
		return false, fmt.Errorf("encoding a question about the rights of %q: %w", what.User, err)
	}
	if answer, ok := g.answers.Get(string(question)); ok {
		return answer == true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	var review *authorizationv1.SubjectAccessReview
	err = patiently(ctx, func() error {
		var err error
		review, err = g.rights.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: what}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("asking for the rights of %q: %w", what.User, err)
	}
	allowed, ttl := review.Status.Allowed && !review.Status.Denied, denyCacheTTL
	if allowed {
		ttl = allowCacheTTL
	}
	if len(question) <= maxQuestion {
		g.answers.Add(string(question), allowed, ttl)
	}
	return allowed, nil
}
