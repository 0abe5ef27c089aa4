package advertise

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"os"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// +kubebuilder:rbac:groups="",resources=configmaps,resourceNames=cluster-info,verbs=get

const (
	clusterInfoNamespace = "kube-public"
	clusterInfoName      = "cluster-info"
	clusterInfoKey       = "kubeconfig"
)

// Advertiser tells the endpoint of this cluster's API server.
type Advertiser struct {
	// Address set by the administrator; empty means that it is found out.
	Address string
	// CA set by the administrator, in PEM; empty means that it is found out.
	CA []byte
	// TrustedCA says that the API server's certificate is publicly trusted, so that no CA is given to consumers.
	TrustedCA bool
	// Config is how this process reaches the API server.
	Config *rest.Config
	// Reader reads live.
	Reader client.Reader
	// AllowLoopback accepts a loopback address, for clusters that run on one machine in tests.
	AllowLoopback bool
}

// Endpoint returns where consumers reach the API server. The error is refused, with ReasonAPIServerUnknown, if that is not known.
func (a Advertiser) Endpoint(ctx context.Context) (identity.Endpoint, error) {
	endpoint := identity.Endpoint{APIServer: a.Address, CA: a.CA}
	if endpoint.APIServer == "" {
		published, err := a.published(ctx)
		if err != nil {
			return identity.Endpoint{}, err
		}
		endpoint.APIServer = published.APIServer
		if len(endpoint.CA) == 0 {
			endpoint.CA = published.CA
		}
		if endpoint.APIServer == "" {
			endpoint.APIServer = a.own()
		}
	}
	policy := identity.EndpointPolicy{AllowLoopback: a.AllowLoopback, Deny: internalAddress()}
	if err := policy.CheckAPIServer(endpoint.APIServer); err != nil {
		return identity.Endpoint{}, reconcile.Refuse(authv1beta1.ReasonAPIServerUnknown,
			fmt.Errorf("the address of the API server to tell consumers is not known: "+
				"set the chart value apiServer.address to the URL by which other clusters reach it: %w", err))
	}
	if a.TrustedCA {
		endpoint.CA = nil
		return endpoint, nil
	}
	if len(endpoint.CA) == 0 {
		ca, err := ownCA(a.Config)
		if err != nil {
			return identity.Endpoint{}, reconcile.Refuse(authv1beta1.ReasonAPIServerUnknown, err)
		}
		endpoint.CA = ca
	}
	if err := identity.CheckCA(endpoint.CA); err != nil {
		return identity.Endpoint{}, reconcile.Refuse(authv1beta1.ReasonAPIServerUnknown, fmt.Errorf("checking the CA to tell consumers: %w", err))
	}
	return endpoint, nil
}

// published is what kubeadm tells joining nodes; empty if there is no such thing.
func (a Advertiser) published(ctx context.Context) (identity.Endpoint, error) {
	var info corev1.ConfigMap
	err := a.Reader.Get(ctx, client.ObjectKey{Namespace: clusterInfoNamespace, Name: clusterInfoName}, &info)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return identity.Endpoint{}, nil
	}
	if err != nil {
		return identity.Endpoint{}, fmt.Errorf("reading ConfigMap %s/%s: %w", clusterInfoNamespace, clusterInfoName, err)
	}
	config, err := clientcmd.Load([]byte(info.Data[clusterInfoKey]))
	if err != nil {
		return identity.Endpoint{}, nil //nolint:nilerr // a ConfigMap that is not kubeadm's is as good as none
	}
	for _, cluster := range config.Clusters {
		return identity.Endpoint{APIServer: cluster.Server, CA: cluster.CertificateAuthorityData}, nil
	}
	return identity.Endpoint{}, nil
}

// own is the address that this process uses.
func (a Advertiser) own() string {
	if a.Config == nil || a.Config.Host == "" {
		return ""
	}
	u, err := url.Parse(a.Config.Host)
	if err != nil || u.Host == "" {
		return "https://" + a.Config.Host
	}
	return a.Config.Host
}

// internalAddress is the address of the API server inside the cluster, of no use outside.
func internalAddress() []netip.Prefix {
	address, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST"))
	if err != nil {
		return nil
	}
	return []netip.Prefix{netip.PrefixFrom(address, address.BitLen())}
}

func ownCA(config *rest.Config) ([]byte, error) {
	if config == nil {
		return nil, errors.New("the CA of the API server is not known: set the chart value apiServer.ca")
	}
	if len(config.CAData) != 0 {
		return config.CAData, nil
	}
	if config.CAFile != "" {
		ca, err := os.ReadFile(config.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the CA of the API server: %w", err)
		}
		return ca, nil
	}
	return nil, errors.New("the CA of the API server is not known: " +
		"set the chart value apiServer.ca, or apiServer.trustedCA if its certificate is publicly trusted")
}
