package unpeer

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/target"
)

// CutOff takes away what a provider has of a cluster, at once and without a word to it: the controllers stop talking to it, its virtual
// nodes go with their pods, and so do the credentials. What is there is given up.
func CutOff(ctx context.Context, cluster *target.Cluster, providerID string, observer progress.Observer) error {
	s := newSide(cluster, providerID, observer)
	s.release = s.goneOrReleased
	peer, err := cluster.ForeignCluster(ctx, providerID)
	if err != nil {
		return err
	}
	if peer == nil {
		return failure.New(failure.Failed, "run the same command again; if that does not help: liqoctl unpeer --force "+providerID,
			"there is no ForeignCluster for %s, by which the controllers of cluster %s could be told", providerID, cluster.Name)
	}
	err = progress.Run(ctx, observer, cluster.Name, "Cutting "+providerID+" off", func(ctx context.Context, _ progress.Task) (string, error) {
		return providerID + " is not talked to any more", cluster.CutOff(ctx, peer, true)
	})
	if err != nil {
		return err
	}
	signed := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: authv1beta1.SignedNonceSecret}}
	for _, step := range []func(context.Context) error{
		s.tellVolumes, s.leaveProvider, s.dropIdentities,
		func(ctx context.Context) error { return removal.Delete(ctx, observer, cluster, signed, true) },
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// CutOffRights are what a user needs for CutOff.
func CutOffRights(providerID string) []target.Right {
	namespace, auth, offloading := corev1beta1.TenantNamespacePrefix+providerID, authv1beta1.GroupVersion.Group, offloadingv1beta1.GroupVersion.Group
	rights := target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list", "patch")
	for _, kind := range []struct{ group, resource string }{
		{offloading, "virtualnodes"}, {offloading, "namespacemaps"}, {auth, "resourceslices"}, {auth, "renews"}, {auth, "identities"},
	} {
		rights = append(rights, target.Rights(kind.group, kind.resource, namespace, "list", "get", "patch", "delete")...)
	}
	rights = append(rights, target.Rights("", "secrets", namespace, "get", "delete")...)
	return append(rights, target.Rights("", "persistentvolumes", "", "list")...)
}
