package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"liqo.io/liqo/charts"
	"liqo.io/liqo/pkg/cli"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/output"
	"liqo.io/liqo/pkg/cli/session"
)

var update = flag.Bool("update", false, "write the golden files")

// golden compares a text with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (write it with -update if the change is wanted):\n%s", file, diff)
	}
}

// kubeconfig writes a kubeconfig whose context "rome" leads to a port where nobody listens.
func kubeconfig(t *testing.T, server string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	content := `apiVersion: v1
kind: Config
current-context: rome
clusters:
- {name: rome, cluster: {server: "` + server + `"}}
users:
- {name: rome, user: {token: secret-token}}
contexts:
- {name: rome, context: {cluster: rome, user: rome}}
- {name: milan, context: {cluster: rome, user: rome}}
`
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

type result struct {
	code     failure.Code
	out, err string
}

// run executes a command line without a terminal, with nothing of the caller's environment.
func run(t *testing.T, environment map[string]string, stdin string, args ...string) result {
	t.Helper()
	var out, errOut bytes.Buffer
	streams := genericiooptions.IOStreams{In: strings.NewReader(stdin), Out: &out, ErrOut: &errOut}
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	t.Setenv("HOME", t.TempDir())
	code := cli.Run(context.Background(), append([]string{"liqoctl"}, args...), cli.Program{
		Streams: streams, Environment: func(name string) string { return environment[name] }, Chart: charts.Liqo(),
	})
	return result{code, out.String(), errOut.String()}
}

const nobody = "https://127.0.0.1:1"

func TestBadInputIsRefusedWithAClearError(t *testing.T) {
	file := kubeconfig(t, nobody)
	broken := filepath.Join(t.TempDir(), "broken")
	values := filepath.Join(t.TempDir(), "values.yaml")
	for path, content := range map[string]string{broken: "apiVersion: [", values: "ipam: {podCIDRs: [10.0.0.0/16]\n"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const usage, unmet = failure.Usage, failure.Precondition
	local := []string{"--kubeconfig", file}
	cases := map[string]struct {
		args []string
		code failure.Code
		want string
	}{
		"an unknown command":                   {[]string{"foo"}, usage, "ERRO unknown command \"foo\" for \"liqoctl\"\n     Next: liqoctl --help\n"},
		"an unknown flag":                      {[]string{"peer", "--foo"}, usage, "ERRO unknown flag: --foo\n     Next: liqoctl peer --help\n"},
		"an argument where none is taken":      {[]string{"peer", "milan"}, usage, "ERRO unknown command \"milan\" for \"liqoctl peer\"\n     Next: liqoctl peer --help\n"},
		"a flag without its value":             {[]string{"install", "--cluster-id"}, usage, "ERRO flag needs an argument: --cluster-id\n     Next: liqoctl install --help\n"},
		"a duration that is none":              {[]string{"peer", "--timeout", "soon"}, usage, "ERRO invalid argument \"soon\" for \"--timeout\" flag: time: invalid duration \"soon\"\n     Next: liqoctl peer --help\n"},
		"a timeout of nothing":                 {[]string{"peer", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"a negative timeout":                   {[]string{"unoffload", "namespace", "a", "--timeout=-1s"}, usage, "ERRO --timeout -1s is not positive\n     Next: give a duration such as 5m\n"},
		"a truth value that is none":           {[]string{"peer", "--create-virtual-node=perhaps"}, usage, "ERRO invalid argument \"perhaps\" for \"--create-virtual-node\" flag: strconv.ParseBool: parsing \"perhaps\": invalid syntax\n     Next: liqoctl peer --help\n"},
		"an unknown colour mode":               {[]string{"version", "--client", "--color", "red"}, usage, "ERRO --color red is unknown\n     Next: choose one of auto, always, never\n"},
		"an unknown output format":             {[]string{"info", "-o", "xml"}, usage, "ERRO the output format \"xml\" is unknown\n     Next: choose one of json, yaml\n"},
		"global labels that are no pairs":      {[]string{"info", "--global-labels", "a"}, usage, "ERRO invalid argument \"a\" for \"--global-labels\" flag: a must be formatted as key=value\n     Next: liqoctl info --help\n"},
		"no remote cluster":                    {append([]string{"peer"}, local...), usage, "ERRO the remote cluster is missing\n     Next: name it with --remote-kubeconfig or --remote-context\n"},
		"no remote cluster to unpeer from":     {append([]string{"unpeer"}, local...), usage, "ERRO the remote cluster is missing\n     Next: name it with --remote-kubeconfig or --remote-context\n"},
		"no remote cluster to authenticate at": {append([]string{"authenticate"}, local...), usage, "ERRO the remote cluster is missing\n     Next: name it with --remote-kubeconfig or --remote-context\n"},
		"an unknown type of Service":           {[]string{"peer", "--gw-server-service-type", "loadbalancer"}, usage, "ERRO --gw-server-service-type loadbalancer is unknown\n     Next: choose one of LoadBalancer, NodePort, ClusterIP\n"},
		"an unknown side":                      {[]string{"peer", "--gw-server-service-location", "here"}, usage, "ERRO --gw-server-service-location here is unknown\n     Next: choose one of Provider, Consumer\n"},
		"another kind of template":             {[]string{"network", "connect", "--gw-client-type", "v1/pods"}, usage, "ERRO --gw-client-type v1/pods is unknown\n     Next: choose one of networking.liqo.io/v1beta1/wggatewayclienttemplates\n"},
		"a port that is none":                  {[]string{"network", "connect", "--gw-server-service-port", "0"}, usage, "ERRO --gw-server-service-port 0 is not in 1 to 65535\n     Next: give one in between\n"},
		"packets that are too small":           {[]string{"network", "connect", "--mtu", "500"}, usage, "ERRO --mtu 500 is not in 576 to 65535\n     Next: give one in between\n"},
		"a load balancer's address of none":    {[]string{"peer", "--gw-server-service-loadbalancerip", "x", "--gw-server-service-type", "NodePort"}, usage, "ERRO --gw-server-service-loadbalancerip x is no address\n     Next: give an address such as 192.0.2.1\n"},
		"an address without a load balancer":   {[]string{"peer", "--gw-server-service-loadbalancerip", "192.0.2.1", "--gw-server-service-type", "NodePort"}, usage, "ERRO --gw-server-service-loadbalancerip has no meaning with the type NodePort\n     Next: leave it out\n"},
		"a node port without nodes":            {[]string{"peer", "--gw-server-service-nodeport", "30000", "--gw-server-service-type", "ClusterIP"}, usage, "ERRO --gw-server-service-nodeport has no meaning with the type ClusterIP\n     Next: leave it out\n"},
		"a server that is nowhere":             {[]string{"peer", "--gw-client-address", "a b"}, usage, "ERRO --gw-client-address a b is neither\n     Next: give an address such as 192.0.2.1, or a DNS name\n"},
		"the network without saying what":      {[]string{"network"}, usage, "ERRO say what to do with the network\n     Next: liqoctl network connect|diff|disconnect|init|reset|status|test|trace\n"},
		"a switch before the sub-command":      {[]string{"network", "--wait", "connect", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"v1's flags before the sub-command":    {[]string{"network", "--timeout", "0s", "--skip-validation", "-n", "x", "--remote-liqo-namespace=y", "--wait", "reset"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"a flag of another sub-command":        {[]string{"network", "--wait", "status"}, usage, "ERRO unknown flag: --wait\n     Next: liqoctl network status --help\n"},
		"a time before the sub-command":        {[]string{"test", "--timeout", "0s", "network"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"an unknown kind of nodes":             {[]string{"test", "network", "--np-nodes", "some"}, usage, "ERRO --np-nodes some is unknown\n     Next: choose one of all, workers, control-planes\n"},
		"a command that only v1 has":           {[]string{"generate", "tenant", "--x"}, usage, "ERRO unknown command \"generate\" for \"liqoctl\"\n     Next: Liqo v1 has it, and here it is not there yet: peer, authenticate and network connect do these steps, and kubectl shows and deletes the objects\n"},
		"a command that is misspelt":           {[]string{"network", "statsu", "--x"}, usage, "ERRO unknown command \"statsu\" for \"liqoctl network\"\n     Next: did you mean liqoctl network status?\n"},
		"a command like no other":              {[]string{"fly", "--x"}, usage, "ERRO unknown command \"fly\" for \"liqoctl\"\n     Next: liqoctl --help\n"},
		"a flag that is misspelt":              {[]string{"peer", "--remote-ctx", "milan"}, usage, "ERRO unknown flag: --remote-ctx\n     Next: did you mean --remote-context? See liqoctl peer --help\n"},
		"a letter that is no flag":             {[]string{"peer", "-x"}, usage, "ERRO unknown shorthand flag: 'x' in -x\n     Next: liqoctl peer --help\n"},
		"flags of v1's test in ours":           {[]string{"network", "test", "--basic"}, usage, "ERRO unknown flag: --basic\n     Next: liqoctl network test --help\n"},
		"no remote network":                    {append([]string{"network", "connect"}, local...), usage, "ERRO the remote cluster is missing\n     Next: name it with --remote-kubeconfig or --remote-context\n"},
		"no time to connect":                   {[]string{"network", "connect", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"a quantity that is none":              {[]string{"peer", "--cpu", "many"}, usage, "ERRO --cpu many is not a quantity\n     Next: write it as Kubernetes does, for example 2, 500m or 4Gi\n"},
		"a negative quantity":                  {[]string{"peer", "--memory=-1Gi"}, usage, "ERRO --memory -1Gi is negative\n     Next: give a positive one\n"},
		"a pod and a half":                     {[]string{"peer", "--pods", "1.5"}, usage, "ERRO --pods 1.5 is no whole number\n     Next: pods and devices are counted: give a whole one\n"},
		"half a device":                        {[]string{"peer", "--resource", "nvidia.com/gpu=500m"}, usage, "ERRO --resource nvidia.com/gpu 500m is no whole number\n     Next: pods and devices are counted: give a whole one\n"},
		"another resource without a quantity":  {[]string{"peer", "--resource", "nvidia.com/gpu="}, usage, "ERRO --resource nvidia.com/gpu has no quantity\n     Next: write it as --resource NAME=QUANTITY\n"},
		"a resource asked for twice":           {[]string{"peer", "--cpu", "1", "--resource", "cpu=2"}, usage, "ERRO --resource cpu and --cpu ask for the same\n     Next: give it once\n"},
		"resources without a slice":            {[]string{"peer", "--cpu", "1", "--create-resource-slice=false"}, usage, "ERRO resources cannot be asked for without a resource slice\n     Next: leave --create-resource-slice=false out\n"},
		"a proxy that is no URL":               {[]string{"peer", "--proxy-url", "proxy"}, usage, "ERRO --proxy-url proxy: the URL cannot be parsed: it must look like http://host:port\n     Next: give it as http://HOST:PORT\n"},
		"force without a cluster ID":           {[]string{"unpeer", "--force"}, usage, "ERRO the cluster ID of the dead peer is missing\n     Next: liqoctl unpeer --force CLUSTER_ID\n"},
		"force with a remote cluster":          {[]string{"unpeer", "--force", "milan", "--remote-context", "milan"}, usage, "ERRO --force needs no remote cluster\n     Next: leave the --remote- flags out, or leave --force out if both clusters answer\n"},
		"a cluster ID without force":           {[]string{"unpeer", "milan"}, usage, "ERRO a cluster ID (milan) is only taken with --force\n     Next: name the other cluster with --remote-kubeconfig or --remote-context, or add --force if it is dead\n"},
		"force with a wrong cluster ID":        {[]string{"force", "unpeer", "Milan"}, usage, "ERRO the cluster ID \"Milan\" is not valid: use lower-case letters, digits and '-', and begin and end with a letter or digit, for example \"rome-1\"\n     Next: list the peers with 'liqoctl info'\n"},
		"force without saying what":            {[]string{"force"}, usage, "ERRO say what to force\n     Next: liqoctl force unpeer CLUSTER_ID\n"},
		"cordon without saying what":           {[]string{"cordon"}, usage, "ERRO say what to cordon\n     Next: liqoctl cordon tenant|resourceslice NAME\n"},
		"cordon what cannot be":                {[]string{"cordon", "node", "a"}, usage, "ERRO unknown command \"node\" for \"liqoctl cordon\"\n     Next: liqoctl cordon --help\n"},
		"cordon nobody":                        {[]string{"cordon", "tenant"}, usage, "ERRO accepts 1 arg(s), received 0\n     Next: liqoctl cordon tenant --help\n"},
		"no time to drain":                     {[]string{"drain", "tenant", "a", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"an alias of v1 for tenants":           {[]string{"uncordon", "tenants", "a", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"an alias of v1 for slices":            {[]string{"cordon", "rs", "a", "--remote-cluster-id", "rome", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"create without saying what":           {[]string{"create"}, usage, "ERRO say what to create\n     Next: liqoctl create resourceslice|virtualnode NAME\n"},
		"create what only v1 does":             {[]string{"create", "gws", "a", "--port", "1"}, usage, "ERRO unknown command \"gws\" for \"liqoctl create\"\n     Next: Liqo v1 has it, and here it is not there yet: peer, authenticate and network connect do these steps, and kubectl shows and deletes the objects\n"},
		"a slice for no provider":              {[]string{"create", "resourceslice", "a"}, usage, "ERRO the provider is missing\n     Next: name it with --remote-cluster-id\n"},
		"a slice without a name":               {[]string{"create", "rs", "--remote-cluster-id", "milan"}, usage, "ERRO accepts 1 arg(s), received 0\n     Next: liqoctl create resourceslice --help\n"},
		"a slice of a name that is none":       {[]string{"create", "resourceslice", "Gpu_1", "--remote-cluster-id", "milan"}, usage, "ERRO \"Gpu_1\" cannot name a virtual node\n     Next: use at most 63 lower-case letters, digits, '-' and '.'\n"},
		"a slice of a name that is too long":   {[]string{"create", "resourceslice", strings.Repeat("a", 64), "--remote-cluster-id", "milan"}, usage, "ERRO \"" + strings.Repeat("a", 64) + "\" cannot name a virtual node\n     Next: use at most 63 lower-case letters, digits, '-' and '.'\n"},
		"a slice for a provider that is none":  {[]string{"create", "resourceslices", "a", "--remote-cluster-id", "Milan"}, usage, "ERRO the cluster ID \"Milan\" is not valid: use lower-case letters, digits and '-', and begin and end with a letter or digit, for example \"rome-1\"\n     Next: list the peers with 'liqoctl info'\n"},
		"a slice in a namespace of anything":   {[]string{"create", "resourceslice", "a", "--remote-cluster-id", "milan", "-n", "liqo"}, usage, "ERRO --namespace liqo is no tenant namespace\n     Next: name the peer with --remote-cluster-id, or where Liqo is installed with --liqo-namespace\n"},
		"a slice in another peer's namespace":  {[]string{"create", "-n", "liqo-tenant-turin", "resourceslice", "a", "--remote-cluster-id", "milan"}, usage, "ERRO what is of milan is in namespace liqo-tenant-milan, and not in liqo-tenant-turin\n     Next: leave --namespace out\n"},
		"a slice of less than nothing":         {[]string{"create", "resourceslice", "a", "--remote-cluster-id", "milan", "--cpu=-1"}, usage, "ERRO --cpu -1 is negative\n     Next: give a positive one\n"},
		"a slice of half a device":             {[]string{"create", "resourceslice", "a", "--remote-cluster-id", "milan", "--resource", "nvidia.com/gpu=0.5"}, usage, "ERRO --resource nvidia.com/gpu 0.5 is no whole number\n     Next: pods and devices are counted: give a whole one\n"},
		"a slice in a format that is none":     {[]string{"create", "resourceslice", "a", "--remote-cluster-id", "milan", "-o", "xml"}, usage, "ERRO the output format \"xml\" is unknown\n     Next: choose one of json, yaml\n"},
		"a slice without time":                 {[]string{"create", "resourceslice", "a", "-n", "liqo-tenant-milan", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"a virtual node of nothing":            {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan"}, usage, "ERRO what the virtual node is made of is missing\n     Next: name a ResourceSlice with --resource-slice-name, or a Secret with --kubeconfig-secret-name\n"},
		"a virtual node of two things":         {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--resource-slice-name", "b", "--kubeconfig-secret-name", "c"}, usage, "ERRO --resource-slice-name and --kubeconfig-secret-name exclude each other\n     Next: leave one of them out\n"},
		"a virtual node for no provider":       {[]string{"create", "vn", "a"}, usage, "ERRO the provider is missing\n     Next: name it with --remote-cluster-id\n"},
		"a virtual node of a name of none":     {[]string{"create", "virtualnode", "a_b", "--remote-cluster-id", "milan"}, usage, "ERRO \"a_b\" cannot name a virtual node\n     Next: use at most 63 lower-case letters, digits, '-' and '.'\n"},
		"a size beside that of a slice":        {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--resource-slice-name", "b", "--cpu", "1"}, usage, "ERRO --cpu has no meaning with --resource-slice-name\n     Next: leave it out: what the provider granted to the slice counts\n"},
		"classes beside those of a slice":      {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--resource-slice-name", "b", "--ingress-classes", "c"}, usage, "ERRO --ingress-classes has no meaning with --resource-slice-name\n     Next: leave it out: what the provider granted to the slice counts\n"},
		"a virtual node of half a pod":         {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--kubeconfig-secret-name", "b", "--pods", "0.5"}, usage, "ERRO --pods 0.5 is no whole number\n     Next: pods and devices are counted: give a whole one\n"},
		"labels of a node that are none":       {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--resource-slice-name", "b", "--labels", "a b=c"}, usage, "ERRO --labels a b=c is not a label\n     Next: write it as KEY=VALUE, as kubectl label takes it\n"},
		"a node selector that is none":         {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--resource-slice-name", "b", "--node-selector", "a=b c"}, usage, "ERRO --node-selector a=b c is not a label\n     Next: write it as KEY=VALUE, as kubectl label takes it\n"},
		"a template that is none":              {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--resource-slice-name", "b", "--vk-options-template", "mine"}, usage, "ERRO --vk-options-template mine names no VkOptionsTemplate\n     Next: write it as NAMESPACE/NAME\n"},
		"a runtime class that is none":         {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--resource-slice-name", "b", "--runtime-class-name", "Kata"}, usage, "ERRO --runtime-class-name Kata cannot name a RuntimeClass\n     Next: use lower-case letters, digits, '-' and '.'\n"},
		"an empty variable for a Secret":       {[]string{"create", "virtualnode", "a", "--remote-cluster-id", "milan", "--kubeconfig-secret-name="}, usage, "ERRO what the virtual node is made of is missing\n     Next: name a ResourceSlice with --resource-slice-name, or a Secret with --kubeconfig-secret-name\n"},
		"delete without saying what":           {[]string{"delete"}, usage, "ERRO say what to delete\n     Next: liqoctl delete resourceslice|virtualnode NAME\n"},
		"delete what only v1 does":             {[]string{"delete", "peering-user", "--consumer-cluster-id", "a"}, usage, "ERRO unknown command \"peering-user\" for \"liqoctl delete\"\n     Next: Liqo v1 has it, and here it is not there yet: peer, authenticate and network connect do these steps, and kubectl shows and deletes the objects\n"},
		"delete two virtual nodes":             {[]string{"delete", "vn", "a", "b"}, usage, "ERRO accepts 1 arg(s), received 2\n     Next: liqoctl delete virtualnode --help\n"},
		"delete in a namespace of anything":    {[]string{"delete", "rs", "a", "-n", "default"}, usage, "ERRO --namespace default is no tenant namespace\n     Next: name the peer with --remote-cluster-id, or where Liqo is installed with --liqo-namespace\n"},
		"no time to delete":                    {[]string{"delete", "virtualnode", "a", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"get without saying what":              {[]string{"get"}, usage, "ERRO say what to get\n     Next: liqoctl get resourceslice|virtualnode NAME\n"},
		"get what only v1 has":                 {[]string{"get", "kc", "a"}, usage, "ERRO unknown command \"kc\" for \"liqoctl get\"\n     Next: Liqo v1 has it, and here it is not there yet: peer, authenticate and network connect do these steps, and kubectl shows and deletes the objects\n"},
		"get two slices by name":               {[]string{"get", "rs", "a", "b"}, usage, "ERRO accepts at most 1 arg(s), received 2\n     Next: liqoctl get resourceslice --help\n"},
		"get in a format that is none":         {[]string{"get", "vn", "-o", "wide"}, usage, "ERRO the output format \"wide\" is unknown\n     Next: choose one of json, yaml\n"},
		"get of a peer that is none":           {[]string{"get", "virtualnodes", "--remote-cluster-id", "a_b"}, usage, "ERRO the cluster ID \"a_b\" is not valid: use lower-case letters, digits and '-', and begin and end with a letter or digit, for example \"rome-1\"\n     Next: list the peers with 'liqoctl info'\n"},
		"get what is misspelt":                 {[]string{"get", "virtualnod"}, usage, "ERRO unknown command \"virtualnod\" for \"liqoctl get\"\n     Next: did you mean liqoctl get virtualnode?\n"},
		"a provider that does not answer":      {append([]string{"activate", "tenant", "a"}, local...), unmet, ""},
		"offload without saying what":          {[]string{"offload"}, usage, "ERRO say what to offload\n     Next: liqoctl offload namespace NAME\n"},
		"evicting, and only writing":           {[]string{"offload", "namespace", "a", "--evict", "-o", "yaml"}, usage, "ERRO --evict has no meaning with --output, which writes the objects only\n     Next: leave one of them out\n"},
		"no namespace":                         {[]string{"offload", "namespace"}, usage, "ERRO the namespace is missing\n     Next: name one, or select some with --ns-selector\n"},
		"namespaces by name and by selector":   {[]string{"offload", "ns", "a", "--ns-selector", "b=c"}, usage, "ERRO namespaces are given both by name and by --ns-selector\n     Next: leave one of them out\n"},
		"a namespace given twice":              {[]string{"offload", "namespaces", "a", "a"}, usage, "ERRO namespace a is given twice\n     Next: name it once\n"},
		"a name that is none":                  {[]string{"offload", "namespace", "My_Shop"}, usage, "ERRO \"My_Shop\" cannot name a namespace\n     Next: use lower-case letters, digits and '-'\n"},
		"an unknown pod strategy":              {[]string{"offload", "namespace", "a", "--pod-offloading-strategy", "remote"}, usage, "ERRO --pod-offloading-strategy remote is unknown\n     Next: choose one of LocalAndRemote, Remote, Local\n"},
		"an unknown mapping strategy":          {[]string{"offload", "namespace", "a", "--namespace-mapping-strategy", "Same"}, usage, "ERRO --namespace-mapping-strategy Same is unknown\n     Next: choose one of DefaultName, EnforceSameName, SelectedName\n"},
		"one remote name for two":              {[]string{"offload", "namespace", "a", "b", "--remote-namespace-name", "c"}, usage, "ERRO --remote-namespace-name names one namespace, and several are to be offloaded\n     Next: offload them one by one\n"},
		"a remote name without its strategy":   {[]string{"offload", "namespace", "a", "--remote-namespace-name", "c"}, usage, "ERRO --remote-namespace-name has no meaning with the mapping strategy DefaultName\n     Next: add --namespace-mapping-strategy SelectedName\n"},
		"the strategy without a remote name":   {[]string{"offload", "namespace", "a", "--namespace-mapping-strategy", "SelectedName"}, usage, "ERRO the mapping strategy SelectedName needs a name\n     Next: add --remote-namespace-name NAME\n"},
		"a remote name that is none":           {[]string{"offload", "namespace", "a", "--namespace-mapping-strategy", "SelectedName", "--remote-namespace-name", "B"}, usage, "ERRO --remote-namespace-name B cannot name a namespace\n     Next: use lower-case letters, digits and '-'\n"},
		"a cluster selector that is none":      {[]string{"offload", "namespace", "a", "--selector", "a=b=c"}, usage, "ERRO the cluster selector \"a=b=c\" cannot be parsed: found '=', expected: ',' or 'end of string'\n     Next: write it as kubectl does, for example --selector region=europe,tier!=test\n"},
		"an empty cluster selector":            {[]string{"offload", "namespace", "a", "--selector", ""}, usage, "ERRO the cluster selector \"\" is empty\n     Next: write it as kubectl does, for example --selector region=europe,tier!=test\n"},
		"a namespace selector that is none":    {[]string{"unoffload", "namespace", "--ns-selector", "a in b"}, usage, "ERRO --ns-selector a in b: unable to parse requirement: found 'b' expected: '('\n     Next: write it as kubectl does, for example --ns-selector team=shop\n"},
		"nobody to confirm":                    {append([]string{"unoffload", "namespace", "a"}, local...), usage, "ERRO The remote namespaces of a are deleted with everything in them. This has to be confirmed, and there is nobody to ask\n     Next: add --skip-confirm\n"},
		"nobody to confirm a removal":          {append([]string{"uninstall", "--purge"}, local...), usage, "ERRO Liqo is removed from rome, with its namespace, its definitions and all their objects. This has to be confirmed, and there is nobody to ask\n     Next: add --skip-confirm\n"},
		"a cluster ID that is none":            {[]string{"install", "--cluster-id", "-rome"}, usage, "ERRO the cluster ID \"-rome\" is not valid: use lower-case letters, digits and '-', and begin and end with a letter or digit, for example \"rome-1\"\n     Next: give another one with --cluster-id\n"},
		"a cluster ID that is too long":        {[]string{"install", "--cluster-id", strings.Repeat("a", 52)}, usage, "ERRO the cluster ID \"" + strings.Repeat("a", 52) + "\" has 52 characters: choose one of at most 51, so that the namespace \"liqo-tenant-\" followed by it is a valid name\n     Next: give another one with --cluster-id\n"},
		"cluster labels that are none":         {[]string{"install", "--cluster-labels", "a b=c"}, usage, "ERRO --cluster-labels a b=c is not a label\n     Next: write it as KEY=VALUE, as kubectl label takes it\n"},
		"two ways not to install":              {[]string{"install", "--dry-run", "--only-output-values"}, usage, "ERRO --dry-run and --only-output-values exclude each other\n     Next: leave one of them out\n"},
		"two charts":                           {[]string{"install", "--repo-url", "https://charts.example.com", "--local-chart-path", "."}, usage, "ERRO --repo-url and --local-chart-path exclude each other\n     Next: leave one of them out\n"},
		"a file for values that are not asked": {[]string{"install", "--dump-values-path", "x"}, usage, "ERRO --dump-values-path has no meaning without --only-output-values\n     Next: add --only-output-values\n"},
		"a provider that is unknown":           {[]string{"install", "minikube"}, usage, "ERRO unknown command \"minikube\" for \"liqoctl install\"\n     Next: liqoctl install --help\n"},
		"a provider of v1":                     {[]string{"install", "eks", "--region", "x"}, usage, "ERRO unknown command \"eks\" for \"liqoctl install\"\n     Next: Liqo v1 has it, and here it is not there yet: 'liqoctl install' detects what it can, and takes the rest by flags such as --pod-cidr, --service-cidr and --api-server-url\n"},
		"a flag of v1 that does nothing":       {[]string{"install", "--disable-telemetry", "--timeout", "0s"}, usage, "WARN --disable-telemetry has no effect: nothing is reported to anybody\nERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"another that takes a value":           {[]string{"move", "volume", "a", "--restic-image", "x"}, usage, "WARN --restic-image has no effect: volumes are moved without restic, by the pods of --image\nERRO the target node is missing\n     Next: add --target-node NODE\n"},
		"an alias of v1 for volumes":           {[]string{"move", "pvc", "a"}, usage, "ERRO the target node is missing\n     Next: add --target-node NODE\n"},
		"an alias of v1 for unauthenticate":    {[]string{"unauth", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"labels of an empty variable":          {[]string{"install", "--cluster-labels=", "--timeout", "0s"}, usage, "ERRO --timeout 0s is not positive\n     Next: give a duration such as 5m\n"},
		"values that are not YAML":             {append([]string{"install", "-f", values}, local...), usage, ""},
		"values that are not there":            {append([]string{"install", "-f", "nowhere.yaml"}, local...), usage, "ERRO --values: open nowhere.yaml: no such file or directory\n     Next: give a file, a URL, or - for standard input\n"},
		"a kubeconfig that is not there":       {[]string{"info", "--kubeconfig", "nowhere"}, usage, "ERRO reading the kubeconfig: stat nowhere: no such file or directory\n     Next: give a readable kubeconfig with --kubeconfig\n"},
		"a kubeconfig that is broken":          {[]string{"info", "--kubeconfig", broken}, usage, ""},
		"a context that is not there":          {append([]string{"info", "--context", "paris"}, local...), usage, "ERRO the kubeconfig has no context \"paris\"\n     Next: choose one with --context: milan, rome\n"},
		"a remote context that is not there":   {append([]string{"peer", "--remote-kubeconfig", file, "--remote-context", "paris"}, local...), usage, "ERRO the kubeconfig has no context \"paris\"\n     Next: choose one with --remote-context: milan, rome\n"},
		"no kubeconfig at all":                 {[]string{"info"}, usage, "ERRO no cluster is configured: neither flags nor a kubeconfig name one\n     Next: say which one with --kubeconfig or --context\n"},
		"a cluster that does not answer":       {append([]string{"info"}, local...), unmet, "ERRO cluster rome cannot be reached at https://127.0.0.1:1: Get \"https://127.0.0.1:1/version\": dial tcp 127.0.0.1:1: connect: connection refused\n     Next: check that the address and credentials in the kubeconfig are right: kubectl version --kubeconfig " + file + "\n"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := run(t, nil, "", test.args...)
			if got.code != test.code {
				t.Errorf("exit code %d, want %d; it said:\n%s", got.code, test.code, got.err)
			}
			if test.want != "" {
				if diff := cmp.Diff(test.want, got.err); diff != "" {
					t.Error(diff)
				}
			}
			if !strings.Contains(got.err, "\n     Next: ") {
				t.Errorf("no way out in:\n%s", got.err)
			}
			if got.out != "" {
				t.Errorf("an error is talk, and standard output is for data: %s", got.out)
			}
			if strings.Contains(got.err, "secret-token") {
				t.Error("the token was told")
			}
		})
	}
}

func TestVariablesStandInForFlags(t *testing.T) {
	cases := map[string]struct {
		environment map[string]string
		args        []string
		want        string
	}{
		"a variable is used":                 {map[string]string{"LIQOCTL_CONTEXT": "paris"}, nil, "ERRO the kubeconfig has no context \"paris\"\n     Next: choose one with --context: milan, rome\n"},
		"a flag wins":                        {map[string]string{"LIQOCTL_CONTEXT": "paris"}, []string{"--context", "oslo"}, "ERRO the kubeconfig has no context \"oslo\"\n     Next: choose one with --context: milan, rome\n"},
		"a variable that does not fit fails": {map[string]string{"LIQOCTL_VERBOSE": "much"}, nil, "ERRO the variable LIQOCTL_VERBOSE cannot be used: invalid argument \"much\" for \"-v, --verbose\" flag: strconv.ParseBool: parsing \"much\": invalid syntax\n     Next: correct or unset it\n"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			got := run(t, test.environment, "", append([]string{"info", "--kubeconfig", kubeconfig(t, nobody)}, test.args...)...)
			if diff := cmp.Diff(result{failure.Usage, "", test.want}, got, cmp.AllowUnexported(result{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// With -o json every line on standard error is a JSON object, also of a command that fails, whether the flag or its variable
// asks for it.
func TestTalkForProgramsIsJSON(t *testing.T) {
	file := kubeconfig(t, nobody)
	for sentence, test := range map[string]struct {
		environment map[string]string
		args        []string
		code        failure.Code
		next        string
	}{
		"a cluster that does not answer": {nil, []string{"info", "-o", "json", "--kubeconfig", file}, failure.Precondition, "kubectl version"},
		"the variable asks for it":       {map[string]string{"LIQOCTL_OUTPUT": "json"}, []string{"info", "--kubeconfig", file}, failure.Precondition, "kubectl version"},
		"a misuse that is found late":    {nil, []string{"peer", "-o", "json", "--timeout", "0s"}, failure.Usage, "5m"},
		"an unknown flag":                {nil, []string{"info", "-o", "json", "--nonsense"}, failure.Usage, "--help"},
		"too many arguments":             {nil, []string{"peer", "milan", "-o", "json"}, failure.Usage, "--help"},
		"a wrong global flag":            {nil, []string{"info", "-o", "json", "--color", "purple"}, failure.Usage, "auto"},
		"a variable, and a wrong flag":   {map[string]string{"LIQOCTL_OUTPUT": "json"}, []string{"info", "--nonsense"}, failure.Usage, "--help"},
		"two clusters of which one fails": {nil, []string{"peer", "-o", "json", "--kubeconfig", file, "--remote-kubeconfig", file, "--remote-context", "milan"},
			failure.Precondition, "kubectl version"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := run(t, test.environment, "", test.args...)
			if got.code != test.code || got.out != "" {
				t.Errorf("exit code %d, want %d; standard output %q", got.code, test.code, got.out)
			}
			var last output.Line
			for _, text := range strings.Split(strings.TrimSpace(got.err), "\n") {
				last = output.Line{}
				if err := json.Unmarshal([]byte(text), &last); err != nil {
					t.Fatalf("%v: %q", err, text)
				}
				if last.Time.IsZero() || last.Type == "" {
					t.Errorf("a line without time or type: %s", text)
				}
			}
			if last.Type != "error" || last.Code != test.code || last.Message == "" || !strings.Contains(last.Next, test.next) {
				t.Errorf("the last line is %+v", last)
			}
		})
	}
}

// A script that calls 'test network' as Liqo v1 has it goes on: what its flags would choose is said, on standard error alone.
func TestFlagsOfV1sTestHaveNoEffect(t *testing.T) {
	file := kubeconfig(t, nobody)
	all := []string{"basic", "fail-fast", "info", "ip", "lb", "np-ext", "np-nodes", "pod-np", "rm"}
	for sentence, test := range map[string]struct {
		args []string
		told []string
	}{
		"none": {[]string{"test", "network", "--kubeconfig", file}, nil},
		"all": {[]string{"test", "-v", "--timeout", "10m", "--fail-fast", "network", "--kubeconfig", file, "-p", file,
			"--basic", "--info", "--ip", "--lb", "--np-ext", "--np-nodes", "workers", "--pod-np", "--rm"}, all},
		"all, for programs": {[]string{"test", "network", "-o", "json", "--kubeconfig", file, "--basic", "--fail-fast", "--info", "--ip", "--lb", "--np-ext",
			"--np-nodes=control-planes", "--pod-np", "--rm"}, all},
	} {
		t.Run(sentence, func(t *testing.T) {
			got := run(t, nil, "", test.args...)
			if got.code != failure.Precondition || got.out != "" || !strings.Contains(got.err, "cluster rome cannot be reached") {
				t.Errorf("exit code %d, standard output %q, and it said:\n%s", got.code, got.out, got.err)
			}
			var told []string
			for line := range strings.Lines(got.err) {
				if before, _, found := strings.Cut(line, " has no effect: "); found {
					told = append(told, before[strings.LastIndex(before, "--")+2:])
				}
			}
			if diff := cmp.Diff(test.told, told); diff != "" || strings.Contains(got.err, "{{") {
				t.Errorf("%s; it said:\n%s", diff, got.err)
			}
		})
	}
}

func TestVersionOfTheClientNeedsNoCluster(t *testing.T) {
	want := result{failure.OK, "{\n  \"client\": \"v0.0.0-dev\"\n}\n", ""}
	if diff := cmp.Diff(want, run(t, nil, "", "version", "--client", "-o", "json"), cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
}

// Objects are shown as manifests for kubectl, without any cluster.
func TestObjectsAreShownInsteadOfCreated(t *testing.T) {
	for name, args := range map[string][]string{
		"slice.yaml": {"create", "resourceslice", "gpus", "--remote-cluster-id", "milan", "-o", "yaml", "--cpu", "8", "--resource", "nvidia.com/gpu=2", "--global-labels", "team=a"},
		"node.yaml": {"create", "virtualnode", "small", "--remote-cluster-id", "milan", "--kubeconfig-secret-name", "by-hand", "-o", "yaml", "--cpu", "1", "--labels", "tier=gold",
			"--storage-classes", "fast,slow", "--ingress-classes", "nginx", "--load-balancer-classes", "metal", "--node-selector", "disk=ssd", "--runtime-class-name", "kata",
			"--vk-options-template", "liqo/mine", "--create-node=false", "--disable-network-check"},
		"slice.json": {"create", "rs", "pool", "-n", "liqo-tenant-milan", "-o", "json", "--class", "gold", "--no-virtual-node"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, "", args...)
			if got.code != failure.OK || got.err != "" {
				t.Fatalf("exit code %d: %s", got.code, got.err)
			}
			golden(t, name, got.out)
		})
	}
}

func TestOffloadingIsShownInsteadOfDone(t *testing.T) {
	for name, args := range map[string][]string{
		"offload-one.yaml": {"offload", "namespace", "shop", "-o", "yaml", "--selector", "region=europe,tier!=test", "--selector", "!gpu", "--global-labels", "team=a"},
		"offload-two.json": {"offload", "namespace", "shop", "bank", "-o", "json", "--pod-offloading-strategy", "Remote", "--namespace-mapping-strategy", "EnforceSameName"},
	} {
		t.Run(name, func(t *testing.T) {
			got := run(t, nil, "", args...)
			if got.code != failure.OK || got.err != "" {
				t.Fatalf("%+v", got)
			}
			golden(t, name, got.out)
		})
	}
}

func TestExecutable(t *testing.T) {
	for arg0, want := range map[string]string{
		"/usr/bin/liqoctl": "liqoctl", "kubectl-liqo": "kubectl liqo", "/opt/kubectl-liqo.exe": "kubectl liqo", "./main": "liqoctl",
		"kubectl-my_liqo": "kubectl my-liqo",
	} {
		if got := cli.Executable(arg0); got != want {
			t.Errorf("%s is %q, want %q", arg0, got, want)
		}
	}
}

func newRoot(executable string) *cobra.Command {
	streams := genericiooptions.IOStreams{In: strings.NewReader(""), Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}}
	return cli.New(session.New(streams, executable, func(string) string { return "" }))
}

func each(command *cobra.Command, visit func(*cobra.Command)) {
	visit(command)
	for _, child := range command.Commands() {
		each(child, visit)
	}
}

func TestHelp(t *testing.T) {
	t.Setenv("HOME", "/home/user")
	each(newRoot("liqoctl"), func(command *cobra.Command) {
		name := strings.ReplaceAll(command.CommandPath(), " ", "-")
		if command.Name() == "help" || strings.Contains(name, "completion") {
			return
		}
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			command.SetOut(&out)
			if err := command.Help(); err != nil {
				t.Fatal(err)
			}
			golden(t, "help/"+name+".txt", out.String())
		})
	})
}

func TestEveryCommandHasHelpThatFits(t *testing.T) {
	each(newRoot("kubectl liqo"), func(command *cobra.Command) {
		texts := command.Short + command.Long + command.Example
		if strings.Contains(texts, "{{") || strings.Contains(texts, "liqoctl ") && command.Name() != "help" {
			t.Errorf("%s: the user calls us kubectl liqo, and help says otherwise", command.CommandPath())
		}
		if command.Short == "" || command.Runnable() && command.HasParent() && command.Example == "" && !command.HasSubCommands() && !generated(command) {
			t.Errorf("%s: no sentence or no example", command.CommandPath())
		}
		for _, line := range strings.Split(command.Long, "\n") {
			if len(line) > 110 && !generated(command) {
				t.Errorf("%s: a line of help has %d characters", command.CommandPath(), len(line))
			}
		}
	})
}

// generated tells cobra's own commands.
func generated(command *cobra.Command) bool {
	return command.Name() == "help" || strings.Contains(command.CommandPath(), "completion")
}

func TestCompletionIsSilentWhenTheClusterDoesNotAnswer(t *testing.T) {
	got := run(t, nil, "", "__complete", "offload", "namespace", "--kubeconfig", kubeconfig(t, nobody), "")
	if diff := cmp.Diff(result{failure.OK, ":4\n", "Completion ended with directive: ShellCompDirectiveNoFileComp\n"}, got, cmp.AllowUnexported(result{})); diff != "" {
		t.Error(diff)
	}
}

func TestCompletionOfContexts(t *testing.T) {
	got := run(t, nil, "", "__complete", "info", "--kubeconfig", kubeconfig(t, nobody), "--context", "m")
	if got.out != "milan\n:4\n" {
		t.Errorf("proposed %q", got.out)
	}
}

// kubectl runs the script with the words of the command line; it must ask the plugin exactly for them.
func TestKubectlCompletionScript(t *testing.T) {
	folder := t.TempDir()
	fake := "#!/bin/sh\nprintf '%s\\n' \"$#\" \"$@\"\n"
	if err := os.WriteFile(filepath.Join(folder, "kubectl"), []byte(fake), 0o755); err != nil {
		t.Fatal(err)
	}
	script, err := filepath.Abs("../../hack/completion/kubectl_complete-liqo")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), script, "unoffload", "namespace", "two words", "")
	command.Env = []string{"PATH=" + folder + ":/bin:/usr/bin"}
	got, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, got)
	}
	if diff := cmp.Diff("6\nliqo\n__complete\nunoffload\nnamespace\ntwo words\n\n", string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
