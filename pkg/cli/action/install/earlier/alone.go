package earlier

import (
	"cmp"
	"context"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/target"
)

const (
	// migration is the page that a cluster with Liqo v1 is sent to.
	migration = "docs/guide/migration.md"
	// afterV1 is the way out of whatever of Liqo v1 is in the way.
	afterV1 = "end its peerings and uninstall it with the liqoctl of Liqo v1, then run the same command again (" + migration + ")"
)

// ofV1Alone are the components that Liqo v1 has and this chart does not.
var ofV1Alone = []string{"crd-replicator", "webhook", "ipam", "metric-agent", "proxy"}

// RequireAlone refuses to install where Liqo v1 is, or this Liqo in another namespace: two controllers would work on each object. present is the
// release that is to be upgraded, nil if there is none.
func RequireAlone(ctx context.Context, cluster *target.Cluster, present *helm.Release) error {
	if present != nil && !makesOurs(present.Manifest) {
		return failure.Unmet(afterV1, "Helm release %s in namespace %s is one of Liqo v1 (%s), which this Liqo does not upgrade",
			present.Name, present.Namespace, present.AppVersion)
	}
	if elsewhere, err := releaseElsewhere(ctx, cluster); err != nil || elsewhere != "" {
		return cmp.Or(err, failure.Unmet("install into that one with -n "+elsewhere+", or uninstall it first ("+migration+" if it is Liqo v1)",
			"there is a Helm release %s in namespace %s, and a cluster has one Liqo", target.Liqo, elsewhere))
	}
	deployments, daemonSets := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}
	for _, list := range []client.ObjectList{deployments, daemonSets} {
		if err := cluster.List(ctx, list); err != nil {
			return err
		}
	}
	for i := range deployments.Items {
		if d := &deployments.Items[i]; ofV1(d, &d.Spec.Template) {
			return failure.Unmet(afterV1, "%s is of Liqo v1, and two controllers must not work on the same objects", cluster.Describe(d))
		}
	}
	for i := range daemonSets.Items {
		if d := &daemonSets.Items[i]; ofV1(d, &d.Spec.Template) {
			return failure.Unmet(afterV1, "%s is of Liqo v1, and two agents must not work on the same nodes", cluster.Describe(d))
		}
	}
	if present != nil {
		return nil
	}
	return requireOwnKubelets(ctx, cluster)
}

// releaseElsewhere is another namespace that has a Helm release of our name; empty if there is none. Only names are read of the records.
func releaseElsewhere(ctx context.Context, cluster *target.Cluster) (string, error) {
	records, err := releases(ctx, cluster, "", target.Liqo)
	if err != nil {
		return "", err
	}
	for i := range records {
		if records[i].Namespace != cluster.LiqoNamespace {
			return records[i].Namespace, nil
		}
	}
	return "", nil
}

// releases are the records of a Helm release in a namespace, or in all of them; those that 'helm uninstall --keep-history' keeps are none.
func releases(ctx context.Context, cluster *target.Cluster, namespace, name string) ([]metav1.PartialObjectMetadata, error) {
	records := &metav1.PartialObjectMetadataList{}
	records.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	err := cluster.List(ctx, records, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm", "name": name})
	return slices.DeleteFunc(records.Items, func(record metav1.PartialObjectMetadata) bool {
		return record.Labels["status"] == "uninstalled" || record.Labels["status"] == "superseded"
	}), err
}

// requireOwnKubelets refuses a VirtualNode that Liqo v1 left: v1 writes the whole Deployment of its virtual kubelet into it, and the controller
// manager would run that.
func requireOwnKubelets(ctx context.Context, cluster *target.Cluster) error {
	nodes := &offloadingv1beta1.VirtualNodeList{}
	if err := cluster.List(ctx, nodes); err != nil {
		return err
	}
	for i := range nodes.Items {
		if nodes.Items[i].Spec.Template != nil {
			return failure.Unmet("delete it, and peer again once Liqo is installed ("+migration+")",
				"%s was left by an earlier Liqo with a virtual kubelet of its own, which would run again", cluster.Describe(&nodes.Items[i]))
		}
	}
	return nil
}

// ofV1 tells the Deployments and DaemonSets of Liqo v1 from ours, which partly have the same names, labels and images. A program of ours has an
// argument that none of v1's takes, and what our controller manager makes says what it was rendered to.
func ofV1(object client.Object, pod *corev1.PodTemplateSpec) bool {
	made := pod.Labels[offloadingv1beta1.ComponentLabel] == offloadingv1beta1.VirtualKubeletComponent ||
		pod.Labels[networkingv1beta1.GatewayComponentLabel] == networkingv1beta1.GatewayComponent
	if made {
		return object.GetAnnotations()[offloadingv1beta1.RenderedHashAnnotation] == ""
	}
	labels := object.GetLabels()
	if labels[target.PartOfLabel] != target.Liqo {
		return false
	}
	component := strings.TrimPrefix(object.GetName(), target.Liqo+"-")
	switch cmp.Or(labels[target.ComponentLabel], labels[target.NameLabel]) {
	case target.ControllerManagerComponent:
		return !given(&pod.Spec, "--config=")
	case target.FabricComponent:
		return !given(&pod.Spec, "--overlay-port=")
	default:
		return slices.ContainsFunc(ofV1Alone, func(one string) bool {
			return one == component || one == labels[target.NameLabel] || one == labels[target.ComponentLabel]
		})
	}
}

// given tells whether a program in a pod is given an argument that begins so.
func given(pod *corev1.PodSpec, prefix string) bool {
	return slices.ContainsFunc(pod.Containers, func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, prefix) })
	})
}

// makesOurs tells whether manifests make this Liqo's controller manager. The release and the chart of Liqo v1 have the same names.
func makesOurs(manifests string) bool {
	return slices.ContainsFunc(helm.Documents(manifests, "Deployment"), func(text string) bool {
		deployment := &appsv1.Deployment{}
		return yaml.Unmarshal([]byte(text), deployment) == nil &&
			deployment.Labels[target.ComponentLabel] == target.ControllerManagerComponent && !ofV1(deployment, &deployment.Spec.Template)
	})
}
