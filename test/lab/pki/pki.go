// Package pki makes the keys, certificates and kubeconfigs of one lab cluster.
//
// Everything is a file in one folder and is made once: a certificate that is
// there is kept as long as it names every wanted address and does not expire
// within a day, so that a lab can be repaired without changing its identities.
// One CA signs servers, clients and (through kube-controller-manager) CSRs;
// a second one is for the aggregation layer's front proxy.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
)

const (
	lifetime = 365 * 24 * time.Hour
	// ClusterCA is the name of the CA that the cluster trusts.
	ClusterCA = "ca"
	// FrontProxyCA is the name of the CA of the aggregation layer.
	FrontProxyCA = "front-proxy-ca"
)

// Store is the folder that holds the key material of one cluster.
type Store struct {
	dir   string
	clock clock.PassiveClock
}

// Certificate says what a certificate is for.
type Certificate struct {
	// Name is the base name of its files.
	Name string
	// CommonName and Organizations are its subject: user and groups of a client.
	CommonName    string
	Organizations []string
	// DNSNames and Addresses make it a serving certificate for those names.
	DNSNames  []string
	Addresses []net.IP
	// CA is the name of the issuing CA; default ClusterCA.
	CA string
}

// New returns the store in dir, creating the folder.
func New(dir string, c clock.PassiveClock) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder for certificates: %w", err)
	}
	return &Store{dir: dir, clock: c}, nil
}

// Cert returns the path of a certificate, Key that of its private key.
func (s *Store) Cert(name string) string { return filepath.Join(s.dir, name+".crt") }

// Key returns the path of a private key.
func (s *Store) Key(name string) string { return filepath.Join(s.dir, name+".key") }

// EnsureCA makes a CA unless it is there.
func (s *Store) EnsureCA(name, commonName string) error {
	if cert, _, err := s.load(name); err == nil && s.fresh(cert) {
		return nil
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: commonName}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	return s.issue(name, template, nil, nil)
}

// Ensure makes a certificate unless a suitable one is there.
func (s *Store) Ensure(c Certificate) error {
	ca := c.CA
	if ca == "" {
		ca = ClusterCA
	}
	issuer, key, err := s.load(ca)
	if err != nil {
		return fmt.Errorf("loading the CA %s: %w", ca, err)
	}
	if cert, _, err := s.load(c.Name); err == nil && s.fresh(cert) && c.matches(cert) && cert.CheckSignatureFrom(issuer) == nil {
		return nil
	}
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(c.DNSNames)+len(c.Addresses) > 0 {
		usages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	return s.issue(c.Name, &x509.Certificate{
		Subject:  pkix.Name{CommonName: c.CommonName, Organization: c.Organizations},
		DNSNames: c.DNSNames, IPAddresses: c.Addresses, ExtKeyUsage: usages,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}, issuer, key)
}

// EnsureKey makes a key pair without a certificate: name.key and name.pub.
func (s *Store) EnsureKey(name string) error {
	public := filepath.Join(s.dir, name+".pub")
	if _, err := os.Stat(public); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the key %s: %w", name, err)
	}
	if err := writeKey(s.Key(name), key); err != nil {
		return err
	}
	der, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return fmt.Errorf("encoding the key %s: %w", name, err)
	}
	return write(public, "PUBLIC KEY", der)
}

// Public returns the path of a public key made by EnsureKey.
func (s *Store) Public(name string) string { return filepath.Join(s.dir, name+".pub") }

// Kubeconfig writes a kubeconfig for a client certificate of this store, all data embedded.
func (s *Store) Kubeconfig(path, cluster, server, certificate string) error {
	var files [3][]byte
	for i, name := range []string{s.Cert(ClusterCA), s.Cert(certificate), s.Key(certificate)} {
		data, err := os.ReadFile(name)
		if err != nil {
			return fmt.Errorf("writing the kubeconfig %s: %w", path, err)
		}
		files[i] = data
	}
	config := clientcmdapi.NewConfig()
	config.Clusters[cluster] = &clientcmdapi.Cluster{Server: server, CertificateAuthorityData: files[0]}
	user := cluster + "-" + certificate
	config.AuthInfos[user] = &clientcmdapi.AuthInfo{ClientCertificateData: files[1], ClientKeyData: files[2]}
	config.Contexts[cluster] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: user}
	config.CurrentContext = cluster
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig %s: %w", path, err)
	}
	if old, err := os.ReadFile(path); err == nil && slices.Equal(old, data) {
		return nil
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return fmt.Errorf("writing the kubeconfig: %w", err)
	}
	return nil
}

func (s *Store) fresh(cert *x509.Certificate) bool {
	return s.clock.Now().Add(24 * time.Hour).Before(cert.NotAfter)
}

func (c Certificate) matches(cert *x509.Certificate) bool {
	if cert.Subject.CommonName != c.CommonName || !slices.Equal(cert.Subject.Organization, c.Organizations) || !slices.Equal(cert.DNSNames, c.DNSNames) {
		return false
	}
	return slices.EqualFunc(cert.IPAddresses, c.Addresses, net.IP.Equal)
}

// issue signs the template with the issuer, or with itself when there is none.
func (s *Store) issue(name string, template, issuer *x509.Certificate, signer crypto.Signer) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generating the key of %s: %w", name, err)
	}
	if issuer == nil {
		issuer, signer = template, key
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return fmt.Errorf("choosing a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = s.clock.Now().Add(-time.Hour)
	template.NotAfter = s.clock.Now().Add(lifetime)
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		return fmt.Errorf("signing the certificate %s: %w", name, err)
	}
	if err := writeKey(s.Key(name), key); err != nil {
		return err
	}
	return write(s.Cert(name), "CERTIFICATE", der)
}

func (s *Store) load(name string) (*x509.Certificate, crypto.Signer, error) {
	certDER, err := read(s.Cert(name))
	if err != nil {
		return nil, nil, err
	}
	keyDER, err := read(s.Key(name))
	if err != nil {
		return nil, nil, err
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing %s: %w", s.Cert(name), err)
	}
	key, err := x509.ParseECPrivateKey(keyDER)
	if err != nil {
		return nil, nil, fmt.Errorf("parsing %s: %w", s.Key(name), err)
	}
	return cert, key, nil
}

func read(path string) ([]byte, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, errors.New(path + " is not PEM")
	}
	return block.Bytes, nil
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", path, err)
	}
	return write(path, "EC PRIVATE KEY", der)
}

func write(path, kind string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("writing key material: %w", err)
	}
	return nil
}
