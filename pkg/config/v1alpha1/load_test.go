package v1alpha1

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// good is a configuration to which the cases below do one thing wrong. The chart's own is parsed in test/chart.
const good = `
profile: compatible
authentication: {enabled: true, certificateLifetime: 24h}
controllerManager: {defaultLimitsEnforcement: None}
ipam: {podCIDRs: [10.10.0.0/16], serviceCIDR: 10.11.0.0/16}
offloading: {twinNamespaces: {maxPerTenant: 10}, defaultNodeResources: {cpu: "4"}}
`

func TestParseRefuses(t *testing.T) {
	for name, tc := range map[string]struct{ from, to, want string }{
		"a key that this version does not know":         {"profile:", "profil: x\nprofile:", "unknown field"},
		"an unknown profile":                            {"compatible", "strict", `profile: Unsupported value: "strict"`},
		"a certificate that is gone before it is used":  {"24h", "5m", "authentication.certificateLifetime: Invalid value: \"5m0s\": must be at least 10m"},
		"metrics for all, and none served":              {"profile:", "metrics: {plainHTTP: true}\nprofile:", "metrics.plainHTTP: Invalid value: true: nothing is served without metrics.enabled"},
		"metrics for all, hardened":                     {"profile: compatible", "metrics: {enabled: true, plainHTTP: true}\nprofile: hardened", "metrics.plainHTTP: Invalid value: true: profile hardened shows metrics to nobody without a token"},
		"a plugin without TLS":                          {"offloading: {", "offloading: {resourcePlugin: {address: 'plugin.liqo.svc:8443'}, ", "offloading.resourcePlugin.tlsSecret: Required value: a resource plugin at host:port is asked over TLS alone"},
		"a plugin without a port":                       {"offloading: {", "offloading: {resourcePlugin: {address: plugin, tlsSecret: a}, ", "offloading.resourcePlugin.address: Invalid value: \"plugin\": must be unix:///path, or host:port"},
		"a plugin at a port that there is not":          {"offloading: {", "offloading: {resourcePlugin: {address: 'plugin:65536', tlsSecret: a}, ", "offloading.resourcePlugin.address: Invalid value"},
		"a plugin at a URL":                             {"offloading: {", "offloading: {resourcePlugin: {address: 'https://plugin:443', tlsSecret: a}, ", "offloading.resourcePlugin.address: Invalid value"},
		"a plugin on no host":                           {"offloading: {", "offloading: {resourcePlugin: {address: ':443', tlsSecret: a}, ", "offloading.resourcePlugin.address: Invalid value"},
		"a plugin on a socket of no folder":             {"offloading: {", "offloading: {resourcePlugin: {address: 'unix://plugin'}, ", "offloading.resourcePlugin.address: Invalid value: \"unix://plugin\": must be a path from the root"},
		"a plugin on a socket with a long path":         {"offloading: {", "offloading: {resourcePlugin: {address: 'unix:///" + strings.Repeat("a", 107) + "'}, ", "at most 107 characters"},
		"a plugin on a socket with TLS":                 {"offloading: {", "offloading: {resourcePlugin: {address: 'unix:///run/s', tlsSecret: a}, ", "offloading.resourcePlugin.tlsSecret: Forbidden: a resource plugin on a socket is asked without TLS"},
		"a plugin with a Secret of no name":             {"offloading: {", "offloading: {resourcePlugin: {tlsSecret: A_B}, ", "offloading.resourcePlugin.tlsSecret: Invalid value"},
		"an unknown enforcement":                        {"defaultLimitsEnforcement: None", "defaultLimitsEnforcement: Some", "controllerManager.config.defaultLimitsEnforcement: Unsupported value"},
		"a pod CIDR that is no network":                 {"10.10.0.0/16", "10.10.0.1/16", "ipam.podCIDRs[0]: Invalid value: \"10.10.0.1/16\": must be a network such as 10.0.0.0/16"},
		"a service CIDR that is no network":             {"10.11.0.0/16", "services", "ipam.serviceCIDR: Invalid value"},
		"a reserved subnet that is no network":          {"ipam: {", "ipam: {reservedSubnets: [x], ", "ipam.reservedSubnets[0]: Invalid value"},
		"a single pod CIDR that is no network":          {"ipam: {", "ipam: {podCIDR: x, ", "ipam.podCIDR: Invalid value"},
		"a plain API server":                            {"profile:", "apiServer: {address: 'http://a'}\nprofile:", "apiServer.address: Invalid value: \"http://a\": must be a URL such as https://203.0.113.7:6443"},
		"a CA that is not base64":                       {"profile:", "apiServer: {ca: '!'}\nprofile:", "apiServer.ca: Invalid value: \"(not shown)\": must be base64"},
		"an external CIDR that is no network":           {"ipam: {", "ipam: {externalCIDR: x, ", "ipam.externalCIDR: Invalid value"},
		"an internal CIDR that is no network":           {"ipam: {", "ipam: {internalCIDR: x, ", "ipam.internalCIDR: Invalid value"},
		"a pool that is no network":                     {"ipam: {", "ipam: {pools: [10.0.0.0/8, x], ", "ipam.pools[1]: Invalid value"},
		"an overlay port that there is not":             {"profile:", "networking: {genevePort: 70000}\nprofile:", "networking.genevePort: Invalid value: 70000: must be a port, from 1 to 65535"},
		"a network without the pods' addresses":         {"ipam: {podCIDRs: [10.10.0.0/16], ", "networking: {enabled: true}\nipam: {", "ipam.podCIDRs: Required value"},
		"a network of IPv6 alone":                       {"ipam: {podCIDRs: [10.10.0.0/16], ", "networking: {enabled: true}\nipam: {podCIDRs: ['fd00::/56'], ", "ipam.podCIDRs: Invalid value: [\"fd00::/56\"]: the network module carries IPv4 alone: name a range of IPv4, or set networking.enabled=false"},
		"a network without the Services' addresses":     {", serviceCIDR: 10.11.0.0/16}", "}\nnetworking: {enabled: true}", "ipam.serviceCIDR: Required value"},
		"an unknown Pod Security level":                 {"maxPerTenant: 10", "maxPerTenant: 10, podSecurity: safe", "offloading.twinNamespaces.podSecurity: Unsupported value"},
		"no namespaces for tenants":                     {"maxPerTenant: 10", "maxPerTenant: 0", "offloading.twinNamespaces.maxPerTenant: Invalid value: 0: must be at least 1"},
		"a negative resource":                           {`cpu: "4"`, `cpu: "-4"`, "offloading.defaultNodeResources.cpu: Invalid value: \"-4\": must not be negative"},
		"an identity that virtual kubelets do not have": {"profile:", "virtualKubelet: {nodeIdentity: admin}\nprofile:", "virtualKubelet.nodeIdentity: Unsupported value"},
		"a policy that Secrets do not have":             {"offloading: {", "offloading: {reflection: {secret: {type: CustomLiqo}}, ", "offloading.reflection.secret.type: Unsupported value"},
		"a policy that Services do not have":            {"offloading: {", "offloading: {reflection: {service: {type: Some}}, ", "offloading.reflection.service.type: Unsupported value"},
		"more than all copies":                          {"offloading: {", "offloading: {reflection: {maxRemovals: 101}, ", "offloading.reflection.maxRemovals: Invalid value: 101: must be a share in percent, from 0 to 100"},
		"an offered class without a name":               {"offloading: {", "offloading: {reflection: {ingress: {ingressClasses: [{default: true}]}}, ", "offloading.reflection.ingress.ingressClasses[0].name: Required value"},
		"an offered class twice":                        {"offloading: {", "offloading: {reflection: {service: {loadBalancerClasses: [{name: a}, {name: a}]}}, ", "offloading.reflection.service.loadBalancerClasses[1].name: Duplicate value"},
		"two default classes":                           {"offloading: {", "offloading: {reflection: {service: {loadBalancerClasses: [{name: a, default: true}, {name: b, default: true}]}}, ", "offloading.reflection.service.loadBalancerClasses[1].default: Invalid value: true: there is another default class"},
		"a RuntimeClass of no such name":                {"offloading: {", "offloading: {consumers: {runtimeClasses: ['*', 'g visor']}, ", "offloading.consumers.runtimeClasses[1]: Invalid value"},
		"a ServiceAccount of no such name":              {"offloading: {", "offloading: {consumers: {serviceAccounts: ['']}, ", "offloading.consumers.serviceAccounts[0]: Invalid value"},
		"all capabilities":                              {"offloading: {", "offloading: {consumers: {capabilities: [SYS_PTRACE, ALL]}, ", "offloading.consumers.capabilities[1]: Invalid value"},
		"a capability with its prefix":                  {"offloading: {", "offloading: {consumers: {capabilities: [CAP_NET_RAW]}, ", "offloading.consumers.capabilities[0]: Invalid value"},
		"a toleration of no such key":                   {"offloading: {", "offloading: {consumers: {tolerations: ['*', 'a b']}, ", "offloading.consumers.tolerations[1]: Invalid value"},
		"a CSI driver of no such name":                  {"offloading: {", "offloading: {consumers: {csiDrivers: ['*', 'N F S']}, ", "offloading.consumers.csiDrivers[1]: Invalid value"},
		"a grace period that is over before it begins":  {"offloading: {", "offloading: {consumers: {maxTerminationGracePeriod: -1s}, ", "offloading.consumers.maxTerminationGracePeriod: Invalid value: \"-1s\": must not be negative"},
		"a prefix of all labels":                        {"offloading: {", "offloading: {consumers: {podLabelPrefixes: ['']}, ", "offloading.consumers.podLabelPrefixes[0]: Invalid value"},
		"a prefix of all annotations":                   {"offloading: {", "offloading: {consumers: {podAnnotationPrefixes: [a/, '']}, ", "offloading.consumers.podAnnotationPrefixes[1]: Invalid value"},
		"a token that lives too long":                   {"offloading: {", "offloading: {serviceAccountTokens: {maxLifetime: 2h}, ", "offloading.serviceAccountTokens.maxLifetime: Invalid value: \"2h0m0s\": must be between 10m and 1h"},
		"a token that no API server issues":             {"offloading: {", "offloading: {serviceAccountTokens: {maxLifetime: 5m}, ", "offloading.serviceAccountTokens.maxLifetime: Invalid value"},
	} {
		t.Run(name, func(t *testing.T) {
			changed := strings.Replace(good, tc.from, tc.to, 1)
			if changed == good {
				t.Fatalf("the case does not change the configuration: %q is not in it", tc.from)
			}
			_, err := Parse([]byte(changed))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Parse returned %v, want an error that says %q", err, tc.want)
			}
		})
	}
}

