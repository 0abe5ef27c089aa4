package authentication

import (
	"fmt"
	"time"

	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/advertise"
	"liqo.io/liqo/pkg/controller/authentication/approval"
	"liqo.io/liqo/pkg/controller/authentication/certificate"
	identitycontroller "liqo.io/liqo/pkg/controller/authentication/identity"
	"liqo.io/liqo/pkg/controller/authentication/nonce"
	"liqo.io/liqo/pkg/controller/authentication/renewal"
	"liqo.io/liqo/pkg/controller/authentication/renewgrant"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/controller/authentication/slicegrant"
	"liqo.io/liqo/pkg/controller/authentication/sliceidentity"
	"liqo.io/liqo/pkg/controller/authentication/slicenode"
	"liqo.io/liqo/pkg/controller/authentication/slicerequest"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/pkg/controller/authentication/tenant"
	"liqo.io/liqo/pkg/controller/authentication/tenantnamespace"
	"liqo.io/liqo/pkg/identity"
)

// Options of all authentication controllers.
type Options struct {
	// ClusterID of this cluster.
	ClusterID string
	// LiqoNamespace is where Liqo is installed; default liqo.
	LiqoNamespace string
	// ServiceAccount that this process runs as; default liqo-controller-manager.
	ServiceAccount string
	// Algorithm of new keys; empty means Ed25519. RSA is the TLS compatibility mode.
	Algorithm identity.Algorithm
	// APIServerAddress, APIServerCA and TrustedCA override what consumers are told about this cluster's API server.
	APIServerAddress string
	APIServerCA      []byte
	TrustedCA        bool
	// CertificateLifetime of what is issued to consumers; zero means 24 h, the least is 10 min.
	CertificateLifetime time.Duration
	// Consumers says how consumers are treated.
	Consumers ConsumerOptions
	// Endpoints says where a provider's API server may be: Deny holds this cluster's pod and service ranges.
	Endpoints identity.EndpointPolicy
	// Grants says what consumers get.
	Grants slicegrant.Policy
	// StorageClass offered as the default; empty means the cluster's own.
	StorageClass string
	// IngressClasses and LoadBalancerClasses offered to consumers.
	IngressClasses      []authv1beta1.IngressType
	LoadBalancerClasses []authv1beta1.LoadBalancerType
	// ClusterLabels suggested for consumers' virtual nodes.
	ClusterLabels map[string]string
	// PodCIDRs of this cluster, announced to consumers.
	PodCIDRs []string
	// HideAddresses keeps providers from learning the ranges of this cluster's endpoints.
	HideAddresses bool
	// VirtualNodes says how VirtualNodes are made of slices, whose kubelets' certificates are approved then; nil makes none.
	VirtualNodes *slicenode.Options
	// Supply is what this cluster has to offer.
	Supply *supply.Supply
	// Clock times everything; nil means the real one.
	Clock clock.PassiveClock
}

// ConsumerOptions say how consumers are treated.
type ConsumerOptions struct {
	// SilentAfter is how long one may ask for no certificate before its Tenant says so.
	SilentAfter time.Duration
	// RequestShares of the API server's places that the requests of each are served in; zero means one.
	RequestShares int32
}

// Register adds all authentication controllers to the manager, whose client must read Secrets live (or not at all: they are
// read with its API reader).
func Register(mgr ctrl.Manager, o Options) error {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	metadataClient, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("making a metadata client: %w", err)
	}
	watch := secrets.NewWatch(metadataClient)
	if err := mgr.Add(watch); err != nil {
		return fmt.Errorf("adding the watch of Secrets: %w", err)
	}
	store := secrets.Store{Client: mgr.GetClient(), Reader: mgr.GetAPIReader()}
	issuer := &certificate.Issuer{
		Secrets: store, Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Clock: o.Clock, Lifetime: o.CertificateLifetime,
	}
	advertiser := advertise.Advertiser{
		Address: o.APIServerAddress, CA: o.APIServerCA, TrustedCA: o.TrustedCA, Config: mgr.GetConfig(), Reader: mgr.GetAPIReader(),
		AllowLoopback: o.Endpoints.AllowLoopback,
	}
	steps := []error{
		tenantnamespace.Register(mgr, tenantnamespace.Options{ServiceAccount: o.ServiceAccount, LiqoNamespace: o.LiqoNamespace, Watch: watch}),
		nonce.Register(mgr, nonce.Options{ClusterID: o.ClusterID, Algorithm: o.Algorithm, Watch: watch, Secrets: store}),
		tenant.Register(mgr, tenant.Options{
			ClusterID: o.ClusterID, Issuer: issuer, Advertiser: advertiser, Secrets: store, Watch: watch, SilentAfter: o.Consumers.SilentAfter, Clock: o.Clock,
			RequestShares: max(o.Consumers.RequestShares, 1),
		}),
		identitycontroller.Register(mgr, identitycontroller.Options{
			ClusterID: o.ClusterID, Endpoints: o.Endpoints, Secrets: store, Watch: watch, Clock: o.Clock,
		}),
		slicerequest.Register(mgr, slicerequest.Options{
			ClusterID: o.ClusterID, Algorithm: o.Algorithm, Secrets: store, Watch: watch, PodCIDRs: o.PodCIDRs, HideAddresses: o.HideAddresses,
		}),
		slicegrant.Register(mgr, grantOptions(o, issuer, advertiser, watch)),
		sliceidentity.Register(mgr, sliceidentity.Options{ClusterID: o.ClusterID, Secrets: store, Clock: o.Clock}),
		renewal.Register(mgr, renewal.Options{ClusterID: o.ClusterID, Algorithm: o.Algorithm, Secrets: store, Clock: o.Clock}),
		renewgrant.Register(mgr, renewgrant.Options{ClusterID: o.ClusterID, Issuer: issuer, Advertiser: advertiser}),
	}
	if o.VirtualNodes != nil {
		steps = append(steps, slicenode.Register(mgr, *o.VirtualNodes), approval.Register(mgr, approval.Options{Clock: o.Clock}))
	}
	for _, err := range steps {
		if err != nil {
			return fmt.Errorf("registering the authentication controllers: %w", err)
		}
	}
	return nil
}

func grantOptions(o Options, issuer *certificate.Issuer, advertiser advertise.Advertiser, watch *secrets.Watch) slicegrant.Options {
	return slicegrant.Options{
		ClusterID: o.ClusterID, Issuer: issuer, Advertiser: advertiser, Watch: watch, Clock: o.Clock,
		Policy: o.Grants, Supply: o.Supply,
		StorageClass: o.StorageClass, IngressClasses: o.IngressClasses, LoadBalancerClasses: o.LoadBalancerClasses,
		ClusterLabels: o.ClusterLabels, PodCIDRs: o.PodCIDRs,
	}
}
