package install

import (
	"context"
	"crypto/sha256"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/identity"
)

var (
	adjectives = []string{
		"amber", "bold", "brave", "bright", "calm", "clever", "crisp", "eager", "fair", "gentle", "golden", "happy", "honest", "jolly",
		"keen", "kind", "lively", "lucky", "merry", "mild", "noble", "proud", "quick", "quiet", "rapid", "silver", "smart", "steady",
		"sunny", "swift", "warm", "wise",
	}
	animals = []string{
		"badger", "beaver", "bison", "crane", "deer", "dolphin", "eagle", "falcon", "finch", "fox", "gecko", "hare", "heron", "ibex",
		"jay", "koala", "lark", "lemur", "lynx", "marten", "mole", "moose", "otter", "owl", "panda", "puffin", "robin", "seal",
		"stork", "swan", "tapir", "wren",
	}
)

// MadeUpID makes up a cluster ID that people can say, that no two clusters share by accident, and that is the same at every try.
// seed is what never changes in the cluster and is no other cluster's.
func MadeUpID(seed string) string {
	sum := sha256.Sum256([]byte(seed))
	return fmt.Sprintf("%s-%s-%06x", adjectives[int(sum[0])%len(adjectives)], animals[int(sum[1])%len(animals)], sum[2:5])
}

// requireNobody refuses to change the ID of an installation, unless that is a first one that does not run, of a cluster that has no peers, and
// nothing that a user made meanwhile would go with it.
func (p *Plan) requireNobody(ctx context.Context, installed *target.Installation, wanted string) error {
	unmet := func(way, why string) error {
		return failure.Unmet(way, "the cluster ID is %s and cannot be changed to %s, because %s", installed.ClusterID, wanted, why)
	}
	known := unmet("leave --cluster-id out, or uninstall first with 'liqoctl uninstall'", "peers know the cluster by it")
	runs := installed.Deployment != nil && installed.Deployment.Status.AvailableReplicas > 0
	if p.present == nil || p.present.Revision != 1 || p.present.Status == "deployed" && runs {
		return known
	}
	cluster := p.options.Cluster
	for _, traces := range []struct {
		list    client.ObjectList
		options []client.ListOption
	}{
		{&corev1beta1.ForeignClusterList{}, nil}, {&authv1beta1.ResourceSliceList{}, nil}, {&authv1beta1.TenantList{}, nil}, {&authv1beta1.IdentityList{}, nil},
		{&corev1.NamespaceList{}, []client.ListOption{client.HasLabels{corev1beta1.RemoteClusterIDLabel}}},
	} {
		if err := cluster.List(ctx, traces.list, traces.options...); err != nil {
			return err
		}
		if meta.LenList(traces.list) > 0 {
			return known
		}
	}
	made, err := usersObject(ctx, cluster)
	if err == nil && made != nil {
		return unmet("leave --cluster-id out, or delete it first", target.Name(made)+" would go with the installation that is removed for that")
	}
	return err
}

// usersObject is something that a user made of our kinds, which no peer has to know of; nil if there is nothing.
func usersObject(ctx context.Context, cluster *target.Cluster) (client.Object, error) {
	offloadings, ips := &offloadingv1beta1.NamespaceOffloadingList{}, &ipamv1alpha1.IPList{}
	for _, list := range []client.ObjectList{offloadings, ips} {
		if err := cluster.List(ctx, list); err != nil {
			return nil, err
		}
	}
	if len(offloadings.Items) > 0 {
		return &offloadings.Items[0], nil
	}
	for i := range ips.Items {
		if ips.Items[i].Labels[corev1beta1.ManagedLabel] != "true" {
			return &ips.Items[i], nil
		}
	}
	return nil, nil
}

// earlierID is the ID by which what is left of an earlier installation knows the cluster, and the object that says so; empty if
// nothing is left.
func earlierID(ctx context.Context, cluster *target.Cluster) (id, where string, err error) {
	slices := &authv1beta1.ResourceSliceList{}
	if err := cluster.List(ctx, slices); err != nil {
		return "", "", err
	}
	for i := range slices.Items {
		slice := &slices.Items[i]
		own := slice.Spec.ConsumerClusterID
		// At the provider it is a copy of the consumer's.
		if slice.Labels[corev1beta1.ReplicatedLabel] == "true" {
			own = slice.Spec.ProviderClusterID
		}
		if own != nil && identity.ValidateClusterID(string(*own)) == nil {
			return string(*own), cluster.Describe(slice), nil
		}
	}
	return "", "", nil
}
