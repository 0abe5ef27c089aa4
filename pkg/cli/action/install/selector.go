package install

import (
	"cmp"
	"context"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/action/install/earlier"
	"liqo.io/liqo/pkg/cli/target"
)

// unselect removes what selects its pods by another name than the chart's, as earlier versions and another nameOverride did: a selector cannot be
// changed, so Helm makes it anew. What Helm did not make for this very release is left alone, whatever its labels say.
func (p *Plan) unselect(ctx context.Context) error {
	cluster := p.options.Cluster
	deployments, daemonSets := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}
	for _, list := range []client.ObjectList{deployments, daemonSets} {
		if err := cluster.List(ctx, list, client.InNamespace(cluster.LiqoNamespace), client.MatchingLabels{target.PartOfLabel: target.Liqo}); err != nil {
			return err
		}
	}
	selectors := map[client.Object]*metav1.LabelSelector{}
	for i := range deployments.Items {
		selectors[&deployments.Items[i]] = deployments.Items[i].Spec.Selector
	}
	for i := range daemonSets.Items {
		selectors[&daemonSets.Items[i]] = daemonSets.Items[i].Spec.Selector
	}
	override, _ := p.Values["nameOverride"].(string)
	for object, selector := range selectors {
		component := object.GetLabels()[target.ComponentLabel]
		made := object.GetAnnotations()[earlier.ReleaseName] == target.Liqo && component != ""
		if !made || selector == nil || selector.MatchLabels[target.NameLabel] == cmp.Or(override, component) {
			continue
		}
		if err := cluster.Remove(ctx, object); err != nil {
			return err
		}
	}
	return nil
}
