package diagnosis

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/target"
)

// Lack is something of an installation that is not there, or not as it should be.
type Lack struct {
	// Object by kind and name.
	Object string
	// Why it is not, in a sentence.
	Why string
}

// String is a lack in one line.
func (l Lack) String() string { return l.Object + ": " + l.Why }

// Installation says what an installation lacks: owners of pods that should be there, and what those that are there lack. Pods alone say nothing
// of an owner that was deleted. closely looks at the pods too, and at their Events.
func Installation(ctx context.Context, cluster *target.Cluster, installation *target.Installation, closely bool) ([]Lack, error) {
	deployments, sets := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}
	for _, list := range []client.ObjectList{deployments, sets} {
		if err := cluster.List(ctx, list, client.InNamespace(cluster.LiqoNamespace), client.MatchingLabels{target.PartOfLabel: target.Liqo}); err != nil {
			return nil, err
		}
	}
	const gone = "it is not there; 'liqoctl install' brings it back"
	var all []Lack
	deployed := func(component string) bool {
		return slices.ContainsFunc(deployments.Items, func(d appsv1.Deployment) bool { return d.Labels[target.ComponentLabel] == component })
	}
	if !deployed(target.ControllerManagerComponent) {
		all = append(all, Lack{"Deployment " + target.ControllerManager, gone})
	}
	if !deployed(target.CertificatesComponent) {
		// A release that has no such Deployment has no account for it either.
		wanted, err := cluster.Get(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.LiqoNamespace, Name: target.Certificates}})
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, err
		}
		if wanted {
			all = append(all, Lack{"Deployment " + target.Certificates, gone})
		}
	}
	isFabric := func(s appsv1.DaemonSet) bool { return s.Labels[target.ComponentLabel] == target.FabricComponent }
	if installation.Networking() && !slices.ContainsFunc(sets.Items, isFabric) {
		all = append(all, Lack{"DaemonSet " + target.Fabric, gone})
	}
	owners, err := lacking(ctx, cluster, deployments.Items, sets.Items, closely)
	if err != nil {
		return nil, err
	}
	all = append(all, owners...)
	return slices.DeleteFunc(all, func(l Lack) bool { return l.Why == "" }), nil
}

// lacking says of each owner of pods what it lacks; nothing of one that lacks nothing.
func lacking(ctx context.Context, cluster *target.Cluster, deployments []appsv1.Deployment, sets []appsv1.DaemonSet, closely bool) (all []Lack, err error) {
	for i := range deployments {
		why := WhyNotAvailable(&deployments[i])
		if why == stillEnding {
			why = "" // its new pods do its work
		}
		if closely {
			why, err = Deployment(ctx, cluster, &deployments[i])
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Lack{"Deployment " + deployments[i].Name, why})
	}
	for i := range sets {
		why := WhyNotEverywhere(&sets[i], 0)
		if closely {
			why, err = DaemonSet(ctx, cluster, &sets[i])
		}
		if err != nil {
			return nil, err
		}
		all = append(all, Lack{"DaemonSet " + sets[i].Name, why})
	}
	return all, nil
}
