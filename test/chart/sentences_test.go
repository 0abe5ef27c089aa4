package chart

import (
	"math/rand/v2"
	"net/netip"
	"strings"
	"testing"
)

// What the controller manager would refuse the chart refuses, with a sentence, before anything is applied.
func TestTheConfigurationIsRefusedBeforeItIsApplied(t *testing.T) {
	ranges := func(more string) string {
		return "ipam: {podCIDRs: [10.244.0.0/16], serviceCIDR: 10.96.0.0/12, " + more + "}"
	}
	const no, more = `" is no network: write it as 10.0.0.0/16`, `is no network, because there is more than its first `
	for name, tc := range map[string]struct{ values, want string }{
		"a resource plugin without TLS":                {"offloading: {resourcePlugin: {address: 'plugin.liqo.svc:8443'}}", "offloading.resourcePlugin.tlsSecret: a resource plugin at host:port is asked over TLS alone: name a Secret with tls.crt, tls.key and ca.crt, or have the plugin listen on a socket (unix:///path)"},
		"a resource plugin with TLS":                   {"offloading: {resourcePlugin: {address: 'plugin.liqo.svc:8443', tlsSecret: plugin}}", ""},
		"a resource plugin at an address of six":       {"offloading: {resourcePlugin: {address: '[fd00::1]:8443', tlsSecret: plugin}}", ""},
		"a resource plugin at no port":                 {"offloading: {resourcePlugin: {address: 'plugin:70000', tlsSecret: plugin}}", `offloading.resourcePlugin.address: "plugin:70000" has a port that there is not`},
		"a resource plugin on a socket":                {"offloading: {resourcePlugin: {address: 'unix:///run/plugin/liqo.sock'}}", ""},
		"a resource plugin on a socket, with TLS":      {"offloading: {resourcePlugin: {address: 'unix:///run/s', tlsSecret: plugin}}", "offloading.resourcePlugin.tlsSecret: a resource plugin on a socket is asked without TLS: leave it out"},
		"metrics for all, and none served":             {"metrics: {plainHTTP: true}", "metrics.plainHTTP: nothing serves metrics: set metrics.enabled=true, or leave it out"},
		"metrics for all, hardened":                    {"profile: hardened\nmetrics: {enabled: true, plainHTTP: true}", "metrics.plainHTTP: profile hardened shows metrics to nobody without a token"},
		"metrics for all":                              {"metrics: {enabled: true, plainHTTP: true}", ""},
		"metrics for a word":                           {"metrics: {enabled: true, plainHTTP: perhaps}", "got string, want boolean"},
		"two families":                                 {"ipam: {podCIDRs: [10.244.0.0/16, 'fd00:10:244::/56'], serviceCIDR: 10.96.0.0/12}", ""},
		"an address alone":                             {ranges("reservedSubnets: [192.168.1.7/32, 'fd00::7/128', '1:2:3:4:5:6:7:8/128', '::/0', 0.0.0.0/0, 'fd00:0:0:ff00::/56']"), ""},
		"a sub-network":                                {ranges("reservedSubnets: [10.1.2.64/26, 'fd00:1200::/23']"), ""},
		"no network":                                   {ranges("reservedSubnets: [ten]"), `ipam.reservedSubnets[0]: "ten` + no},
		"an address without length":                    {ranges("reservedSubnets: [10.0.0.0/8, 192.168.0.0]"), `ipam.reservedSubnets[1]: "192.168.0.0` + no},
		"an octet too large":                           {ranges("pools: [10.256.0.0/16]"), `ipam.pools[0]: "10.256.0.0/16` + no},
		"a length too large":                           {ranges("pools: [10.0.0.0/33]"), `ipam.pools[0]: "10.0.0.0/33` + no},
		"bits behind the length":                       {ranges("externalCIDR: 10.70.0.1/16"), `ipam.externalCIDR: "10.70.0.1/16" ` + more + "16 bits"},
		"a bit behind the length":                      {ranges("internalCIDR: 10.70.64.0/17"), `ipam.internalCIDR: "10.70.64.0/17" ` + more + "17 bits"},
		"bits behind, of six":                          {ranges("reservedSubnets: ['fd00:1200::/22']"), `"fd00:1200::/22" ` + more + "22 bits"},
		"too many groups":                              {ranges("reservedSubnets: ['1:2:3:4:5:6:7:8:9/128']"), `"1:2:3:4:5:6:7:8:9/128` + no},
		"two gaps":                                     {ranges("reservedSubnets: ['fd00::1::/64']"), `"fd00::1::/64` + no},
		"groups that fill the gap":                     {ranges("reservedSubnets: ['1:2:3:4:5::6:7:8:9/128']"), `"1:2:3:4:5::6:7:8:9/128` + no},
		"pods of six alone":                            {"ipam: {podCIDRs: ['fd00::/56'], serviceCIDR: 10.96.0.0/12}", "ipam.podCIDRs: the network module carries IPv4 alone: name a range of IPv4, or set networking.enabled=false"},
		"the same, no networks":                        {"networking: {enabled: false}\nipam: {podCIDRs: ['fd00::/56']}", ""},
		"a CA that is PEM":                             {"apiServer: {ca: '-----BEGIN CERTIFICATE-----'}", "apiServer.ca: it is no base64: write the PEM bundle as base64"},
		"a CA that is cut off":                         {"apiServer: {ca: Zm9vY}", "apiServer.ca: it is no base64"},
		"a CA in lines":                                {"apiServer: {ca: \"Zm9v\\nZg==\\n\"}", ""},
		"an address of no host":                        {"apiServer: {address: 'https://:6443'}", `apiServer.address: "https://:6443" is no address: write a URL such as https://203.0.113.7:6443`},
		"an address of six":                            {"apiServer: {address: 'https://[fd00::1]:6443/k8s'}", ""},
		"a certificate that is gone before it is used": {"authentication: {certificateLifetime: 9m59s}", `authentication.certificateLifetime: "9m59s" is too short: it must be at least 10m`},
		"a certificate of seconds":                     {"authentication: {certificateLifetime: 600s}", ""},
		"a certificate of no time":                     {"authentication: {certificateLifetime: ''}", `authentication.certificateLifetime: "" is no duration: write it as 24h or 30m`},
		"silence of no time":                           {"authentication: {consumerSilentAfter: ''}", `authentication.consumerSilentAfter: "" is no duration`},
		"an end of no time":                            {"offloading: {consumers: {maxTerminationGracePeriod: ''}}", `offloading.consumers.maxTerminationGracePeriod: "" is no duration`},
		"a token of a day":                             {"offloading: {serviceAccountTokens: {maxLifetime: 24h}}", `offloading.serviceAccountTokens.maxLifetime: "24h" is no duration between 10m and 1h`},
		"a token of a while":                           {"offloading: {serviceAccountTokens: {maxLifetime: a while}}", `"a while" is no duration between 10m and 1h`},
		"more removals than all":                       {"offloading: {reflection: {maxRemovals: 101}}", "maxRemovals': maximum: got 101, want 100"},
		"a class twice":                                {"offloading: {reflection: {ingress: {ingressClasses: [{name: a}, {name: a}]}}}", `offloading.reflection.ingress.ingressClasses[1]: "a" is there twice`},
		"two default classes":                          {"offloading: {reflection: {service: {loadBalancerClasses: [{name: a, default: true}, {name: b, default: true}]}}}", `loadBalancerClasses[1]: there is another default class, "a"`},
		"a class without a name":                       {"offloading: {reflection: {ingress: {ingressClasses: [{default: true}]}}}", "missing property 'name'"},
		"a class as a text":                            {"offloading: {reflection: {ingress: {ingressClasses: [nginx]}}}", "ingressClasses"},
		"policies in isolated twins":                   {"offloading: {consumers: {networkPolicies: true}, twinNamespaces: {network: {isolate: true}}}", "offloading.consumers.networkPolicies: policies add up, so those of consumers would lift the isolation"},
		"policies where twins are isolated by default": {"profile: hardened\noffloading: {consumers: {networkPolicies: true}}", "offloading.consumers.networkPolicies: policies add up"},
		"policies where twins are not isolated":        {"profile: hardened\noffloading: {consumers: {networkPolicies: true}, twinNamespaces: {network: {isolate: false}}}", ""},
		"a runtime class in capitals":                  {"offloading: {consumers: {runtimeClasses: [GVisor]}}", `offloading.consumers.runtimeClasses[0]: "GVisor" is no name, nor * for all`},
		"all runtime classes":                          {"offloading: {consumers: {runtimeClasses: ['*'], csiDrivers: [csi.example.org]}}", ""},
		"a driver with a gap":                          {"offloading: {consumers: {csiDrivers: [csi..org]}}", `offloading.consumers.csiDrivers[0]: "csi..org" is no name`},
		"a capability with its prefix":                 {"offloading: {consumers: {capabilities: [CAP_SYS_PTRACE]}}", `offloading.consumers.capabilities[0]: "CAP_SYS_PTRACE": name one Linux capability without CAP_, such as SYS_PTRACE`},
		"all capabilities":                             {"offloading: {consumers: {capabilities: [ALL]}}", `"ALL": name one Linux capability`},
		"a label of nodes with its value":              {"offloading: {consumers: {nodeLabels: ['a.example/', 'pool=a']}}", `offloading.consumers.nodeLabels[1]: "pool=a" is no key of a label`},
		"a taint with its value":                       {"offloading: {consumers: {tolerations: ['gpu=yes']}}", `offloading.consumers.tolerations[0]: "gpu=yes" is no key of a taint`},
		"an empty prefix":                              {"offloading: {consumers: {podLabelPrefixes: ['']}}", "podLabelPrefixes"},
		"a negative quota":                             {"offloading: {twinNamespaces: {quota: {services: -1}}}", `offloading.twinNamespaces.quota.services: "-1" is no quantity`},
		"a default that is no quantity":                {"offloading: {defaultNodeResources: {memory: much}}", `offloading.defaultNodeResources.memory: "much" is no quantity: write a number that is not negative, such as 2 or 500Mi`},
		"a limit in words":                             {"offloading: {consumers: {limits: {resources: {cpu: four}}}}", `offloading.consumers.limits.resources.cpu: "four" is no quantity`},
		"memory in megabytes":                          {"virtualKubelet: {extra: {resources: {limits: {memory: 500MB}}}}", `virtualKubelet.extra.resources.limits.memory: "500MB" is no quantity`},
		"resources without limits or requests":         {"virtualKubelet: {extra: {resources: {memory: 1Gi}}}", "virtualKubelet.extra.resources.memory: write limits and requests"},
		"quantities of all sorts":                      {"offloading: {twinNamespaces: {quota: {services: 10, cpu: 1500m, memory: 1e9, storage: 1.5Ti}}}", ""},
		"a toleration of an unknown field":             {"virtualKubelet: {extra: {tolerations: [{taint: a}]}}", "taint"},
		"a toleration as a text":                       {"common: {tolerations: [all]}", "tolerations"},
		"an unknown effect":                            {"networking: {fabric: {tolerations: [{effect: Never}]}}", "effect"},
		"a label that is a number":                     {"discovery: {config: {clusterID: rome, clusterLabels: {zone: 1}}}", "clusterLabels"},
		"a pull secret as a text":                      {"imagePullSecrets: [pull]", "imagePullSecrets"},
		"a port of the webhooks that is none":          {"webhook: {port: 70000}", "at '/webhook/port': maximum: got 70,000, want 65,535"},
		"a port of metrics that is none":               {"virtualKubelet: {metrics: {port: 0}}", "at '/virtualKubelet/metrics/port': minimum: got 0, want 1"},
		"both names of a policy":                       {"offloading: {reflection: {secret: {type: DenyList}}}\nreflection: {secret: {type: AllowList}}", "offloading.reflection.secret.type is DenyList, and reflection.secret.type, its deprecated name, AllowList: leave the second out"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := render(t, tc.values)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if tc.want == "" {
				configuration(t, tc.values)
			}
		})
	}
}

// The chart and the configuration have one opinion of what a network is.
func TestNetworksAreJudgedAlike(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var networks []string
	bad := map[string]bool{}
	for len(networks) < 400 || len(bad) < 12 {
		raw := make([]byte, []int{4, 16}[random.IntN(2)])
		for i := range raw {
			raw[i] = byte(random.UintN(256)) * byte(random.UintN(2))
		}
		address, _ := netip.AddrFromSlice(raw)
		prefix := netip.PrefixFrom(address, random.IntN(address.BitLen()+1))
		networks = append(networks, prefix.Masked().String())
		if prefix != prefix.Masked() && len(bad) < 12 {
			bad[prefix.String()] = true
		}
	}
	reserved := func(networks ...string) string {
		return "ipam: {podCIDRs: [10.244.0.0/16], serviceCIDR: 10.96.0.0/12, reservedSubnets: ['" + strings.Join(networks, "', '") + "']}"
	}
	configuration(t, reserved(networks...))
	for network := range bad {
		if _, err := render(t, reserved(network)); err == nil || !strings.Contains(err.Error(), network) {
			t.Errorf("%s: %v", network, err)
		}
	}
}