func TestTheProfileDecidesWhatIsLeftOpen(t *testing.T) {
	type choices struct {
		PodSecurity   string
		RequireSuffix bool
		Secret        offloadingv1beta1.ReflectionType
		TokenLifetime time.Duration
		Capabilities  []string
		PodLabels     []string
		Enforcement   offloadingv1beta1.LimitsEnforcement
	}
	for name, tc := range map[string]struct {
		from, to string
		want     choices
	}{
		"compatible":                 {"", "", choices{"", false, offloadingv1beta1.DenyList, time.Hour, []string{"SYS_PTRACE"}, []string{"*"}, "None"}},
		"hardened":                   {"compatible", "hardened", choices{"baseline", true, offloadingv1beta1.AllowList, 10 * time.Minute, nil, hardenedLabelPrefixes, "Hard"}},
		"a value of its own wins":    {"profile: compatible", "profile: hardened\noverruled: true", choices{"restricted", false, offloadingv1beta1.DenyList, 20 * time.Minute, []string{"NET_ADMIN"}, []string{"team.example/"}, "Soft"}},
		"none is a value of its own": {"offloading: {", "offloading: {consumers: {capabilities: [], podLabelPrefixes: []}, ", choices{"", false, offloadingv1beta1.DenyList, time.Hour, []string{}, []string{}, "None"}},
	} {
		t.Run(name, func(t *testing.T) {
			raw := strings.Replace(strings.Replace(good, tc.from, tc.to, 1), "controllerManager: {defaultLimitsEnforcement: None}\n", "", 1)
			if overruled := strings.Replace(raw, "\noverruled: true", "", 1); overruled != raw {
				raw = strings.Replace(overruled, "offloading: {twinNamespaces: {",
					"offloading: {consumers: {capabilities: [NET_ADMIN], podLabelPrefixes: [team.example/]}, serviceAccountTokens: {maxLifetime: 20m}, reflection: {secret: {type: DenyList}}, twinNamespaces: {podSecurity: restricted, requireSuffix: false, ", 1) + "controllerManager: {defaultLimitsEnforcement: Soft}\n"
			}
			c, err := Parse([]byte(raw))
			if err != nil {
				t.Fatal(err)
			}
			got := choices{c.Offloading.TwinNamespaces.PodSecurity, *c.Offloading.TwinNamespaces.RequireSuffix, c.Offloading.Reflection.Secret.Type,
				c.Offloading.ServiceAccountTokens.MaxLifetime.Duration, c.Offloading.Consumers.Capabilities, c.Offloading.Consumers.PodLabelPrefixes, c.ControllerManager.DefaultLimitsEnforcement}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheNetworkHasItsDefaults(t *testing.T) {
	c, err := Parse([]byte(good + "networking: {enabled: true}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"10.0.0.0/8", "192.168.0.0/16", "172.16.0.0/12"}; !cmp.Equal(want, c.IPAM.Pools) || c.Networking.GenevePort != 6091 {
		t.Errorf("pools %v and port %d, want %v and 6091", c.IPAM.Pools, c.Networking.GenevePort, want)
	}
}

func TestWhomThePeersReachGoesByTheProfile(t *testing.T) {
	for text, want := range map[string]Isolation{
		good: IsolationOpen, strings.Replace(good, "compatible", "hardened", 1): IsolationOffloaded,
		strings.Replace(good, "compatible", "hardened", 1) + "networking: {isolation: open}\n": IsolationOpen,
	} {
		c, err := Parse([]byte(text))
		if err != nil || c.Networking.Isolation != want {
			t.Fatalf("%s\nisolation %q, not %q (%v)", text, c.Networking.Isolation, want, err)
		}
		if hardened := c.Profile == ProfileHardened; *c.Networking.DenyDirectConnections != hardened {
			t.Errorf("%s\ndirect connections are denied: %t", text, !hardened)
		}
	}
	if _, err := Parse([]byte(good + "networking: {isolation: shut}\n")); err == nil || !strings.Contains(err.Error(), "networking.isolation") {
		t.Errorf("got %v", err)
	}
}

func TestPrefixes(t *testing.T) {
	for name, tc := range map[string]struct {
		ipam IPAM
		want []string
	}{
		"the list":                         {IPAM{PodCIDRs: []string{"10.0.0.0/16", "fd00::/48"}, PodCIDR: "10.9.0.0/16"}, []string{"10.0.0.0/16", "fd00::/48"}},
		"the single value, without a list": {IPAM{PodCIDR: "10.9.0.0/16"}, []string{"10.9.0.0/16"}},
		"none":                             {IPAM{}, []string{}},
	} {
		t.Run(name, func(t *testing.T) {
			got := []string{}
			for _, prefix := range tc.ipam.Prefixes() {
				got = append(got, prefix.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if c.IPAM.ServiceCIDR != "10.11.0.0/16" {
		t.Errorf("the file was not read: %+v", c.IPAM)
	}
	if _, err := Load(path + ".missing"); err == nil || !strings.Contains(err.Error(), "reading the configuration") {
		t.Errorf("a missing file gives %v", err)
	}
}
