package authenticate

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/target"
)

// UndoOptions of Undo.
type UndoOptions struct {
	// Consumer and Provider clusters.
	Consumer, Provider *target.Cluster
	// NoWait returns once the deletions were accepted.
	NoWait bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Undo ends the consumer's authentication with the provider. It refuses as long as the consumer has ResourceSlices there.
func Undo(ctx context.Context, o UndoOptions) error {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	pair, err := target.RequirePair(ctx, o.Consumer, o.Provider, true)
	if err != nil {
		return err
	}
	listing := target.Rights(authv1beta1.GroupVersion.Group, "resourceslices", pair.ConsumerNamespace(), "list")
	if err := RequireSeparateRights(ctx, pair, listing, nil); err != nil {
		return err
	}
	slices := &authv1beta1.ResourceSliceList{}
	if err := pair.Consumer.List(ctx, slices, client.InNamespace(pair.ConsumerNamespace()),
		client.MatchingLabels{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: pair.ProviderID}); err != nil {
		return err
	}
	if len(slices.Items) > 0 {
		return failure.Unmet("remove them too with 'liqoctl unpeer', or delete them first",
			"%s still has %d ResourceSlices towards %s (namespace %s)", pair.ConsumerID, len(slices.Items), pair.ProviderID, pair.ConsumerNamespace())
	}
	return Separate(ctx, pair, !o.NoWait, o.Observer)
}

// RequireSeparateRights checks, in both clusters and before anything is touched, that the user may do what Separate does, and more.
func RequireSeparateRights(ctx context.Context, pair *target.Pair, moreAtConsumer, moreAtProvider []target.Right) error {
	group, home, there := authv1beta1.GroupVersion.Group, pair.ConsumerNamespace(), pair.ProviderNamespace()
	consumer := append(target.Rights(group, "identities", home, "get", "delete"), target.Rights("", "secrets", home, "get", "delete")...)
	if err := pair.Consumer.RequireRights(ctx, append(consumer, moreAtConsumer...)); err != nil {
		return err
	}
	provider := append(target.Rights(group, "tenants", there, "get", "delete"), target.Rights("", "secrets", there, "get", "delete")...)
	return pair.Provider.RequireRights(ctx, append(provider, moreAtProvider...))
}

// Separate removes Identity, Tenant and nonces of a pair.
func Separate(ctx context.Context, pair *target.Pair, wait bool, observer progress.Observer) error {
	h := &handshake{pair: pair, observer: observer}
	for _, item := range []struct {
		cluster *target.Cluster
		object  client.Object
	}{
		{pair.Consumer, h.newIdentity()},
		{pair.Provider, h.newTenant()},
		{pair.Consumer, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pair.ConsumerNamespace(), Name: authv1beta1.SignedNonceSecret}}},
		{pair.Provider, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pair.ProviderNamespace(), Name: authv1beta1.NonceSecret}}},
	} {
		if err := removal.Delete(ctx, observer, item.cluster, item.object, wait); err != nil {
			return err
		}
	}
	return nil
}
