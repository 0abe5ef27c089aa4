package placement

import "testing"

func TestWhyNeverOffloaded(t *testing.T) {
	own := HomeNamespaces{Liqo: "mesh", Storage: "volumes"}
	keys := "it is the tenant namespace of a peering, and holds its private keys and kubeconfigs"
	for name, test := range map[string]struct {
		home      HomeNamespaces
		namespace string
		labels    map[string]string
		want      string
	}{
		"an application's":                        {own, "shop", map[string]string{"team": "shop"}, ""},
		"the default namespace":                   {own, "default", nil, ""},
		"one that is called after Liqo":           {own, "liqo-demo", nil, ""},
		"one that Liqo could run in elsewhere":    {own, "liqo", nil, ""},
		"the default of volumes, where it is not": {own, "liqo-storage", nil, ""},
		"Liqo's own":                              {own, "mesh", nil, "Liqo itself runs in it, with its private keys"},
		"that of volumes":                         {own, "volumes", nil, "it holds the volumes of other namespaces"},
		"that of volumes, by default":             {HomeNamespaces{}, "liqo-storage", nil, "it holds the volumes of other namespaces"},
		"Kubernetes' own":                         {own, "kube-system", nil, "it is reserved for Kubernetes itself"},
		"a tenant namespace, by its name":         {own, "liqo-tenant-milan", nil, keys},
		"a tenant namespace, by its label":        {own, "milan", map[string]string{"liqo.io/tenant-namespace": "true"}, keys},
		"one that was a tenant namespace":         {own, "milan", map[string]string{"liqo.io/tenant-namespace": "false"}, ""},
		"no name, Liqo's unknown":                 {HomeNamespaces{}, "", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			want := test.want
			if want != "" {
				want = "namespace " + test.namespace + " can never be offloaded: " + want
			}
			if got := test.home.WhyNeverOffloaded(test.namespace, test.labels); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
