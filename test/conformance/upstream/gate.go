package upstream

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/lab/pki"
)

const (
	namespacesPath = "/api/v1/namespaces"
	nodesPath      = "/api/v1/nodes"
	// offloadTimeout is how long a new namespace may take to be offloaded on a machine that is busy with pods.
	offloadTimeout = 3 * time.Minute
	admin          = "admin"
)

// Gate is a door to an API server behind which every new namespace is offloaded. Who comes with a certificate of the gate's kubeconfig
// is the administrator; who comes with a token is whom the token says; everybody else is anonymous.
type Gate struct {
	// Kubeconfig is the path of the administrator's kubeconfig.
	Kubeconfig string
	server     *http.Server
	client     client.Client
	admin      http.RoundTripper
	others     http.RoundTripper
}

// OpenGate opens a gate to the API server of a configuration, which must be an administrator's. Its files are written to a folder.
func OpenGate(config *rest.Config, folder string) (*Gate, error) {
	g := &Gate{Kubeconfig: filepath.Join(folder, "kubeconfig")}
	target, err := url.Parse(config.Host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	if g.admin, err = transport(config); err != nil {
		return nil, err
	}
	if g.others, err = transport(rest.AnonymousClientConfig(config)); err != nil {
		return nil, err
	}
	if g.client, err = offloadingClient(config); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("opening the gate: %w", err)
	}
	keys, err := g.keys(folder, "https://"+listener.Addr().String())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	g.server = &http.Server{
		Handler: &httputil.ReverseProxy{
			Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Header.Del("Accept-Encoding") // what is compressed cannot be read on the way
			},
			Transport: g,
			ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
				http.Error(w, "the gate: "+err.Error(), http.StatusBadGateway)
			},
			ModifyResponse: g.answer,
			ErrorLog:       log.New(io.Discard, "", 0), // clients that leave are no news
		},
		TLSConfig: keys, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		// SPDY and websockets take a connection over, which HTTP/2 has no way for.
		TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){},
	}
	go func() { _ = g.server.ServeTLS(listener, "", "") }() // ends with Close
	return g, nil
}

// Close closes the gate.
func (g *Gate) Close() error { return g.server.Close() }

// keys makes the gate's certificates and kubeconfig.
func (g *Gate) keys(folder, address string) (*tls.Config, error) {
	keys, err := pki.New(folder, clock.RealClock{})
	if err != nil {
		return nil, err
	}
	if err := keys.EnsureCA(pki.ClusterCA, "gate"); err != nil {
		return nil, err
	}
	for _, c := range []pki.Certificate{{Name: "gate", CommonName: "gate", Addresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, {Name: admin, CommonName: admin}} {
		if err := keys.Ensure(c); err != nil {
			return nil, err
		}
	}
	if err := keys.Kubeconfig(g.Kubeconfig, "gate", address, admin); err != nil {
		return nil, err
	}
	pair, err := tls.LoadX509KeyPair(keys.Cert("gate"), keys.Key("gate"))
	if err != nil {
		return nil, fmt.Errorf("loading the gate's certificate: %w", err)
	}
	ca, err := os.ReadFile(keys.Cert(pki.ClusterCA))
	if err != nil {
		return nil, fmt.Errorf("reading the gate's CA: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	return &tls.Config{
		Certificates: []tls.Certificate{pair}, ClientCAs: pool, ClientAuth: tls.VerifyClientCertIfGiven, MinVersion: tls.VersionTLS12,
	}, nil
}

// RoundTrip passes a request on as whoever made it.
func (g *Gate) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.TLS != nil && len(r.TLS.VerifiedChains) > 0 && r.Header.Get("Authorization") == "" {
		return g.admin.RoundTrip(r)
	}
	return g.others.RoundTrip(r)
}

// answer holds the answer to the creation of a namespace back until the namespace is offloaded, and shows nodes without the taint of
// virtual ones: pods of the tests' namespaces are given a toleration of it, which tests that look for a node cannot know.
func (g *Gate) answer(r *http.Response) error {
	switch request := r.Request; {
	case strings.Contains(request.Header.Get("Accept"), "as=Table"): // kubectl get, which people read
		return nil
	case request.Method == http.MethodPost && request.URL.Path == namespacesPath && r.StatusCode == http.StatusCreated && !request.URL.Query().Has("dryRun"):
		var namespace corev1.Namespace
		if _, err := decode(r, &namespace); err != nil {
			return err
		}
		return Offload(request.Context(), g.client, namespace.Name)
	case request.Method == http.MethodGet && request.URL.Path == nodesPath && r.StatusCode == http.StatusOK && !request.URL.Query().Has("watch"):
		var nodes corev1.NodeList
		encode, err := decode(r, &nodes)
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			withoutTaint(&nodes.Items[i])
		}
		return encode(&nodes)
	case request.Method == http.MethodGet && path.Dir(request.URL.Path) == nodesPath && r.StatusCode == http.StatusOK:
		var node corev1.Node
		encode, err := decode(r, &node)
		if err != nil {
			return err
		}
		withoutTaint(&node)
		return encode(&node)
	}
	return nil
}

