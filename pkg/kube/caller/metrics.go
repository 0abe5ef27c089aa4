package caller

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	authorizationv1 "k8s.io/api/authorization/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// Serving are the options of a server of metrics at an address: over HTTPS, to whom the cluster authorizes; or, if plain, over HTTP to whoever
// reaches the address. Without a certificate the server makes one for itself.
func Serving(address string, plain bool, tlsOptions ...func(*tls.Config)) metricsserver.Options {
	if plain {
		return metricsserver.Options{BindAddress: address}
	}
	return metricsserver.Options{BindAddress: address, SecureServing: true, FilterProvider: Metrics, TLSOpts: tlsOptions}
}

// Metrics lets those read metrics who come with a token and may get their path.
func Metrics(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
	tokens, err := authenticationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client that knows readers of metrics: %w", err)
	}
	rights, err := authorizationclient.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return nil, fmt.Errorf("making the client that knows the rights of readers of metrics: %w", err)
	}
	guard := New(tokens, rights, nil)
	return func(log logr.Logger, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			who, ok, err := guard.Who(r)
			if err != nil {
				log.V(2).Info("Refused credentials", "path", r.URL.Path, "reason", err.Error())
			}
			if err != nil || !ok {
				http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
				return
			}
			allowed, err := guard.May(r.Context(), who, authorizationv1.SubjectAccessReviewSpec{
				NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: strings.ToLower(r.Method)},
			})
			switch {
			case err != nil:
				log.Error(err, "Authorizing a reader of metrics failed")
				http.Error(w, "Authorization error", http.StatusInternalServerError)
			case !allowed:
				http.Error(w, http.StatusText(http.StatusForbidden), http.StatusForbidden)
			default:
				next.ServeHTTP(w, r)
			}
		}), nil
	}, nil
}
