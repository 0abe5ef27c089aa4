package networking

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	ctrl "sigs.k8s.io/controller-runtime"

	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/networking/apiserver"
	"liqo.io/liqo/pkg/controller/networking/configuration"
	"liqo.io/liqo/pkg/controller/networking/external"
	"liqo.io/liqo/pkg/controller/networking/fabric"
	"liqo.io/liqo/pkg/controller/networking/gateway"
	"liqo.io/liqo/pkg/controller/networking/ip"
	"liqo.io/liqo/pkg/controller/networking/isolation"
	"liqo.io/liqo/pkg/controller/networking/network"
	"liqo.io/liqo/pkg/controller/networking/podaddress"
	"liqo.io/liqo/pkg/identity"
)

// Options of all controllers of the network module.
type Options struct {
	// ClusterID of this cluster.
	ClusterID string
	// Namespace that Liqo is installed in.
	Namespace string
	// Pods and Services are this cluster's own ranges; those of Pods are of IPv4.
	Pods, Services []netip.Prefix
	// External is where what is no pod gets addresses towards peers. Internal is kept free of peers. Empty means that a free range is found.
	External, Internal []netip.Prefix
	// Reserved are kept free of peers. Pools are what peers' ranges are remapped to.
	Reserved, Pools []netip.Prefix
	// OverlayPort is the UDP port of the way between nodes and gateways.
	OverlayPort int32
	// Isolation says which pods peers reach.
	Isolation v1alpha1.Isolation
	// APIServerEndpoints has peers reach the endpoints of this cluster's API server in place of its ClusterIP.
	APIServerEndpoints bool
}

// validate finds what the controllers cannot work without.
func (o Options) validate() error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return err
	}
	if o.Namespace == "" || len(o.Pods) == 0 {
		return errors.New("the namespace that Liqo is installed in, or the ranges of this cluster's pods, are not known")
	}
	return nil
}

// Register adds all controllers of the network module to the manager.
func Register(ctx context.Context, mgr ctrl.Manager, o Options) error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("registering the network controllers: %w", err)
	}
	pods, err := podaddress.NewCache(ctx, mgr)
	if err != nil {
		return fmt.Errorf("registering the network controllers: %w", err)
	}
	ledger := external.New(mgr.GetAPIReader(), o.Namespace)
	for _, err := range []error{
		network.Register(mgr, network.Options{
			ClusterID: o.ClusterID, Namespace: o.Namespace, Pods: o.Pods, Services: o.Services, Reserved: o.Reserved,
			External: o.External, Internal: o.Internal, Pools: o.Pools,
		}),
		configuration.Register(mgr, configuration.Options{ClusterID: o.ClusterID, Namespace: o.Namespace, Pods: o.Pods}),
		ip.Register(mgr, ip.Options{Namespace: o.Namespace, Ledger: ledger}),
		fabric.Register(mgr, fabric.Options{Ledger: ledger, Pods: pods, Cluster: o.Pods}),
		isolation.Register(mgr, isolation.Options{Isolation: o.Isolation, Pods: pods}),
		gateway.Register(mgr, gateway.Options{Namespace: o.Namespace}),
		apiserver.Register(mgr, apiserver.Options{Namespace: o.Namespace, Endpoints: o.APIServerEndpoints}),
	} {
		if err != nil {
			return fmt.Errorf("registering the network controllers: %w", err)
		}
	}
	return nil
}
