package target

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	configv1alpha1 "liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/placement"
)

// Names that the chart gives to what commands read.
const (
	// ControllerManager is the name of the controller manager's Deployment and ConfigMap, and its container's name with it.
	ControllerManager = "liqo-controller-manager"
	// NameLabel is what Liqo v1's programs find components by.
	NameLabel = "app.kubernetes.io/name"
	// ComponentLabel tells the chart's parts apart.
	ComponentLabel = "app.kubernetes.io/component"
	// ControllerManagerComponent is the value of ComponentLabel on the controller manager.
	ControllerManagerComponent = "controller-manager"
	// Fabric is the name of the DaemonSet of the nodes' agents, and FabricComponent the value of ComponentLabel on it.
	Fabric          = "liqo-fabric"
	FabricComponent = "fabric"
	// Certificates is the name of the Deployment, and of its account, that keeps the certificates of the webhooks, and CertificatesComponent the
	// value of ComponentLabel on it.
	Certificates          = "liqo-certificates"
	CertificatesComponent = "certificates"
	// PartOfLabel (value Liqo) marks everything of the chart.
	PartOfLabel = "app.kubernetes.io/part-of"
	// Liqo is the value of PartOfLabel, and the name of the Helm release.
	Liqo = "liqo"
)

// Installation is what a cluster has of Liqo.
type Installation struct {
	// ClusterID of the cluster.
	ClusterID string
	// Version is the tag of the controller manager's image; empty if its Deployment is not there.
	Version string
	// Deployment of the controller manager; nil if it is not there.
	Deployment *appsv1.Deployment
	// Config that the controller manager runs with, completed as it does; the zero value if there is none.
	Config configv1alpha1.ControllerManager
}

// UID identifies a cluster whatever it is called: it is that of the namespace kube-system.
func (c *Cluster) UID(ctx context.Context) (types.UID, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: metav1.NamespaceSystem}}
	found, err := c.Get(ctx, namespace)
	if err != nil || !found {
		return "", err
	}
	return namespace.UID, nil
}

// Installed reads what is installed; nil if Liqo is not.
func (c *Cluster) Installed(ctx context.Context) (*Installation, error) {
	id := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.LiqoNamespace, Name: corev1beta1.ClusterIDConfigMap}}
	found, err := c.Get(ctx, id)
	if err != nil || !found {
		return nil, err
	}
	installation := &Installation{ClusterID: id.Data[corev1beta1.ClusterIDKey]}
	deployments := &appsv1.DeploymentList{}
	if err := c.List(ctx, deployments, client.InNamespace(c.LiqoNamespace),
		client.MatchingLabels{PartOfLabel: Liqo, ComponentLabel: ControllerManagerComponent}); err != nil {
		return nil, err
	}
	if len(deployments.Items) == 0 {
		return installation, nil
	}
	installation.Deployment = &deployments.Items[0]
	if containers := installation.Deployment.Spec.Template.Spec.Containers; len(containers) > 0 {
		installation.Version = tag(containers[0].Image)
	}
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: c.LiqoNamespace, Name: installation.Deployment.Name}}
	if found, err := c.Get(ctx, config); err != nil || !found {
		return installation, err
	}
	runs, err := configv1alpha1.Read([]byte(config.Data["config.yaml"]))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", c.Describe(config), err)
	}
	installation.Config = *runs
	return installation, nil
}

// RequireInstalled reaches the cluster and reads what is installed, which has to be something. The cluster is called by its ID
// from then on.
func (c *Cluster) RequireInstalled(ctx context.Context) (*Installation, error) {
	if _, err := c.Reach(ctx); err != nil {
		return nil, err
	}
	installation, err := c.Installed(ctx)
	if err != nil {
		return nil, err
	}
	if installation == nil || installation.ClusterID == "" {
		return nil, failure.Unmet("install it with '"+c.Command("liqoctl install")+"', or say with -n or --remote-namespace where it is",
			"Liqo is not installed in namespace %s (cluster %s)", c.LiqoNamespace, c.Name)
	}
	c.Name = installation.ClusterID
	return installation, nil
}

// Networking tells whether the network module is on.
func (i *Installation) Networking() bool { return i != nil && i.Config.Networking.Enabled }

// HomeNamespaces are the cluster's namespaces that are never offloaded.
func (c *Cluster) HomeNamespaces(installation *Installation) placement.HomeNamespaces {
	return placement.HomeNamespaces{Liqo: c.LiqoNamespace, Storage: installation.Config.Storage.StorageNamespace}
}

// tag of an image reference, or its digest.
func tag(image string) string {
	if name, digest, pinned := strings.Cut(image, "@"); pinned {
		if version := tag(name); version != "" {
			return version
		}
		return digest
	}
	if colon := strings.LastIndex(image, ":"); colon > strings.LastIndex(image, "/") {
		return image[colon+1:]
	}
	return ""
}
