package addon_test

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"liqo.io/liqo/test/lab/addon"
	"liqo.io/liqo/test/lab/golden"
	"liqo.io/liqo/test/lab/spec"
)

func TestObjects(t *testing.T) {
	entrance := spec.Demo(1).Complete().Clusters[0]
	entrance.IngressClass = "lab"
	flannel := spec.Demo(0).Clusters[0]
	flannel.CNI = spec.Flannel
	for name, cluster := range map[string]spec.Cluster{
		"flannel.yaml":   flannel,
		"ingress.yaml":   entrance,
		"real.yaml":      spec.Demo(1).Complete().Clusters[0],
		"simulated.yaml": spec.Demo(0).Clusters[0],
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := addon.Objects(cluster)
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			for _, o := range objects {
				data, err := yaml.Marshal(o.Object)
				if err != nil {
					t.Fatal(err)
				}
				b.WriteString("---\n" + string(data))
			}
			golden.Check(t, name, b.String())
		})
	}
}
