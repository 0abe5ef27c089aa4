package api

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

// authority signs certificates; a nil parent signs itself.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	certificate := newCertificate(t, nil, pkix.Name{CommonName: name}, true)
	return &authority{cert: certificate.Leaf, key: certificate.PrivateKey.(*ecdsa.PrivateKey)}
}

func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

func newCertificate(t *testing.T, by *authority, subject pkix.Name, isCA bool) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: subject, IsCA: isCA, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	parent, signer := template, key
	if by != nil {
		parent, signer = by.cert, by.key
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// reviewer is the local API server as far as reviews go: it knows the token "good" and allows everybody except the
// user "denied".
type reviewer struct {
	mu    sync.Mutex
	asked []authorizationv1.ResourceAttributes
}

func (v *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		review := authenticationv1.TokenReview{}
		_ = json.NewDecoder(r.Body).Decode(&review)
		review.Status = authenticationv1.TokenReviewStatus{}
		if review.Spec.Token == "good" || review.Spec.Token == "denied" {
			review.Status = authenticationv1.TokenReviewStatus{
				Authenticated: true, User: authenticationv1.UserInfo{Username: review.Spec.Token}}
		}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		review := authorizationv1.SubjectAccessReview{}
		_ = json.NewDecoder(r.Body).Decode(&review)
		v.mu.Lock()
		v.asked = append(v.asked, *review.Spec.ResourceAttributes)
		v.mu.Unlock()
		review.Status = authorizationv1.SubjectAccessReviewStatus{Allowed: review.Spec.User != "denied"}
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(review)
	default:
		http.NotFound(w, r)
	}
}

func (v *reviewer) questions() []authorizationv1.ResourceAttributes {
	v.mu.Lock()
	defer v.mu.Unlock()
	return append([]authorizationv1.ResourceAttributes(nil), v.asked...)
}

// remoteFunc is a Remote of one function.
type remoteFunc func(namespace, pod, uid string) (Target, error)

func (f remoteFunc) Twin(_ context.Context, namespace, pod, uid string) (Target, error) {
	return f(namespace, pod, uid)
}

// node is a running Server with what surrounds it.
type node struct {
	*Server
	url      string
	ca       *authority // signs client certificates
	reviewer *reviewer
	registry *prometheus.Registry
}

type nodeOptions struct {
	remote Remote
	limits Limits
	clock  clock.WithDelayedExecution
	pods   []*corev1.Pod
	// working is nil for a node that always does.
	working func() bool
}

func startNode(t *testing.T, o nodeOptions) *node {
	t.Helper()
	n := &node{ca: newAuthority(t, "client-ca"), reviewer: &reviewer{}, registry: prometheus.NewRegistry()}
	reviews := httptest.NewServer(n.reviewer)
	t.Cleanup(reviews.Close)
	client := newClient(t, &rest.Config{Host: reviews.URL, QPS: -1})
	bundle, err := dynamiccertificates.NewStaticCAContent("client-ca", n.ca.pem())
	if err != nil {
		t.Fatal(err)
	}
	serving := newCertificate(t, nil, pkix.Name{CommonName: "serving"}, true)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	n.Server, err = New(Options{
		Remote: o.remote, LocalClient: client, ClientCA: bundle, NodeName: "virtual", Listener: listener,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &serving, nil },
		Gatherer:       n.registry, Registerer: n.registry, Limits: o.limits, Clock: o.clock,
		Pods: func() []*corev1.Pod { return o.pods }, Working: o.working,
	})
	if err != nil {
		t.Fatal(err)
	}
	n.url = "https://" + listener.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- n.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-stopped; err != nil {
			t.Errorf("Run ended with %v", err)
		}
	})
	return n
}

func newClient(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(httpClient.CloseIdleConnections)
	config.ContentType = "application/json" // which is all that the reviewer reads
	client, err := kubernetes.NewForConfigAndClient(config, httpClient)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// caller is the config of a kube-apiserver that calls the node.
func (n *node) caller() *rest.Config {
	return &rest.Config{Host: n.url, BearerToken: "good", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
}

// get sends a plain request with the token and returns status and body.
func (n *node) get(t *testing.T, path string) (int, string) {
	t.Helper()
	response := n.do(t, http.MethodGet, path, tls.Certificate{}, "good")
	return response.code, response.body
}

type answer struct {
	code int
	body string
}

func (n *node) do(t *testing.T, method, path string, certificate tls.Certificate, token string) answer {
	t.Helper()
	config := insecure()
	if certificate.PrivateKey != nil {
		config.Certificates = []tls.Certificate{certificate}
	}
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), method, n.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return answer{code: response.StatusCode, body: readAll(t, response.Body)}
}

func insecure() *tls.Config { return &tls.Config{InsecureSkipVerify: true} }

// upgrading asks for SPDY and returns the answer when it is a refusal.
func (n *node) upgrading(t *testing.T, path string) answer {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: insecure()}
	defer transport.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, n.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer good")
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", "SPDY/3.1")
	r.Header.Set("X-Stream-Protocol-Version", "portforward.k8s.io")
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return answer{code: response.StatusCode}
	}
	return answer{code: response.StatusCode, body: readAll(t, response.Body)}
}
