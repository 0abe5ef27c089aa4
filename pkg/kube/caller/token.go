package caller

import (
	"context"
	"errors"
	"fmt"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
)

// reviewTimeout bounds how long a token, or a right, may take to be reviewed, retries included.
const reviewTimeout = 10 * time.Second

// reviewBackoff bounds how long a request waits for a review that fails: about four seconds.
var reviewBackoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}

// tokenReviews asks the API server whose token something is.
type tokenReviews struct {
	client authenticationclient.TokenReviewsGetter
}

// AuthenticateToken implements authenticator.Token.
func (t *tokenReviews) AuthenticateToken(ctx context.Context, token string) (*authenticator.Response, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	var review *authenticationv1.TokenReview
	err := patiently(ctx, func() error {
		var err error
		review, err = t.client.TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		return err
	})
	if err != nil {
		return nil, false, fmt.Errorf("having a token reviewed: %w", err)
	}
	if !review.Status.Authenticated {
		if review.Status.Error != "" {
			return nil, false, errors.New(review.Status.Error)
		}
		return nil, false, nil
	}
	who := &user.DefaultInfo{Name: review.Status.User.Username, UID: review.Status.User.UID, Groups: review.Status.User.Groups}
	for key, values := range review.Status.User.Extra {
		if who.Extra == nil {
			who.Extra = map[string][]string{}
		}
		who.Extra[key] = values
	}
	return &authenticator.Response{User: who}, true, nil
}

// patiently tries again while a review fails for a reason that passes.
func patiently(ctx context.Context, review func() error) error {
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, reviewBackoff, func(context.Context) (bool, error) {
		last = review()
		if passes(last) {
			return false, nil
		}
		return last == nil, last
	})
	if last != nil {
		return last
	}
	return err
}

// passes tells whether a failure may be over soon.
func passes(err error) bool {
	if err == nil {
		return false
	}
	_, delay := apierrors.SuggestsClientDelay(err)
	return delay || utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) ||
		apierrors.IsInternalError(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err)
}
