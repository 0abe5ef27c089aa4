package api

import (
	"context"
	"fmt"
	"net/http"
	"os"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/request/x509"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/caller"
)

// access is what a caller must be allowed to do on the node.
type access struct {
	// verb is asked for; empty means that the HTTP method decides.
	verb string
	// subresources of the node, of which one must be allowed; the finest comes first.
	subresources []string
}

// guardian lets nobody pass whom the local API server does not know and allow.
type guardian struct {
	*caller.Guard
	nodeName string
}

func newGuardian(o *Options) *guardian {
	var verify x509.VerifyOptionFunc
	if o.ClientCA != nil {
		verify = o.ClientCA.VerifyOptions
	}
	return &guardian{caller.New(o.LocalClient.AuthenticationV1(), o.LocalClient.AuthorizationV1(), verify), o.NodeName}
}

// authenticated answers 401 to whoever is not known.
func (g *guardian) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok, err := g.Who(r)
		if err != nil {
			klog.FromContext(r.Context()).V(2).Info("Refused credentials", "path", r.URL.Path, "reason", err.Error())
		}
		if err != nil || !ok {
			http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r.WithContext(request.WithUser(r.Context(), who)))
	})
}

// authorized answers 403 to whoever has none of the rights that access names, 500 when that cannot be found out.
func (g *guardian) authorized(needs access, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, ok := request.UserFrom(r.Context())
		if !ok {
			http.Error(w, http.StatusText(http.StatusUnauthorized), http.StatusUnauthorized)
			return
		}
		verb := needs.verb
		if verb == "" {
			verb = verbOf(r.Method)
		}
		for _, subresource := range needs.subresources {
			allowed, err := g.May(r.Context(), who, g.right(verb, subresource))
			if err != nil {
				klog.FromContext(r.Context()).Error(err, "Authorizing a request failed", "user", who.GetName(), "subresource", subresource)
				http.Error(w, fmt.Sprintf("Authorization error (user=%s, verb=%s, resource=nodes, subresource=%s)",
					who.GetName(), verb, subresource), http.StatusInternalServerError)
				return
			}
			if allowed {
				next.ServeHTTP(w, r)
				return
			}
		}
		http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource(s)=%v)",
			who.GetName(), verb, needs.subresources), http.StatusForbidden)
	})
}

func (g *guardian) right(verb, subresource string) authorizationv1.SubjectAccessReviewSpec {
	return authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
		Verb: verb, Version: "v1", Resource: "nodes", Subresource: subresource, Name: g.nodeName,
	}}
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

const (
	clientCANamespace = "kube-system"
	clientCAConfigMap = "extension-apiserver-authentication"
	clientCAKey       = "client-ca-file"
)

// ClientCA returns the bundle that signs the client certificates of the cluster, the kube-apiserver's among them. It
// comes from the ConfigMap kube-system/extension-apiserver-authentication, where every API server publishes it;
// when this node may not read it or the cluster does not publish it, from the file, unless that is "". With neither,
// the result is nil: then only tokens are accepted. Any other failure to read the ConfigMap is an error worth a retry.
// Server.Run keeps the bundle up to date.
func ClientCA(ctx context.Context, client kubernetes.Interface, file string) (dynamiccertificates.CAContentProvider, error) {
	published, err := client.CoreV1().ConfigMaps(clientCANamespace).Get(ctx, clientCAConfigMap, metav1.GetOptions{})
	switch {
	case err == nil && published.Data[clientCAKey] != "":
		provider, err := dynamiccertificates.NewDynamicCAFromConfigMapController(
			"client-ca", clientCANamespace, clientCAConfigMap, clientCAKey, client)
		if err != nil {
			return nil, fmt.Errorf("following the client CA in ConfigMap %s/%s: %w", clientCANamespace, clientCAConfigMap, err)
		}
		return provider, nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading the client CA from ConfigMap %s/%s: %w", clientCANamespace, clientCAConfigMap, err)
	case file == "":
		return nil, nil
	}
	// Looked at first, because the provider leaves a goroutine behind when it fails.
	if _, err := os.Stat(file); err != nil {
		return nil, fmt.Errorf("reading the client CA from file %s: %w", file, err)
	}
	provider, err := dynamiccertificates.NewDynamicCAContentFromFile("client-ca", file)
	if err != nil {
		return nil, fmt.Errorf("reading the client CA from file %s: %w", file, err)
	}
	return provider, nil
}
