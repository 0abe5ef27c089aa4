package api

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/authenticatorfactory"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/klog/v2"
)

const (
	// The kubelet caches for two and five minutes; shorter here, because a revoked right should end soon.
	tokenCacheTTL = time.Minute
	allowCacheTTL = time.Minute
	denyCacheTTL  = 10 * time.Second

	tokenReviewTimeout = 10 * time.Second
)

// reviewBackoff bounds how long a request waits for a review that fails: about four seconds.
var reviewBackoff = wait.Backoff{Duration: 500 * time.Millisecond, Factor: 1.5, Jitter: 0.2, Steps: 5}

// access is what a caller must be allowed to do on the node.
type access struct {
	// verb is asked for; empty means that the HTTP method decides.
	verb string
	// subresources of the node, of which one must be allowed; the finest comes first.
	subresources []string
}

// guardian lets nobody pass whom the local API server does not know and allow.
type guardian struct {
	nodeName      string
	authenticator authenticator.Request
	authorizer    authorizer.Authorizer
}

func newGuardian(o *Options) (*guardian, error) {
	authentication := authenticatorfactory.DelegatingAuthenticatorConfig{
		Anonymous:                &apiserver.AnonymousAuthConfig{Enabled: false},
		TokenAccessReviewClient:  o.LocalClient.AuthenticationV1(),
		TokenAccessReviewTimeout: tokenReviewTimeout,
		WebhookRetryBackoff:      &reviewBackoff,
		CacheTTL:                 tokenCacheTTL,
	}
	if o.ClientCA != nil {
		authentication.ClientCertificateCAContentProvider = o.ClientCA
	}
	authn, _, err := authentication.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authentication of the kubelet API: %w", err)
	}
	authz, err := authorizerfactory.DelegatingAuthorizerConfig{
		SubjectAccessReviewClient: o.LocalClient.AuthorizationV1(),
		AllowCacheTTL:             allowCacheTTL,
		DenyCacheTTL:              denyCacheTTL,
		WebhookRetryBackoff:       &reviewBackoff,
	}.New()
	if err != nil {
		return nil, fmt.Errorf("setting up authorization of the kubelet API: %w", err)
	}
	return &guardian{nodeName: o.NodeName, authenticator: authn, authorizer: authz}, nil
}

// authenticated answers 401 to whoever is not known.
func (g *guardian) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok, err := g.authenticator.AuthenticateRequest(r)
		if err != nil {
			klog.FromContext(r.Context()).V(2).Info("Refused credentials", "path", r.URL.Path, "reason", err.Error())
		}
		if err != nil || !ok {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), who.User)))
	})
}

// authorized answers 403 to whoever has none of the rights that access names, 500 when that cannot be found out.
func (g *guardian) authorized(needs access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := request.UserFrom(r.Context())
		if !ok {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		verb := needs.verb
		if verb == "" {
			verb = verbOf(r.Method)
		}
		for _, subresource := range needs.subresources {
			decision, _, err := g.authorizer.Authorize(r.Context(), g.attributes(who, verb, subresource, r.URL.Path))
			if err != nil {
				klog.FromContext(r.Context()).Error(err, "Authorizing a request failed", "user", who.GetName(), "subresource", subresource)
				http.Error(w, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)",
					who.GetName(), verb, subresource), http.StatusInternalServerError)
				return
			}
			if decision == authorizer.DecisionAllow {
				next.ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)",
			who.GetName(), verb, needs.subresources), http.StatusForbidden)
	})
}

func (g *guardian) attributes(who user.Info, verb, subresource, path string) authorizer.Attributes {
	return authorizer.AttributesRecord{
		User: who, Verb: verb, APIVersion: "v1", Resource: "nodes", Subresource: subresource, Name: g.nodeName,
		ResourceRequest: true, Path: path,
	}
}

// verbOf maps as a kubelet does; a method without a verb is allowed only to those who may do everything.
func verbOf(method string) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodGet, http.MethodHead:
		return "get"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		return "delete"
	default:
		return ""
	}
}
