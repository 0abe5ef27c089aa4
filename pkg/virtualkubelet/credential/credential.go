package credential

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"k8s.io/client-go/util/certificate"
	"k8s.io/client-go/util/connrotation"
	"k8s.io/utils/clock"
)

// The names that Kubernetes fixes for nodes.
const (
	// UserPrefix and a node's name make its user name.
	UserPrefix = "system:node:"
	// Group is the group of all nodes.
	Group = "system:nodes"
)

const (
	clientPair  = "node-client"
	servingPair = "node-serving"
	checkEvery  = time.Second
	// waitEvery is how often somebody who waits looks whether the file of a certificate came.
	waitEvery   = 100 * time.Millisecond
	dialTimeout = 30 * time.Second
)

// Options of a Store. All but Clock must be given.
type Options struct {
	// Node whose identity it is.
	Node string
	// Directory that holds keys and certificates.
	Directory string
	// Address that the serving certificate is for.
	Address netip.Addr
	// Bootstrap connects to the cluster as the account that may ask for the client certificate. Its server and CA are those
	// of the node's own client, too.
	Bootstrap *rest.Config
	// Wrap is around the transport of all requests as the node; nil adds nothing.
	Wrap transport.WrapperFunc
	// Clock times the checks; nil means the real one.
	Clock clock.WithTicker
}

// Store holds the node's certificates. Make it with New.
type Store struct {
	options Options
	files   certificate.FileStore
	dialer  *connrotation.Dialer
	client  certificate.Manager
	serving certificate.Manager

	mu   sync.Mutex
	node kubernetes.Interface
}

// New prepares the store; certificates of earlier runs are used again. Nothing is asked for before Run.
func New(ctx context.Context, o Options) (*Store, error) {
	if o.Node == "" || o.Directory == "" || o.Bootstrap == nil || !o.Address.IsValid() {
		return nil, errors.New("making the node's credentials: node, directory, address and bootstrap client must be given")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := os.MkdirAll(o.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the node's credentials: %w", err)
	}
	client, err := kubernetes.NewForConfig(o.Bootstrap)
	if err != nil {
		return nil, fmt.Errorf("making the bootstrap client: %w", err)
	}
	bootstrap := byName{client, o.Clock}
	s := &Store{options: o, dialer: connrotation.NewDialer((&net.Dialer{Timeout: dialTimeout, KeepAlive: dialTimeout}).DialContext)}
	if s.files, err = certificate.NewFileStore(clientPair, o.Directory, o.Directory, "", ""); err != nil {
		return nil, fmt.Errorf("opening the node's client certificate: %w", err)
	}
	subject := pkix.Name{CommonName: UserPrefix + o.Node, Organization: []string{Group}}
	s.client, err = certificate.NewManager(&certificate.Config{
		ClientsetFn:      func(*tls.Certificate) (kubernetes.Interface, error) { return bootstrap, nil },
		Template:         &x509.CertificateRequest{Subject: subject},
		SignerName:       certificatesv1.KubeAPIServerClientKubeletSignerName,
		Usages:           []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		CertificateStore: s.files, Name: clientPair, Ctx: &ctx,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the node's client certificate: %w", err)
	}
	files, err := certificate.NewFileStore(servingPair, o.Directory, o.Directory, "", "")
	if err != nil {
		return nil, fmt.Errorf("opening the node's serving certificate: %w", err)
	}
	s.serving, err = certificate.NewManager(&certificate.Config{
		ClientsetFn:      func(*tls.Certificate) (kubernetes.Interface, error) { return s.current() },
		Template:         &x509.CertificateRequest{Subject: subject, IPAddresses: []net.IP{o.Address.AsSlice()}},
		SignerName:       certificatesv1.KubeletServingSignerName,
		Usages:           []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageServerAuth},
		CertificateStore: files, Name: servingPair, Ctx: &ctx,
	})
	if err != nil {
		return nil, fmt.Errorf("preparing the node's serving certificate: %w", err)
	}
	return s, nil
}

// Run keeps the certificates valid until the context ends.
func (s *Store) Run(ctx context.Context) error {
	s.client.Start()
	defer s.client.Stop()
	if err := s.Wait(ctx); err != nil {
		return nil // the end came first
	}
	s.serving.Start()
	defer s.serving.Stop()
	ticker := s.options.Clock.NewTicker(checkEvery)
	defer ticker.Stop()
	last := s.client.Current()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C():
		}
		if now := s.client.Current(); now != last && now != nil {
			// The API server knows a connection by the certificate that it was opened with.
			s.dialer.CloseAll()
			last = now
		}
	}
}

// Wait returns when there is a client certificate, or with the context's error.
func (s *Store) Wait(ctx context.Context) error {
	ticker := s.options.Clock.NewTicker(waitEvery)
	defer ticker.Stop()
	for s.client.Current() == nil {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for the node's client certificate: %w", ctx.Err())
		case <-ticker.C():
		}
	}
	return nil
}

// Config connects to the cluster as the node. It works once Wait returned, and goes on over renewals.
func (s *Store) Config() *rest.Config {
	config := rest.AnonymousClientConfig(s.options.Bootstrap)
	config.TLSClientConfig.CertFile, config.TLSClientConfig.KeyFile = s.files.CurrentPath(), s.files.CurrentPath()
	config.Dial = s.dialer.DialContext
	config.QPS = -1 // the server's priority and fairness protects it
	config.UserAgent = rest.DefaultKubernetesUserAgent()
	config.Wrap(s.options.Wrap)
	return config
}

// Client waits for the client certificate and returns the node's client of the cluster. It is the same one every time and
// goes on over renewals.
func (s *Store) Client(ctx context.Context) (kubernetes.Interface, error) {
	if err := s.Wait(ctx); err != nil {
		return nil, err
	}
	return s.current()
}

// current makes the client once. It needs the certificate's file.
func (s *Store) current() (kubernetes.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node != nil {
		return s.node, nil
	}
	client, err := kubernetes.NewForConfig(s.Config())
	if err != nil {
		return nil, fmt.Errorf("making the node's client: %w", err)
	}
	s.node = client
	return client, nil
}

// ClientCertificate is the node's client certificate, nil if there is none yet.
func (s *Store) ClientCertificate() *tls.Certificate { return s.client.Current() }

// ServingCertificate is the GetCertificate of the node's endpoint.
func (s *Store) ServingCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if current := s.serving.Current(); current != nil {
		return current, nil
	}
	return nil, errors.New("the node has no serving certificate yet: its CertificateSigningRequest was not approved")
}
