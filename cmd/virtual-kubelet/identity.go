package main

import (
	"context"
	"crypto/tls"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/virtualkubelet/credential"
)

// nodeIdentity is who the process is for its own cluster.
type nodeIdentity interface {
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

func newNodeIdentity(ctx context.Context, k *kubelet) (nodeIdentity, error) {
	options := credential.Options{Node: k.flags.Node, Directory: k.flags.Identity.Directory, Address: k.around.Address, Bootstrap: k.home, Wrap: k.fence.Wrap}
	if k.flags.Identity.Kind == v1alpha1.NodeIdentityServiceAccount {
		return credential.NewAccount(options)
	}
	return credential.New(ctx, options)
}
