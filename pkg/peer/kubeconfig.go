package peer

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"liqo.io/liqo/pkg/identity"
)

// MaxKubeconfig bounds a kubeconfig, in bytes.
const MaxKubeconfig = 256 << 10

// ParseKubeconfig turns a kubeconfig into a rest config without ever running a program, reading a file or leaving TLS
// unverified for it. Only the current context is looked at. Addresses are checked against the policy, and once more when
// they are dialled. The error says what is not accepted, never the credentials themselves.
func ParseKubeconfig(raw []byte, policy identity.EndpointPolicy) (*rest.Config, error) {
	if len(raw) == 0 || len(raw) > MaxKubeconfig {
		return nil, fmt.Errorf("the kubeconfig has %d bytes: give one of 1 to %d", len(raw), MaxKubeconfig)
	}
	config, err := clientcmd.Load(raw)
	if err != nil {
		// The parser's words are left out: they may quote the credentials.
		return nil, errors.New("the kubeconfig cannot be parsed")
	}
	cluster, user, err := current(config)
	if err != nil {
		return nil, err
	}
	if err := checkCluster(cluster, policy); err != nil {
		return nil, err
	}
	if err := checkUser(user); err != nil {
		return nil, err
	}
	out := &rest.Config{
		Host:        cluster.Server,
		BearerToken: user.Token,
		TLSClientConfig: rest.TLSClientConfig{
			ServerName: cluster.TLSServerName,
			CAData:     cluster.CertificateAuthorityData,
			CertData:   user.ClientCertificateData,
			KeyData:    user.ClientKeyData,
		},
		QPS:  -1, // the server's priority and fairness protects it
		Dial: checkedDialer(policy).DialContext,
	}
	if cluster.ProxyURL != "" {
		proxy, err := url.Parse(cluster.ProxyURL)
		if err != nil {
			return nil, errors.New("the kubeconfig's proxy-url cannot be parsed")
		}
		out.Proxy = http.ProxyURL(proxy)
	}
	return out, nil
}

func current(config *clientcmdapi.Config) (*clientcmdapi.Cluster, *clientcmdapi.AuthInfo, error) {
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return nil, nil, errors.New("the kubeconfig has no current context")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	if cluster == nil || user == nil {
		return nil, nil, errors.New("the kubeconfig's current context names a cluster or user that it does not hold")
	}
	return cluster, user, nil
}

func checkCluster(cluster *clientcmdapi.Cluster, policy identity.EndpointPolicy) error {
	switch {
	case cluster.InsecureSkipTLSVerify:
		return errors.New("the kubeconfig turns the verification of the server off, which is not allowed")
	case cluster.CertificateAuthority != "":
		return errors.New("the kubeconfig refers to a file: give certificate-authority-data instead")
	}
	if err := policy.CheckAPIServer(cluster.Server); err != nil {
		return fmt.Errorf("checking the kubeconfig's server: %w", err)
	}
	if len(cluster.CertificateAuthorityData) != 0 {
		if err := identity.CheckCA(cluster.CertificateAuthorityData); err != nil {
			return fmt.Errorf("checking the kubeconfig's certificate-authority-data: %w", err)
		}
	}
	if cluster.ProxyURL != "" {
		if err := policy.CheckProxy(cluster.ProxyURL); err != nil {
			return fmt.Errorf("checking the kubeconfig's proxy-url: %w", err)
		}
	}
	return nil
}

func checkUser(user *clientcmdapi.AuthInfo) error {
	certificate := len(user.ClientCertificateData) != 0 && len(user.ClientKeyData) != 0
	switch {
	case user.Exec != nil:
		return errors.New("the kubeconfig runs a program for its credentials, which is not allowed")
	case user.AuthProvider != nil:
		return errors.New("the kubeconfig uses an auth provider, which is not allowed")
	case user.ClientCertificate != "", user.ClientKey != "", user.TokenFile != "":
		return errors.New("the kubeconfig refers to a file: give client-certificate-data and client-key-data instead")
	case user.Impersonate != "", user.ImpersonateUID != "", len(user.ImpersonateGroups) != 0, len(user.ImpersonateUserExtra) != 0:
		return errors.New("the kubeconfig impersonates another user, which is not allowed")
	case user.Username != "", user.Password != "":
		return errors.New("the kubeconfig holds a password, which API servers no longer take")
	case !certificate && user.Token == "":
		return errors.New("the kubeconfig holds neither a client certificate with its key nor a token")
	}
	return nil
}

// checkedDialer refuses addresses that the policy refuses after names were resolved: a name of the peer may point anywhere.
func checkedDialer(policy identity.EndpointPolicy) *net.Dialer {
	return &net.Dialer{
		Timeout:   dialTimeout,
		KeepAlive: 30 * time.Second,
		Control: func(_, address string, _ syscall.RawConn) error {
			target, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("checking the address of the peer: %w", err)
			}
			return policy.CheckAPIServer((&url.URL{Scheme: "https", Host: target.String()}).String())
		},
	}
}
