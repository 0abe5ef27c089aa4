package chart

import (
	"strings"
	"testing"
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