// withoutTaint takes the taint of virtual nodes away.
func withoutTaint(node *corev1.Node) {
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t corev1.Taint) bool { return t.Key == offloadingv1beta1.VirtualNodeTaint })
}

// decode reads the object of an answer, which stays readable. It can be replaced.
func decode(r *http.Response, object runtime.Object) (replace func(runtime.Object) error, err error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("reading an answer of the API server: %w", err)
	}
	if err := r.Body.Close(); err != nil {
		return nil, fmt.Errorf("reading an answer of the API server: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	format, known := runtime.SerializerInfoForMediaType(clientgoscheme.Codecs.SupportedMediaTypes(), kind)
	if !known {
		return nil, fmt.Errorf("the API server answered in format %q", kind)
	}
	if _, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, object); err != nil {
		return nil, fmt.Errorf("decoding an answer of the API server: %w", err)
	}
	return func(other runtime.Object) error {
		data, err := runtime.Encode(clientgoscheme.Codecs.EncoderForVersion(format.Serializer, corev1.SchemeGroupVersion), other)
		if err != nil {
			return fmt.Errorf("encoding an answer of the API server: %w", err)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(data)), int64(len(data))
		r.Header.Set("Content-Length", strconv.Itoa(len(data)))
		return nil
	}, nil
}

// Offload offloads a namespace with strategy Remote and the same name, and waits until its twin is there.
func Offload(ctx context.Context, c client.Client, namespace string) error {
	o := &offloadingv1beta1.NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName},
		Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: offloadingv1beta1.EnforceSameNameMappingStrategyType,
			PodOffloadingStrategy:    offloadingv1beta1.RemotePodOffloadingStrategyType,
		},
	}
	if err := c.Create(ctx, o); err != nil {
		return fmt.Errorf("offloading namespace %s: %w", namespace, err)
	}
	err := wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, offloadTimeout, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(o), o); err != nil {
			return false, err
		}
		return o.Status.ObservedGeneration == o.Generation && o.Status.OffloadingPhase == offloadingv1beta1.ReadyOffloadingPhaseType, nil
	})
	if err != nil {
		return fmt.Errorf("waiting for namespace %s to be offloaded, which is %q: %w", namespace, o.Status.OffloadingPhase, err)
	}
	return nil
}

// transport is the way to an API server over HTTP/1.1.
func transport(config *rest.Config) (http.RoundTripper, error) {
	one := rest.CopyConfig(config)
	one.NextProtos = []string{"http/1.1"}
	t, err := rest.TransportFor(one)
	if err != nil {
		return nil, fmt.Errorf("making the gate's way to the API server: %w", err)
	}
	return t, nil
}

// offloadingClient is a client that knows NamespaceOffloadings.
func offloadingClient(config *rest.Config) (client.Client, error) {
	if err := offloadingv1beta1.AddToScheme(clientgoscheme.Scheme); err != nil {
		return nil, fmt.Errorf("registering the types of offloading: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(offloadingv1beta1.GroupVersion.WithKind("NamespaceOffloading"), meta.RESTScopeNamespace)
	c, err := client.New(config, client.Options{Scheme: clientgoscheme.Scheme, Mapper: mapper})
	if err != nil {
		return nil, fmt.Errorf("making a client for offloading: %w", err)
	}
	return c, nil
}
