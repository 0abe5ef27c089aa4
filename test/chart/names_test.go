package chart

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

// Programs of Liqo v1 find the cluster's ID and the components by their names in labels, selectors included; nameOverride replaces them all.
func TestComponentsAreFoundByName(t *testing.T) {
	for _, override := range []string{"", "mine"} {
		rendered := documents(t, "v1.36.0", network+"\nnameOverride: '"+override+"'")
		var id corev1.ConfigMap
		var manager appsv1.Deployment
		var service corev1.Service
		var fabric appsv1.DaemonSet
		for object, name := range map[any]string{&id: "ConfigMap liqo-clusterid-configmap", &manager: "Deployment liqo-controller-manager",
			&service: "Service liqo-controller-manager", &fabric: "DaemonSet liqo-fabric"} {
			if err := yaml.Unmarshal([]byte(rendered[name]), object); err != nil {
				t.Fatal(err)
			}
		}
		named := func(component string) labels.Set {
			set := labels.Set{"app.kubernetes.io/name": component, "app.kubernetes.io/component": component, "app.kubernetes.io/part-of": "liqo"}
			if override != "" {
				set["app.kubernetes.io/name"] = override
			}
			return set
		}
		selects := func(selector map[string]string, pod map[string]string) bool {
			return selector["app.kubernetes.io/name"] == pod["app.kubernetes.io/name"] && labels.SelectorFromSet(selector).Matches(labels.Set(pod))
		}
		for what, has := range map[string]map[string]string{
			"clusterid-configmap": id.Labels, "controller-manager": manager.Labels, "fabric": fabric.Labels,
		} {
			if !labels.SelectorFromSet(named(what)).Matches(labels.Set(has)) {
				t.Errorf("%s is labelled %v", what, has)
			}
		}
		if !selects(manager.Spec.Selector.MatchLabels, manager.Spec.Template.Labels) || !selects(service.Spec.Selector, manager.Spec.Template.Labels) ||
			!selects(fabric.Spec.Selector.MatchLabels, fabric.Spec.Template.Labels) {
			t.Errorf("selectors %v, %v and %v do not select their pods", manager.Spec.Selector, service.Spec.Selector, fabric.Spec.Selector)
		}
	}
}
