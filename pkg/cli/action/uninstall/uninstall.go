package uninstall

import (
	"context"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/residue"
	"liqo.io/liqo/pkg/cli/target"
)

const (
	// DefaultTimeout of Run.
	DefaultTimeout = 10 * time.Minute
	// settle is how long garbage collection may take before what is left counts as residue.
	settle = 30 * time.Second
)

// Options of Run.
type Options struct {
	// Cluster to remove Liqo from.
	Cluster *target.Cluster
	// Purge also removes definitions, tenant namespaces and Liqo's namespace.
	Purge bool
	// Timeout of the whole operation; 0 means DefaultTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
	// Helm to uninstall with; nil means one for Cluster.
	Helm helm.Client
}

// Report says what is left.
type Report struct {
	// ClusterID that the cluster had; empty if Liqo was not installed.
	ClusterID string `json:"clusterID,omitempty"`
	// Purged tells whether definitions and namespaces were removed too.
	Purged bool `json:"purged"`
	// Residue is what is left of Liqo.
	Residue []string `json:"residue"`
}

// Run removes Liqo.
func Run(ctx context.Context, o Options) (*Report, error) {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	report := &Report{Purged: o.Purge, Residue: []string{}}
	name := o.Cluster.Name
	err := progress.Run(ctx, o.Observer, name, "Checking that nothing depends on Liqo", func(ctx context.Context, _ progress.Task) (string, error) {
		if _, err := o.Cluster.Reach(ctx); err != nil {
			return "", err
		}
		installation, err := o.Cluster.Installed(ctx)
		if err != nil {
			return "", err
		}
		if installation != nil {
			report.ClusterID = installation.ClusterID
		}
		if err := requireRights(ctx, o); err != nil {
			return "", err
		}
		return "Nothing depends on Liqo", refuse(ctx, o.Cluster)
	})
	if err != nil {
		return nil, err
	}
	if o.Helm == nil {
		if o.Helm, err = helm.New(o.Cluster.Getter, o.Cluster.LiqoNamespace, nil); err != nil {
			return nil, err
		}
	}
	err = progress.Run(ctx, o.Observer, name, "Removing the release", func(ctx context.Context, _ progress.Task) (string, error) {
		return "Release removed", o.Helm.Uninstall(ctx, target.Liqo, o.Timeout)
	})
	if err != nil {
		return nil, err
	}
	if o.Purge {
		err = purge(ctx, o)
	} else {
		err = sweep(ctx, o)
	}
	if err != nil {
		return report, err
	}
	return report, verify(ctx, o, report)
}

// requireRights checks that the user may remove all of Liqo: whatever turned out to be missing later would leave half of it.
func requireRights(ctx context.Context, o Options) error {
	rights, err := residue.LiqoRights(o.Cluster, o.Purge)
	if err != nil {
		return err
	}
	// Helm keeps what it knows of a release in Secrets, and changes it while it removes the release.
	rights = append(rights, target.Rights("", "secrets", o.Cluster.LiqoNamespace, "list", "get", "update", "delete")...)
	rights = append(rights, target.Rights("", "namespaces", "", "get", "delete")...)
	rights = append(rights, target.Rights("", "persistentvolumeclaims", "", "list")...)
	return o.Cluster.RequireRights(ctx, rights)
}

// refuse names what would be orphaned, and the command that ends it.
func refuse(ctx context.Context, cluster *target.Cluster) error {
	offloadings := &offloadingv1beta1.NamespaceOffloadingList{}
	if err := cluster.List(ctx, offloadings); err != nil {
		return err
	}
	if len(offloadings.Items) > 0 {
		names := make([]string, len(offloadings.Items))
		for i := range offloadings.Items {
			names[i] = offloadings.Items[i].Namespace
		}
		return failure.Unmet("liqoctl unoffload namespace "+strings.Join(names, " "), "namespaces are offloaded (cluster %s): %s",
			cluster.Name, strings.Join(names, ", "))
	}
	peers, err := peers(ctx, cluster)
	if err != nil || len(peers) == 0 {
		return err
	}
	return failure.Unmet("end each with 'liqoctl unpeer', or with 'liqoctl unpeer --force CLUSTER_ID' if the peer is dead",
		"peerings are active (cluster %s): %s", cluster.Name, strings.Join(peers, ", "))
}

