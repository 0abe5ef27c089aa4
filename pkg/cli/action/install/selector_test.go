package install

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/action/install/earlier"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/target"
)

// What selects its pods by another name is made anew, because a selector cannot be changed; nothing else is removed.
func TestSelectorsThatChangeAreMadeAnew(t *testing.T) {
	for name, test := range map[string]struct {
		selects, override string
		removed           bool
	}{
		"an earlier version": {"liqo", "", true},
		"the same":           {target.ControllerManagerComponent, "", false},
		"another override":   {target.ControllerManagerComponent, "mine", true},
		"the same override":  {"mine", "mine", false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := fixture.Installed("rome", "", true)
			for _, object := range objects {
				object.SetAnnotations(map[string]string{earlier.ReleaseName: target.Liqo})
				switch o := object.(type) {
				case *appsv1.Deployment:
					o.Spec.Selector.MatchLabels[target.NameLabel] = test.selects
				case *appsv1.DaemonSet:
					o.Spec.Selector.MatchLabels[target.NameLabel] = test.override
					if test.override == "" {
						o.Spec.Selector.MatchLabels[target.NameLabel] = target.FabricComponent
					}
				}
			}
			other := &appsv1.Deployment{}
			other.Namespace, other.Name = "liqo", "somebody-elses"
			other.Labels = map[string]string{target.PartOfLabel: target.Liqo, target.ComponentLabel: "add-on"}
			other.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "add-on"}}
			cluster := fixture.New(t, fixture.Options{Name: "rome", Objects: append(objects, other)})
			p := &Plan{Values: map[string]any{"nameOverride": test.override}, options: Options{Cluster: cluster.Cluster}}
			if err := p.unselect(t.Context()); err != nil {
				t.Fatal(err)
			}
			deployments, daemonSets := &appsv1.DeploymentList{}, &appsv1.DaemonSetList{}
			for _, list := range []client.ObjectList{deployments, daemonSets} {
				if err := cluster.Client.List(t.Context(), list); err != nil {
					t.Fatal(err)
				}
			}
			var left []string
			for i := range deployments.Items {
				left = append(left, deployments.Items[i].Name)
			}
			want := []string{target.ControllerManager, "somebody-elses"}
			if test.removed {
				want = want[1:]
			}
			if slices.Sort(left); !slices.Equal(left, want) || len(daemonSets.Items) != 1 {
				t.Errorf("left are %v and %d DaemonSets", left, len(daemonSets.Items))
			}
		})
	}
}
