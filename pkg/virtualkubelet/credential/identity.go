package credential

import (
	"context"
	"crypto/tls"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"liqo.io/liqo/pkg/config/v1alpha1"
)

// Identity is who the process is for its own cluster.
type Identity interface {
	// Run keeps the credentials valid until the context ends.
	Run(ctx context.Context) error
	// Client waits for the credentials and returns a client that goes on over renewals.
	Client(ctx context.Context) (kubernetes.Interface, error)
	// Config connects with the same identity; it works once Client returned.
	Config() *rest.Config
	// ServingCertificate is the GetCertificate of the node's endpoint.
	ServingCertificate(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// ClientCertificate is the one by which the process is a node; nil if it is none, or has none yet.
	ClientCertificate() *tls.Certificate
}

// NewIdentity makes the identity of a kind.
func NewIdentity(ctx context.Context, kind v1alpha1.NodeIdentity, o Options) (Identity, error) {
	if kind == v1alpha1.NodeIdentityServiceAccount {
		return NewAccount(o)
	}
	return New(ctx, o)
}
