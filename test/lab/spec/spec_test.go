package spec_test

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/test/lab/spec"
)

const valid = `
name: demo
clusters:
- name: rome
  podCIDR: 10.10.0.0/16
  serviceCIDR: 10.11.0.0/16
  nodes:
  - {}
  - {name: big, labels: {size: big}}
  - {kind: simulated, count: 2}
`

const simulatedOnly = `
name: demo
clusters:
- {name: rome, podCIDR: 10.10.0.0/16, serviceCIDR: 10.11.0.0/16, nodes: [{kind: simulated}]}
`

func TestParseCompletesNodes(t *testing.T) {
	lab, err := spec.Parse([]byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	want := []spec.Node{
		{Name: "rome-1", Kind: spec.Real, Count: 1},
		{Name: "big", Kind: spec.Real, Count: 1, Labels: map[string]string{"size": "big"}},
		{Name: "rome-sim-1", Kind: spec.Simulated, Count: 1},
		{Name: "rome-sim-2", Kind: spec.Simulated, Count: 1},
	}
	if diff := cmp.Diff(want, lab.Clusters[0].Nodes); diff != "" {
		t.Errorf("nodes differ (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(lab, lab.Complete(), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })); diff != "" {
		t.Errorf("completing twice differs (-once +twice):\n%s", diff)
	}
}

func TestMistakesAreExplained(t *testing.T) {
	for sentence, c := range map[string]struct{ yaml, want string }{
		"not YAML":                {"{", "parsing the lab's declaration"},
		"unknown field":           {"name: a\nclusterz: []", `unknown field "clusterz"`},
		"no cluster":              {"name: a", "the lab has no cluster: declare at least one"},
		"no name":                 {strings.Replace(valid, "name: demo", "name: ''", 1), `lab name "" is not valid`},
		"capital letters":         {strings.Replace(valid, "name: demo", "name: Demo", 1), "lower-case letters"},
		"range without bits":      {strings.Replace(valid, "10.10.0.0/16", "10.10.0.0", 1), "no '/'"},
		"range with host bits":    {strings.Replace(valid, "10.10.0.0/16", "10.10.0.1/16", 1), "write 10.10.0.0/16"},
		"IPv6 range":              {strings.Replace(valid, "10.10.0.0/16", "fd00::/48", 1), "is not IPv4"},
		"tiny pod range":          {strings.Replace(valid, "10.10.0.0/16", "10.10.0.0/28", 1), "use /8 to /24"},
		"missing range":           {strings.Replace(valid, "  podCIDR: 10.10.0.0/16\n", "", 1), "podCIDR is missing"},
		"pods and services meet":  {strings.Replace(valid, "10.11.0.0/16", "10.10.128.0/17", 1), "overlap: choose ranges that do not"},
		"unknown kind of node":    {strings.Replace(valid, "kind: simulated", "kind: fake", 1), "use real or simulated"},
		"name for several nodes":  {strings.Replace(valid, "{name: big,", "{name: big, count: 3,", 1), "leave the name out"},
		"same node twice":         {strings.Replace(valid, "{name: big,", "{name: rome-1,", 1), `two nodes are called "rome-1"`},
		"unknown Pod Security":    {valid + "  apiServer: {podSecurity: strict}\n", "use privileged, baseline or restricted"},
		"admission that pulls":    {valid + "  apiServer: {enableAdmission: [AlwaysPullImages]}\n", "needs a registry and the lab has none"},
		"unusable ingress class":  {valid + "  ingressClass: A_B\n", `ingressClass "A_B" is not valid`},
		"ingress without pods":    {valid + "  ingressClass: lab\n  withoutScheduler: true\n", "because the ingress controller is a pod"},
		"port out of range":       {valid + "  apiServer: {port: 70000}\n", "port 70000 is not a port"},
		"same cluster twice":      {valid + "- {name: rome, podCIDR: 10.12.0.0/16, serviceCIDR: 10.13.0.0/16}\n", `two clusters are called "rome"`},
		"flat with equal ranges":  {"flat: true" + valid + "- {name: milan, podCIDR: 10.10.0.0/16, serviceCIDR: 10.13.0.0/16}\n", "flat mode cannot route the pods of rome (10.10.0.0/16) and milan (10.10.0.0/16) to each other because their ranges overlap"},
		"Services without pods":   {"flatServices: true" + valid, "flatServices needs flat mode"},
		"Services with one range": {"flat: true\nflatServices: true" + valid + "- {name: milan, podCIDR: 10.12.0.0/16, serviceCIDR: 10.11.0.0/16}\n", "cannot route the Services of milan (10.11.0.0/16)"},
		"Services among pods":     {"flat: true\nflatServices: true" + valid + "- {name: milan, podCIDR: 10.12.0.0/16, serviceCIDR: 10.10.0.0/16}\n", "overlaps with one of rome"},
		"unknown pod network":     {valid + "  cni: cilium\n", `cni "cilium" is unknown`},
		"unknown proxy mode":      {valid + "  proxyMode: ipvs\n", `proxyMode "ipvs" is unknown`},
		"flannel without ranges":  {valid + "  cni: flannel\n  withoutNodeCIDRs: true\n", "flannel reads the ranges of pods in Nodes"},
		"flat with flannel":       {"flat: true" + valid + "  cni: flannel\n", "cannot route pods of flannel"},
		"routed and flat":         {"routed: true\nflat: true" + valid, "routed and flat mode exclude each other"},
		"routed without a node":   {"routed: true\n" + simulatedOnly, "routed mode needs real nodes"},
		"many routed clusters":    {"routed: true" + valid + strings.Repeat("- {name: milan, podCIDR: 10.10.0.0/16, serviceCIDR: 10.11.0.0/16}\n", 7), "the lab has 8 clusters: at most 7 fit"},
		"many routed nodes":       {"routed: true" + strings.Replace(valid, "{}", "{count: 28}", 1), "cluster rome: 29 real nodes: at most 28 fit"},
		"too many nodes":          {strings.Replace(valid, "{}", "{count: 70}", 1), "at most 64 fit"},
		"more nodes than subnets": {strings.Replace(strings.Replace(valid, "10.10.0.0/16", "10.10.0.0/24", 1), "{}", "{count: 20}", 1), "too small for 21 nodes"},
	} {
		t.Run(sentence, func(t *testing.T) {
			_, err := spec.Parse([]byte(c.yaml))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error = %v, want one with %q", err, c.want)
			}
		})
	}
}

func TestOverlappingRangesAreFineWithoutFlatMode(t *testing.T) {
	for _, mode := range []string{"", "routed: true"} {
		if _, err := spec.Parse([]byte(mode + valid + "- {name: milan, podCIDR: 10.10.0.0/16, serviceCIDR: 10.11.0.0/16}\n")); err != nil {
			t.Errorf("%s: error = %v, want none", mode, err)
		}
	}
}

func TestDemoIsValid(t *testing.T) {
	for nodes := range 4 {
		if err := spec.Demo(nodes).Complete().Validate(); err != nil {
			t.Errorf("%d nodes: %v", nodes, err)
		}
	}
	if !spec.Demo(0).Simulated() || spec.Demo(1).Complete().Simulated() {
		t.Error("a lab is simulated only when it has no real node")
	}
}

func TestAddresses(t *testing.T) {
	c := spec.Cluster{PodCIDR: netip.MustParsePrefix("10.10.0.0/24"), ServiceCIDR: netip.MustParsePrefix("10.11.0.0/16")}
	got := []string{c.NodeCIDR(0).String(), c.NodeCIDR(3).String(), c.KubernetesAddress().String(), c.DNSAddress().String()}
	if diff := cmp.Diff([]string{"10.10.0.0/28", "10.10.0.48/28", "10.11.0.1", "10.11.0.10"}, got); diff != "" {
		t.Errorf("addresses differ (-want +got):\n%s", diff)
	}
}
