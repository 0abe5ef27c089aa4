package authenticate

import (
	"context"
	"time"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// DefaultTimeout of Run and Undo.
const DefaultTimeout = 2 * time.Minute

// Options of Run.
type Options struct {
	// Consumer and Provider clusters.
	Consumer, Provider *target.Cluster
	// ProxyURL through which the consumer reaches the provider's API server; empty for a direct connection, nil for what is there.
	ProxyURL *string
	// SkipValidation lets clusters with different versions authenticate.
	SkipValidation bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Report says what is in place.
type Report struct {
	// ConsumerID and ProviderID of the pair.
	ConsumerID string `json:"consumerID"`
	ProviderID string `json:"providerID"`
	// ConsumerNamespace and ProviderNamespace are the tenant namespaces in the consumer and in the provider.
	ConsumerNamespace string `json:"consumerNamespace"`
	ProviderNamespace string `json:"providerNamespace"`
	// Tenant at the provider and Identity at the consumer.
	Tenant   string `json:"tenant"`
	Identity string `json:"identity"`
	// Changed tells whether anything had to be done.
	Changed bool `json:"changed"`
}

// Run authenticates the consumer with the provider.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	var pair *target.Pair
	err := progress.Run(ctx, o.Observer, "", "Checking preconditions", func(ctx context.Context, _ progress.Task) (string, error) {
		var err error
		if pair, err = target.RequirePair(ctx, o.Consumer, o.Provider, o.SkipValidation); err != nil {
			return "", err
		}
		if err := pair.Consumer.RequireRights(ctx, ConsumerRights(pair)); err != nil {
			return "", err
		}
		return "Preconditions hold", pair.Provider.RequireRights(ctx, ProviderRights(pair))
	})
	if err != nil {
		return nil, err
	}
	return Handshake(ctx, pair, o.ProxyURL, o.Observer)
}

// ConsumerRights are what a user needs in the consumer cluster.
func ConsumerRights(pair *target.Pair) []target.Right {
	namespace := pair.ConsumerNamespace()
	return append(target.Rights("", "namespaces", "", "get", "create", "update"),
		append(target.Rights("", "secrets", namespace, "get", "create", "update", "delete"),
			target.Rights(authv1beta1.GroupVersion.Group, "identities", namespace, "get", "create", "update")...)...)
}

// ProviderRights are what a user needs in the provider cluster.
func ProviderRights(pair *target.Pair) []target.Right {
	namespace := pair.ProviderNamespace()
	return append(target.Rights("", "namespaces", "", "get", "create", "update"),
		append(target.Rights("", "secrets", namespace, "get", "create", "delete"),
			target.Rights(authv1beta1.GroupVersion.Group, "tenants", namespace, "get", "create", "update")...)...)
}

// Handshake authenticates a pair whose preconditions were checked.
func Handshake(ctx context.Context, pair *target.Pair, proxyURL *string, observer progress.Observer) (*Report, error) {
	h := &handshake{pair: pair, proxyURL: proxyURL, observer: observer}
	report := &Report{
		ConsumerID: pair.ConsumerID, ProviderID: pair.ProviderID,
		ConsumerNamespace: pair.ConsumerNamespace(), ProviderNamespace: pair.ProviderNamespace(),
		Tenant: pair.ConsumerID, Identity: authv1beta1.ControlPlaneIdentityPrefix + pair.ProviderID,
	}
	if err := h.namespaces(ctx); err != nil {
		return nil, err
	}
	done, err := h.inPlace(ctx)
	if err != nil {
		return nil, err
	}
	steps := []func(context.Context) error{h.nonce, h.sign, h.tenant, h.identity}
	if done {
		observer.Note(progress.Info, "", pair.ConsumerID+" is authenticated with "+pair.ProviderID+" already")
		steps = []func(context.Context) error{h.identity}
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	report.Changed = h.changed
	return report, nil
}
