package identity

import (
	"encoding/json"
	"fmt"
	"regexp"

	clientcmdv1 "k8s.io/client-go/tools/clientcmd/api/v1"
	"sigs.k8s.io/yaml"
)

// KubeconfigParams are the parts of a kubeconfig. What came from a peer must have been checked for where it points
// (EndpointPolicy) and for whom it is (CheckCertificate) before.
type KubeconfigParams struct {
	// Endpoint is where the peer's API server is.
	Endpoint
	// ClientCertificate is our certificate, in PEM, with its chain if there is one.
	ClientCertificate []byte
	// Key is our private key; it must belong to the certificate.
	Key KeyPair
	// Namespace is the namespace used where none is named; may be empty.
	Namespace string
	// Cluster is the name of the cluster in the kubeconfig, usually the peer's ID.
	Cluster string
	// User is the name of the user in the kubeconfig. The name at the API server comes from the certificate.
	User string
}

var entryPattern = regexp.MustCompile(`^[a-zA-Z0-9]([-a-zA-Z0-9_.:~]{0,251}[a-zA-Z0-9])?$`)

// Kubeconfig renders a kubeconfig with one cluster, one user and one context, which is the current one. The same parameters
// always give the same bytes.
func Kubeconfig(p KubeconfigParams) ([]byte, error) {
	if err := checkKubeconfig(p); err != nil {
		return nil, err
	}
	key, err := p.Key.PrivatePEM()
	if err != nil {
		return nil, err
	}
	name := p.User + "@" + p.Cluster
	raw, err := json.Marshal(clientcmdv1.Config{
		Kind:       "Config",
		APIVersion: "v1",
		Clusters: []clientcmdv1.NamedCluster{{Name: p.Cluster, Cluster: clientcmdv1.Cluster{
			Server: p.APIServer, CertificateAuthorityData: p.CA, ProxyURL: p.ProxyURL,
		}}},
		AuthInfos: []clientcmdv1.NamedAuthInfo{{Name: p.User, AuthInfo: clientcmdv1.AuthInfo{
			ClientCertificateData: p.ClientCertificate, ClientKeyData: key,
		}}},
		Contexts: []clientcmdv1.NamedContext{{Name: name, Context: clientcmdv1.Context{
			Cluster: p.Cluster, AuthInfo: p.User, Namespace: p.Namespace,
		}}},
		CurrentContext: name,
	})
	if err != nil {
		return nil, fmt.Errorf("rendering the kubeconfig of cluster %q: %w", p.Cluster, err)
	}
	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return nil, fmt.Errorf("rendering the kubeconfig of cluster %q: %w", p.Cluster, err)
	}
	return out, nil
}

func checkKubeconfig(p KubeconfigParams) error {
	for _, entry := range []struct{ what, name string }{{"cluster", p.Cluster}, {"user", p.User}} {
		if !entryPattern.MatchString(entry.name) {
			return refuse(ReasonEncoding, "%s cannot name the %s of a kubeconfig: use letters, digits and \"-_.:~\"", quote(entry.name), entry.what)
		}
	}
	if p.Namespace != "" && (len(p.Namespace) > maxLabelLength || !labelPattern.MatchString(p.Namespace)) {
		return refuse(ReasonEncoding, "%s cannot name a namespace", quote(p.Namespace))
	}
	if _, err := parseURL(p.APIServer, "https"); err != nil {
		return fmt.Errorf("checking the API server of cluster %q: %w", p.Cluster, err)
	}
	if p.ProxyURL != "" {
		if _, err := parseURL(p.ProxyURL, "http", "https", "socks5"); err != nil {
			return fmt.Errorf("checking the proxy to cluster %q: %w", p.Cluster, err)
		}
	}
	if len(p.CA) != 0 {
		if err := CheckCA(p.CA); err != nil {
			return err
		}
	}
	chain, err := decodeCertificates(p.ClientCertificate)
	if err != nil {
		return fmt.Errorf("checking the client certificate for cluster %q: %w", p.Cluster, err)
	}
	if !SamePublicKey(p.Key.Public(), chain[0].PublicKey) {
		return refuse(ReasonPublicKeyMismatch, "the client certificate for cluster %q is not for the given key", p.Cluster)
	}
	return nil
}
