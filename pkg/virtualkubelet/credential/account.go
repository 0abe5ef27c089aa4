package credential

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// selfSignedLifetime is how long a self-signed serving certificate is valid; it is made anew when a third is left.
	selfSignedLifetime = 90 * 24 * time.Hour
	// selfSignedSkew is how far the clocks of those who look at it may be behind.
	selfSignedSkew = 5 * time.Minute
	serialBits     = 127
)

// Account is the identity of a virtual kubelet that is no node for its cluster but stays the ServiceAccount that it runs as.
// The signer of kubelets' serving certificates signs for nodes only, so its serving certificate is self-signed: an API server
// that was given --kubelet-certificate-authority does not accept it. Make it with NewAccount.
type Account struct {
	options Options
	client  kubernetes.Interface

	mu      sync.Mutex
	serving *tls.Certificate
}

// NewAccount makes the identity from the same options as New; the folder is not used.
func NewAccount(o Options) (*Account, error) {
	if o.Node == "" || o.Bootstrap == nil || !o.Address.IsValid() {
		return nil, errors.New("making the account's credentials: node, address and client must be given")
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	client, err := kubernetes.NewForConfig(o.Bootstrap)
	if err != nil {
		return nil, fmt.Errorf("making the account's client: %w", err)
	}
	return &Account{options: o, client: client}, nil
}

// Run waits for the context to end: client-go itself reads the account's token again when it changes.
func (a *Account) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// Client returns the account's client of the cluster.
func (a *Account) Client(context.Context) (kubernetes.Interface, error) { return a.client, nil }

// ClientCertificate is nil: an account has a token.
func (a *Account) ClientCertificate() *tls.Certificate { return nil }

// Config connects to the cluster as the account.
func (a *Account) Config() *rest.Config { return rest.CopyConfig(a.options.Bootstrap) }

// ServingCertificate is the GetCertificate of the node's endpoint. It makes the certificate, and makes it anew in time.
func (a *Account) ServingCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.options.Clock.Now()
	if a.serving != nil && a.serving.Leaf.NotAfter.Sub(now) > selfSignedLifetime/3 {
		return a.serving, nil
	}
	certificate, err := selfSigned(UserPrefix+a.options.Node, a.options.Address.AsSlice(), now)
	if err != nil {
		return nil, err
	}
	a.serving = certificate
	return certificate, nil
}

func selfSigned(name string, address net.IP, now time.Time) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of the serving certificate: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
	if err != nil {
		return nil, fmt.Errorf("making the number of the serving certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{address},
		NotBefore: now.Add(-selfSignedSkew), NotAfter: now.Add(selfSignedLifetime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the serving certificate: %w", err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the serving certificate: %w", err)
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}, nil
}