// peers says what is left of each peering.
func peers(ctx context.Context, cluster *target.Cluster) ([]string, error) {
	var found []string
	tenants, identities := &authv1beta1.TenantList{}, &authv1beta1.IdentityList{}
	slices, nodes := &authv1beta1.ResourceSliceList{}, &offloadingv1beta1.VirtualNodeList{}
	configurations, servers, clients := &networkingv1beta1.ConfigurationList{}, &networkingv1beta1.GatewayServerList{}, &networkingv1beta1.GatewayClientList{}
	for _, list := range []client.ObjectList{tenants, identities, slices, nodes, configurations, servers, clients} {
		if err := cluster.List(ctx, list); err != nil {
			return nil, err
		}
	}
	for i := range tenants.Items {
		found = append(found, fmt.Sprintf("consumer %s (Tenant %s/%s)", tenants.Items[i].Spec.ClusterID, tenants.Items[i].Namespace, tenants.Items[i].Name))
	}
	for i := range identities.Items {
		found = append(found, fmt.Sprintf("provider %s (Identity %s/%s)",
			identities.Items[i].Spec.ClusterID, identities.Items[i].Namespace, identities.Items[i].Name))
	}
	for i := range slices.Items {
		found = append(found, fmt.Sprintf("ResourceSlice %s/%s", slices.Items[i].Namespace, slices.Items[i].Name))
	}
	for i := range nodes.Items {
		found = append(found, fmt.Sprintf("VirtualNode %s/%s", nodes.Items[i].Namespace, nodes.Items[i].Name))
	}
	for i := range configurations.Items {
		found = append(found, network("Configuration", &configurations.Items[i]))
	}
	for i := range servers.Items {
		found = append(found, network("GatewayServer", &servers.Items[i]))
	}
	for i := range clients.Items {
		found = append(found, network("GatewayClient", &clients.Items[i]))
	}
	return found, nil
}

// network says what is left of the network to a peer.
func network(kind string, object client.Object) string {
	return fmt.Sprintf("network of %s (%s %s/%s)", object.GetLabels()[corev1beta1.RemoteClusterIDLabel], kind, object.GetNamespace(), object.GetName())
}

// verify lists what is left. Without Purge, definitions, tenant namespaces and what is in them are left on purpose.
func verify(ctx context.Context, o Options, report *Report) error {
	return progress.Run(ctx, o.Observer, o.Cluster.Name, "Looking for what is left", func(ctx context.Context, task progress.Task) (string, error) {
		limited, cancel := context.WithTimeout(ctx, settle)
		defer cancel()
		var items []residue.Item
		err := await.Until(limited, task, "everything of Liqo to be gone", func(ctx context.Context) (bool, string, error) {
			var err error
			if items, err = residue.OfLiqo(ctx, o.Cluster, o.Purge); err != nil {
				return false, "", err
			}
			if !o.Purge {
				items = unintended(items)
			}
			if len(items) > 0 {
				return false, items[0].String(), nil
			}
			return true, "", nil
		})
		if len(items) > 0 && failure.CodeOf(err) == failure.Timeout {
			report.Residue = residue.Strings(items)
			return "", failure.New(failure.Problems, "see why with 'kubectl get ... -o yaml', and run the same command again",
				"something of Liqo is left (cluster %s): %s", o.Cluster.Name, strings.Join(report.Residue, ", "))
		}
		return "Nothing of Liqo is left", err
	})
}

// unintended leaves out what stays without Purge: tenant namespaces with their contents, and objects of Liqo's own kinds.
func unintended(items []residue.Item) []residue.Item {
	var left []residue.Item
	for _, item := range items {
		inTenant := strings.HasPrefix(item.Namespace, corev1beta1.TenantNamespacePrefix)
		isTenant := item.Resource == "namespaces"
		own := strings.HasSuffix(item.Resource, ".liqo.io")
		if !inTenant && !isTenant && !own {
			left = append(left, item)
		}
	}
	return left
}
