package install

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/version"
)

// inspect renders the chart before anything is applied. What the controller manager would refuse is refused here, in its words, and not by a
// pod that starts again and again; what the chart tells of values is told.
func (p *Plan) inspect() (manifests string, err error) {
	o := &p.options
	rendered, err := p.chart.Render(target.Liqo, o.Cluster.LiqoNamespace, p.Values)
	if err != nil {
		return "", err
	}
	var configuration corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(rendered["liqo/templates/config.yaml"]), &configuration); err != nil {
		return "", fmt.Errorf("reading the configuration that the chart makes: %w", err)
	}
	if _, err := v1alpha1.Parse([]byte(configuration.Data["config.yaml"])); err != nil {
		// A later version may know what this one does not.
		if _, app := p.chart.Version(); app != version.Version {
			return "", fmt.Errorf("%w (the chart installs version %s, and this liqoctl is of version %s: if it is the chart that says so, "+
				"use the liqoctl of that version)", err, app, version.Version)
		}
		return "", err
	}
	if points := helm.Notes(rendered); len(points) > 0 {
		o.Observer.Note(progress.Warning, o.Cluster.Name, "values of Liqo v1 that are otherwise here: "+strings.Join(points, " | "))
	}
	return helm.Manifests(rendered), nil
}
