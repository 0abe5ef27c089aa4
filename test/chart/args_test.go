package chart

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/admission"
)

// A program that ends at once, because it does not know an argument, tells that its log alone: the chart says it before anything is applied.
func TestArgumentsAreThoseOfThePrograms(t *testing.T) {
	const vk = "virtualKubelet: {extra: {args: [%]}}"
	for name, tc := range map[string]struct{ values, args, want string }{
		"none":                                 {vk, "", ""},
		"one with its value":                   {vk, "--node-lease-duration=1m30s", ""},
		"one with its value behind":            {vk, "--node-lease-duration, 40s", ""},
		"a switch":                             {vk, "--enable-apiserver-support", ""},
		"a switch that is off":                 {vk, "--enable-apiserver-support=false", ""},
		"a letter":                             {vk, "-v=4", ""},
		"a letter with its value right behind": {vk, "-v4, -v, '4'", ""},
		"a number":                             {vk, "--v=4", ""},
		"an empty value":                       {vk, "'--home-kubeconfig='", ""},
		"one of v1 that has no effect":         {vk, "--resync-period=10h, --klog.v=4", ""},
		"words":                                {vk, "--secret-reflection-type=Referenced", ""},
		"for both programs":                    {"common: {extraArgs: [%]}", "--v=4, --logging-format=json", ""},

		"an unknown one":             {vk, "--v=4, --node-lease=40s", "virtualKubelet.extra.args[1]: virtual-kubelet has no flag --node-lease: correct it or leave it out"},
		"an unknown letter":          {vk, "-x", "virtualKubelet.extra.args[0]: virtual-kubelet has no flag --x: correct it or leave it out"},
		"what is no flag":            {vk, "debug", `virtualKubelet.extra.args[0]: "debug" is no flag: write --NAME=VALUE`},
		"one dash too many":          {vk, "---v=4", `virtualKubelet.extra.args[0]: "---v=4" is no flag: write --NAME=VALUE`},
		"one that ends the program":  {vk, "--version", "virtual-kubelet has no flag --version"},
		"a duration without a unit":  {vk, "--node-lease-duration=40", `virtualKubelet.extra.args[0]: --node-lease-duration takes a duration such as 30s, not "40"`},
		"a word for a number":        {vk, "--pod-reflection-workers=many", `--pod-reflection-workers takes a number, not "many"`},
		"too large a number":         {vk, "--pod-reflection-workers=1001", `--pod-reflection-workers takes a number from 0 to 1000, not 1001`},
		"too small a number":         {vk, "--remote-memory=-1", `--remote-memory takes a number from 1 to 2147483647, not -1`},
		"the largest number":         {vk, "--max-removals=100", ""},
		"a word for a switch":        {vk, "--create-node=no", `--create-node takes true or false, not "no"`},
		"an unknown word":            {vk, "--service-reflection-type=Referenced", `--service-reflection-type takes DenyList or AllowList, not "Referenced"`},
		"a value behind, a bad one":  {vk, "--v, high", `virtualKubelet.extra.args[1]: --v takes a number, not "high"`},
		"a value that is missing":    {vk, "--node-lease-duration", "virtualKubelet.extra.args: --node-lease-duration needs a value: write --node-lease-duration=VALUE"},
		"for one of two programs":    {"common: {extraArgs: [%]}", "--leader-elect", "common.extraArgs[0]: liqo-fabric has no flag --leader-elect"},
		"of the controller manager":  {"controllerManager: {pod: {extraArgs: [%]}}", "--enable-storage=true", "controllerManager.pod.extraArgs[0]: liqo-controller-manager has no flag --enable-storage"},
		"of agents of nodes":         {"networking: {fabric: {pod: {extraArgs: [%]}}}", "--geneve-port=6081", "networking.fabric.pod.extraArgs[0]: liqo-fabric has no flag --geneve-port"},
		"of agents, a bad number":    {"networking: {fabric: {pod: {extraArgs: [%]}}}", "--metrics-port=http", `--metrics-port takes a number, not "http"`},
		"of the manager, a bad word": {"controllerManager: {pod: {extraArgs: [%]}}", "--leader-elect=perhaps", `--leader-elect takes true or false, not "perhaps"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, strings.ReplaceAll(tc.values, "%", tc.args))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// withArgs is a VkOptionsTemplate of a user.
func withArgs(args ...any) *unstructured.Unstructured {
	spec := map[string]any{"metricsEnabled": false}
	if args != nil {
		spec["extraArgs"] = args
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "offloading.liqo.io/v1beta1", "kind": "VkOptionsTemplate",
		"metadata": map[string]any{"name": "mine"}, "spec": spec}}
}

// Whoever gives virtual kubelets arguments by a template of their own is told the same by the API server, when it is written.
func TestArgumentsOfTemplatesAreThoseOfThePrograms(t *testing.T) {
	policy := policyNamed(t, valueSets["default"], "arguments.yaml", "liqo-arguments")
	for name, tc := range map[string]struct {
		args []any
		want string
	}{
		"none":                                 {nil, ""},
		"one with its value":                   {[]any{"--node-lease-duration=1m30s"}, ""},
		"one with its value behind":            {[]any{"--node-lease-duration", "40s"}, ""},
		"a switch":                             {[]any{"--enable-apiserver-support", "--enable-storage=false"}, ""},
		"letters":                              {[]any{"-v=4", "-v4", "-v", "4"}, ""},
		"an empty value":                       {[]any{"--home-kubeconfig="}, ""},
		"a value with a sign of its own":       {[]any{"--node-extra-labels=a=b,c=d"}, ""},
		"one of v1 that has no effect":         {[]any{"--resync-period=10h", "--klog.v=4", "--certificate-type=aws"}, ""},
		"words":                                {[]any{"--secret-reflection-type=Referenced"}, ""},
		"the largest number":                   {[]any{"--max-removals=100", "--pod-reflection-workers=0"}, ""},
		"an unknown one":                       {[]any{"--v=4", "--node-lease=40s"}, "spec.extraArgs: virtual-kubelet has no flag --node-lease: correct it or leave it out"},
		"an unknown letter":                    {[]any{"-x"}, "spec.extraArgs: virtual-kubelet has no flag --x: correct it or leave it out"},
		"one that ends the program":            {[]any{"--version"}, "spec.extraArgs: virtual-kubelet has no flag --version: correct it or leave it out"},
		"what is no flag":                      {[]any{"debug"}, `spec.extraArgs: "debug" is no flag: write --NAME=VALUE`},
		"nothing":                              {[]any{""}, `spec.extraArgs: "" is no flag: write --NAME=VALUE`},
		"one dash too many":                    {[]any{"---v=4"}, `spec.extraArgs: "---v=4" is no flag: write --NAME=VALUE`},
		"one dash too many later":              {[]any{"--v=4", "---v=4"}, `spec.extraArgs: "---v=4" is no flag: write --NAME=VALUE`},
		"a negative value behind":              {[]any{"--client-qps", "-1"}, ""},
		"a duration without a unit":            {[]any{"--node-lease-duration=40"}, `spec.extraArgs: --node-lease-duration takes a duration such as 30s, not "40"`},
		"a word for a number":                  {[]any{"-vhigh"}, `spec.extraArgs: --v takes a number, not "high"`},
		"too large a number":                   {[]any{"--pod-reflection-workers=1001"}, `spec.extraArgs: --pod-reflection-workers takes a number from 0 to 1000, not "1001"`},
		"too small a number":                   {[]any{"--remote-memory=-1"}, `spec.extraArgs: --remote-memory takes a number from 1 to 2147483647, not "-1"`},
		"a word for a number that has bounds":  {[]any{"--max-removals=all"}, `spec.extraArgs: --max-removals takes a number from 0 to 100, not "all"`},
		"a word for a switch":                  {[]any{"--create-node=no"}, `spec.extraArgs: --create-node takes true or false, not "no"`},
		"a policy that the kind does not have": {[]any{"--service-reflection-type=Referenced"}, `spec.extraArgs: --service-reflection-type takes DenyList or AllowList, not "Referenced"`},
	} {
		t.Run(name, func(t *testing.T) {
			a := attempt{user: "somebody", operation: admission.Create, group: "offloading.liqo.io", resource: "vkoptionstemplates", name: "mine", object: withArgs(tc.args...)}
			if got := policy.try(t, a, nil); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			// What was there before stays, and may be changed otherwise.
			a.operation, a.old = admission.Update, a.object
			if got := policy.try(t, a, nil); got != "" {
				t.Errorf("an old one is refused: %q", got)
			}
			if a.old = withArgs("--v=1"); tc.want != "" && policy.try(t, a, nil) != tc.want {
				t.Error("a change to it is not refused")
			}
		})
	}
}
