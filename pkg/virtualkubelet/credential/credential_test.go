package credential

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// signer is an API server that signs every request at once, and remembers what was asked for.
type signer struct {
	t   *testing.T
	key *ecdsa.PrivateKey
	ca  *x509.Certificate

	mu sync.Mutex
	// looks is how often a request has to be read before it is signed, listed how often all of them were asked for.
	looks, listed int
	requests      map[string]*certificatesv1.CertificateSigningRequest
}

func newSigner(t *testing.T) (*signer, *httptest.Server) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	s := &signer{t: t, key: key, requests: map[string]*certificatesv1.CertificateSigningRequest{}, ca: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return s, server
}

func (s *signer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	name, one := strings.CutPrefix(r.URL.Path, "/apis/certificates.k8s.io/v1/certificatesigningrequests/")
	switch query := r.URL.Query(); {
	case r.Header.Get("Authorization") == "Bearer bootstrap" && r.Method == http.MethodGet && !one:
		// Who asks for the client certificate may read its own request, not those of the cluster.
		s.mu.Lock()
		s.listed++
		s.mu.Unlock()
		w.WriteHeader(http.StatusForbidden)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden})
		return
	case query.Get("sendInitialEvents") != "":
		// As an API server that cannot stream lists.
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid})
		return
	case query.Get("watch") != "":
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		object, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
		request, ok := object.(*certificatesv1.CertificateSigningRequest)
		if err != nil || !ok {
			http.Error(w, "not a request", http.StatusBadRequest)
			return
		}
		request.Name, request.UID = "csr-"+request.Spec.SignerName[len("kubernetes.io/"):], "u"
		request.ResourceVersion = "1"
		if s.looks <= 0 {
			s.approve(request)
		}
		s.requests[request.Spec.SignerName] = request
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(request)
		return
	}
	if one {
		for _, request := range s.requests {
			if request.Name != name {
				continue
			}
			if s.looks--; s.looks == 0 {
				request.ResourceVersion = "2"
				s.approve(request)
			}
			_ = json.NewEncoder(w).Encode(request)
		}
		return
	}
	list := &certificatesv1.CertificateSigningRequestList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}, TypeMeta: metav1.TypeMeta{APIVersion: "certificates.k8s.io/v1", Kind: "CertificateSigningRequestList"}}
	for _, request := range s.requests {
		if r.URL.Query().Get("fieldSelector") == "metadata.name="+request.Name {
			list.Items = append(list.Items, *request)
		}
	}
	_ = json.NewEncoder(w).Encode(list)
}

func (s *signer) approve(request *certificatesv1.CertificateSigningRequest) {
	request.Status.Certificate = s.sign(request.Spec.Request)
	request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue}}
}

func (s *signer) sign(raw []byte) []byte {
	block, _ := pem.Decode(raw)
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		s.t.Error(err)
		return nil
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: request.Subject, IPAddresses: request.IPAddresses,
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour)}, s.ca, request.PublicKey, s.key)
	if err != nil {
		s.t.Error(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func start(t *testing.T, o Options) (*Store, func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop := func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	wait, release := context.WithTimeout(ctx, 2*time.Minute)
	defer release()
	if _, err := s.Client(wait); err != nil {
		stop()
		t.Fatal(err)
	}
	return s, stop
}

func TestTheNodeGetsItsCertificates(t *testing.T) {
	server, http := newSigner(t)
	directory := t.TempDir() + "/pki"
	options := Options{Node: "milan", Directory: directory, Address: netip.MustParseAddr("10.0.0.9"), Bootstrap: &rest.Config{Host: http.URL, BearerToken: "bootstrap"}}
	s, stop := start(t, options)
	deadline := time.After(2 * time.Minute)
	for {
		if _, err := s.ServingCertificate(nil); err == nil {
			break
		}
		select {
		case <-deadline:
			t.Fatal("waited in vain for a serving certificate")
		case <-time.After(20 * time.Millisecond):
		}
	}
	type asked struct {
		Subject string
		IPs     []string
		Names   []string
		Usages  []certificatesv1.KeyUsage
	}
	got := map[string]asked{}
	server.mu.Lock()
	for name, request := range server.requests {
		block, _ := pem.Decode(request.Spec.Request)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		a := asked{Subject: parsed.Subject.String(), Names: slices.Concat(parsed.DNSNames, parsed.EmailAddresses), Usages: request.Spec.Usages}
		for _, ip := range parsed.IPAddresses {
			a.IPs = append(a.IPs, ip.String())
		}
		got[name] = a
	}
	clear(server.requests)
	server.mu.Unlock()
	want := map[string]asked{
		certificatesv1.KubeAPIServerClientKubeletSignerName: {Subject: "CN=system:node:milan,O=system:nodes",
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth}},
		certificatesv1.KubeletServingSignerName: {Subject: "CN=system:node:milan,O=system:nodes", IPs: []string{"10.0.0.9"},
			Usages: []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(directory); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
	stop()

	// A restarted container goes on with what it has.
	s, stop = start(t, options)
	defer stop()
	if _, err := s.ServingCertificate(nil); err != nil {
		t.Errorf("after a restart: %v", err)
	}
	server.mu.Lock()
	defer server.mu.Unlock()
	if len(server.requests) != 0 {
		t.Errorf("a restart asked for %d certificates", len(server.requests))
	}
}

func TestMissingOptions(t *testing.T) {
	if _, err := New(context.Background(), Options{Node: "milan"}); err == nil {
		t.Error("no error")
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, Options{Node: "milan", Directory: t.TempDir(), Address: netip.MustParseAddr("10.0.0.9"), Bootstrap: &rest.Config{Host: "http://127.0.0.1:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ServingCertificate(nil); err == nil {
		t.Error("there is a certificate out of nowhere")
	}
	cancel()
	if _, err := s.Client(ctx); err == nil {
		t.Error("no error")
	}
}

// Who asks for the node's certificate neither lists nor watches the cluster's requests, also while its own waits for approval.
func TestTheCertificateIsAwaitedByName(t *testing.T) {
	server, http := newSigner(t)
	server.looks = 3
	_, stop := start(t, Options{Node: "milan", Directory: t.TempDir(), Address: netip.MustParseAddr("10.0.0.9"),
		Bootstrap: &rest.Config{Host: http.URL, BearerToken: "bootstrap"}})
	defer stop()
	server.mu.Lock()
	defer server.mu.Unlock()
	if server.listed != 0 || server.looks > 0 {
		t.Errorf("all requests were asked for %d times; %d more looks were needed", server.listed, server.looks)
	}
	r := requests{}
	for what, selector := range map[string]string{"all requests": "", "those of a signer": "spec.signerName=x", "no selector": "="} {
		if _, err := r.List(t.Context(), metav1.ListOptions{FieldSelector: selector}); err == nil {
			t.Errorf("%s can be listed", what)
		}
		if _, err := r.Watch(t.Context(), metav1.ListOptions{FieldSelector: selector}); err == nil {
			t.Errorf("%s can be watched", what)
		}
	}
}
