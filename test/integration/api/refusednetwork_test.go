package api

import (
	"strconv"
	"strings"
)

// listOf is a list of n different texts: each is the text with its number in place of the #.
func listOf(n int, text string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = strings.ReplaceAll(text, "#", strconv.Itoa(i))
	}
	return "[" + strings.Join(items, ",") + "]"
}

// ranges is a list of n different ranges.
func ranges(n int) string { return listOf(n, "10.#.0.0/16") }

const (
	notAnAddress = "must be an address such as 10.0.0.1 or fd00::1"
	notARange    = "must be a range such as 10.244.0.0/16 or fd00:1::/48"
	notAHost     = "must be an address such as 10.0.0.1 or fd00::1, or a DNS name"
	wgKey        = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	podTemplate  = `{selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: b}]}}}`
)

func configuration(remote string) string {
	return `{kind: Configuration, spec: {remote: ` + remote + `}}`
}
func server(spec string) string   { return `{kind: GatewayServer, spec: ` + spec + `}` }
func clientOf(spec string) string { return `{kind: GatewayClient, spec: ` + spec + `}` }
func to(address string) string {
	return clientOf(`{endpoint: {port: 51840, addresses: ["` + address + `"]}}`)
}
func ip(address string) string    { return `{kind: IP, spec: {ip: "` + address + `"}}` }
func network(cidr string) string  { return `{kind: Network, spec: {cidr: "` + cidr + `"}}` }
func publicKey(key string) string { return `{kind: PublicKey, spec: {publicKey: "` + key + `"}}` }
func firewall(table string) string {
	return `{kind: FirewallConfiguration, spec: {table: ` + table + `}}`
}
func chain(chain string) string     { return firewall(`{name: a, family: IPV4, chains: [` + chain + `]}`) }
func filterRule(rule string) string { return filterChain(`filterRules: [` + rule + `]`) }
func filterChain(rules string) string {
	return chain(`{name: a, type: filter, hook: forward, policy: accept, rules: {` + rules + `}}`)
}
func natRule(hook, rule string) string {
	return chain(`{name: a, type: nat, hook: ` + hook + `, policy: accept, rules: {natRules: [` + rule + `]}}`)
}
func match(match string) string { return filterRule(`{action: drop, match: [` + match + `]}`) }
func routes(rule string) string {
	return `{kind: RouteConfiguration, spec: {table: {name: a, rules: [` + rule + `]}}}`
}

var badNetworking = map[string]bad{
	"a Configuration without ranges of the peer":      {manifest: `{kind: Configuration, spec: {}}`, want: "spec.remote: Required value"},
	"a Configuration without pod range":               {manifest: configuration(`{cidr: {external: [10.70.0.0/16]}}`), want: "cidr.pod must name at least one range of the peer's pods"},
	"a Configuration with empty pod ranges":           {manifest: configuration(`{cidr: {pod: []}}`), want: "cidr.pod must name at least one range of the peer's pods"},
	"a range that is an address":                      {manifest: configuration(`{cidr: {pod: [10.244.0.0]}}`), want: notARange},
	"a range with an octet of 256":                    {manifest: configuration(`{cidr: {pod: [10.256.0.0/16]}}`), want: notARange},
	"a range of 33 bits":                              {manifest: configuration(`{cidr: {pod: [10.244.0.0/33]}}`), want: notARange},
	"a range with leading zeros":                      {manifest: configuration(`{cidr: {pod: [010.244.0.0/16]}}`), want: notARange},
	"a range with a leading zero in its length":       {manifest: configuration(`{cidr: {pod: [10.244.0.0/08]}}`), want: notARange},
	"a range with a mask":                             {manifest: configuration(`{cidr: {pod: [10.244.0.0/255.255.0.0]}}`), want: notARange},
	"a range of IPv6 of 129 bits":                     {manifest: configuration(`{cidr: {pod: ["fd00::/129"]}}`), want: notARange},
	"a range of IPv6 that is none":                    {manifest: configuration(`{cidr: {pod: ["fd00:::/48"]}}`), want: notARange},
	"a range of IPv4 in IPv6":                         {manifest: configuration(`{cidr: {pod: ["::ffff:10.0.0.0/104"]}}`), want: notARange},
	"a range in capitals":                             {manifest: configuration(`{cidr: {pod: ["FD00::/48"]}}`), want: notARange},
	"a range with a line after it":                    {manifest: configuration(`{cidr: {pod: ["10.244.0.0/16\n"]}}`), want: notARange},
	"a range as a number":                             {manifest: configuration(`{cidr: {pod: [10]}}`), want: "must be of type string"},
	"a range without end":                             {manifest: configuration(`{cidr: {pod: ["` + long(44) + `"]}}`), want: "Too long: may not be more than 43 bytes"},
	"the same range twice":                            {manifest: configuration(`{cidr: {pod: [10.244.0.0/16, 10.244.0.0/16]}}`), want: "a range is listed once"},
	"the same external range twice":                   {manifest: configuration(`{cidr: {pod: [10.244.0.0/16], external: [10.70.0.0/16, 10.70.0.0/16]}}`), want: "a range is listed once"},
	"33 pod ranges":                                   {manifest: configuration(`{cidr: {pod: ` + ranges(33) + `}}`), want: "spec.remote.cidr.pod: Too many: 33: must have at most 32 items"},
	"33 ranges together":                              {manifest: configuration(`{cidr: {pod: ` + ranges(32) + `, external: [172.16.0.0/16]}}`), want: "a cluster has at most 32 ranges"},
	"a local range that is none":                      {manifest: `{kind: Configuration, spec: {local: {cidr: {pod: [x]}}, remote: {cidr: {pod: [10.244.0.0/16]}}}}`, want: "spec.local.cidr.pod[0]"},
	"a remapped range that is none":                   {live: configuration(`{cidr: {pod: [10.244.0.0/16]}}`), manifest: `{kind: Configuration, status: {remote: {cidr: {pod: [10.61.0.0]}}}}`, status: true, want: notARange},
	"a condition without reason":                      {live: configuration(`{cidr: {pod: [10.244.0.0/16]}}`), manifest: `{kind: Configuration, status: {conditions: [{type: Ready, status: "True", message: a, lastTransitionTime: "2026-01-01T00:00:00Z"}]}}`, status: true, want: "status.conditions[0].reason: Required value"},
	"a GatewayServer without endpoint":                {manifest: server(`{}`), want: "spec.endpoint: Required value"},
	"a GatewayServer without port":                    {manifest: server(`{endpoint: {serviceType: LoadBalancer}}`), want: "spec.endpoint.port: Required value"},
	"a GatewayServer at port 0":                       {manifest: server(`{endpoint: {port: 0}}`), want: "spec.endpoint.port in body should be greater than or equal to 1"},
	"a GatewayServer at port 65536":                   {manifest: server(`{endpoint: {port: 65536}}`), want: "spec.endpoint.port in body should be less than or equal to 65535"},
	"a GatewayServer behind another name":             {manifest: server(`{endpoint: {port: 51840, serviceType: ExternalName}}`), want: `spec.endpoint.serviceType: Unsupported value: "ExternalName": supported values: "ClusterIP", "NodePort", "LoadBalancer"`},
	"a node port without Service that has one":        {manifest: server(`{endpoint: {port: 51840, nodePort: 30000}}`), want: "nodePort needs serviceType NodePort or LoadBalancer"},
	"a negative node port":                            {manifest: server(`{endpoint: {port: 51840, serviceType: NodePort, nodePort: -1}}`), want: "spec.endpoint.nodePort in body should be greater than or equal to 0"},
	"a load balancer's address without load balancer": {manifest: server(`{endpoint: {port: 51840, serviceType: NodePort, loadBalancerIP: 10.0.0.1}}`), want: "loadBalancerIP needs serviceType LoadBalancer"},
	"a load balancer's address that is a name":        {manifest: server(`{endpoint: {port: 51840, serviceType: LoadBalancer, loadBalancerIP: lb.example.com}}`), want: notAnAddress},
	"a GatewayServer with an MTU of 575":              {manifest: server(`{mtu: 575, endpoint: {port: 51840}}`), want: "spec.mtu in body should be greater than or equal to 576"},
	"a GatewayServer with an MTU of 65536":            {manifest: server(`{mtu: 65536, endpoint: {port: 51840}}`), want: "spec.mtu in body should be less than or equal to 65535"},
	"a GatewayServer with a nameless template":        {manifest: server(`{endpoint: {port: 51840}, serverTemplateRef: {kind: WgGatewayServerTemplate}}`), want: "name of the template is required"},
	"a GatewayServer with a name of 61 characters":    {manifest: `{kind: GatewayServer, metadata: {name: ` + long(61) + `}, spec: {endpoint: {port: 51840}}}`, want: "the name has at most 60 lower-case letters, digits and dashes"},
	"a GatewayServer with a dot in its name":          {manifest: `{kind: GatewayServer, metadata: {name: rome.it}, spec: {endpoint: {port: 51840}}}`, want: "the name has at most 60 lower-case letters, digits and dashes"},
	"a gateway at an address that is none":            {live: server(`{endpoint: {port: 51840}}`), manifest: `{kind: GatewayServer, status: {endpoint: {addresses: ["10.0.0.1:51840"]}}}`, status: true, want: notAHost},
	"a gateway's pod at an address that is none":      {live: server(`{endpoint: {port: 51840}}`), manifest: `{kind: GatewayServer, status: {internalEndpoint: {ip: "10.0.0"}}}`, status: true, want: notAnAddress},
	"a gateway's protocol that is none":               {live: server(`{endpoint: {port: 51840}}`), manifest: `{kind: GatewayServer, status: {endpoint: {protocol: SCTP}}}`, status: true, want: `status.endpoint.protocol: Unsupported value: "SCTP": supported values: "TCP", "UDP"`},
	"a GatewayClient that goes nowhere":               {manifest: clientOf(`{}`), want: "spec.endpoint: Required value"},
	"a GatewayClient without address":                 {manifest: clientOf(`{endpoint: {port: 51840, addresses: []}}`), want: "spec.endpoint.addresses in body should have at least 1 items"},
	"a GatewayClient without port":                    {manifest: clientOf(`{endpoint: {addresses: [10.0.0.1]}}`), want: "spec.endpoint.port: Required value"},
	"a GatewayClient with 65 addresses":               {manifest: clientOf(`{endpoint: {port: 51840, addresses: ` + listOf(65, `"gw#.example.com"`) + `}}`), want: "spec.endpoint.addresses: Too many: 65: must have at most 64 items"},
	"a GatewayClient that speaks SCTP":                {manifest: clientOf(`{endpoint: {port: 51840, addresses: [10.0.0.1], protocol: SCTP}}`), want: `spec.endpoint.protocol: Unsupported value: "SCTP": supported values: "TCP", "UDP"`},
	"a gateway's name with a space":                   {manifest: to("gw example"), want: notAHost},
	"a gateway's name that is an URL":                 {manifest: to("https://gw.example.com"), want: notAHost},
	"a gateway's name with a path":                    {manifest: to("gw.example.com/a"), want: notAHost},
	"a gateway's name with a label of 64 characters":  {manifest: to(long(64) + ".example.com"), want: notAHost},
	"a gateway's name that begins with a dash":        {manifest: to("-gw.example.com"), want: notAHost},
	"a gateway's name with a line after it":           {manifest: to(`gw.example.com\n`), want: notAHost},
	"a gateway's address with an octet too many":      {manifest: to("10.0.0.0.1"), want: notAHost},
	"a gateway's address with an octet of 256":        {manifest: to("10.0.0.256"), want: notAHost},
	"a gateway without name":                          {manifest: to(""), want: "spec.endpoint.addresses[0] in body should be at least 1 chars long"},
	"a gateway's name of 254 characters":              {manifest: to(long(254)), want: "Too long: may not be more than 253 bytes"},
	"a PublicKey without key":                         {manifest: `{kind: PublicKey, spec: {}}`, want: "spec.publicKey: Required value"},
	"a key of 31 bytes":                               {manifest: publicKey("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="), want: "spec.publicKey in body should match"},
	"a key of 33 bytes":                               {manifest: publicKey(long(44)), want: "spec.publicKey in body should match"},
	"a key that is no base64":                         {manifest: publicKey("-----BEGIN PUBLIC KEY-----"), want: "spec.publicKey in body must be of type byte"},
	"a Connection of an unknown type":                 {manifest: `{kind: Connection, spec: {type: Peer, gatewayRef: {name: a}}}`, want: `spec.type: Unsupported value: "Peer": supported values: "Server", "Client"`},
	"a Connection without gateway":                    {manifest: `{kind: Connection, spec: {type: Server}}`, want: "spec.gatewayRef: Required value"},
	"a Connection in an unknown state":                {live: `{kind: Connection, spec: {type: Server, gatewayRef: {name: a}}}`, manifest: `{kind: Connection, status: {value: Up}}`, status: true, want: `status.value: Unsupported value: "Up": supported values: "Connecting", "Connected", "Error"`},
	"an InternalFabric without gateway":               {manifest: `{kind: InternalFabric, spec: {interface: {gateway: {ip: 10.70.0.200}}}}`, want: "spec.gatewayIP: Required value"},
	"an InternalFabric at no address":                 {manifest: `{kind: InternalFabric, spec: {gatewayIP: gw, interface: {gateway: {ip: 10.70.0.200}}}}`, want: notAnAddress},
	"an InternalFabric with 33 ranges":                {manifest: `{kind: InternalFabric, spec: {gatewayIP: 10.244.1.200, remoteCIDRs: ` + ranges(33) + `, interface: {gateway: {ip: 10.70.0.200}}}}`, want: "spec.remoteCIDRs: Too many: 33: must have at most 32 items"},
	"a device's name of 16 characters":                {manifest: `{kind: InternalFabric, spec: {gatewayIP: 10.244.1.200, interface: {gateway: {ip: 10.70.0.200}, node: {name: ` + long(16) + `}}}}`, want: "spec.interface.node.name: Too long: may not be more than 15 bytes"},
	"an InternalNode without address":                 {manifest: `{kind: InternalNode, spec: {interface: {node: {}}}}`, want: "spec.interface.node.ip: Required value"},
	"an InternalNode with an address of three octets": {manifest: `{kind: InternalNode, spec: {interface: {node: {ip: "10.70.0"}}}}`, want: notAnAddress},
	"a node with 65 addresses":                        {live: `{kind: InternalNode, spec: {interface: {node: {ip: 10.70.255.254}}}}`, manifest: `{kind: InternalNode, status: {addresses: ` + listOf(65, `"fd00::#"`) + `}}`, status: true, want: "status.addresses: Too many: 65: must have at most 64 items"},
	"a node with a pod range that is none":            {live: `{kind: InternalNode, spec: {interface: {node: {ip: 10.70.255.254}}}}`, manifest: `{kind: InternalNode, status: {podRanges: ["10.244.2.0"]}}`, status: true, want: notARange},
	"an IP without address":                           {manifest: `{kind: IP, spec: {}}`, want: "spec.ip: Required value"},
	"an address with an octet of 999":                 {manifest: ip("10.0.0.999"), want: notAnAddress},
	"an address with leading zeros":                   {manifest: ip("10.0.0.01"), want: notAnAddress},
	"an address of three octets":                      {manifest: ip("10.0.1"), want: notAnAddress},
	"an address that is a name":                       {manifest: ip("example.com"), want: notAnAddress},
	"an address with a length":                        {manifest: ip("10.0.0.1/32"), want: notAnAddress},
	"an address of IPv6 with eight groups and a gap":  {manifest: ip("1:2:3:4:5:6:7::8"), want: notAnAddress},
	"an address of IPv6 with nine groups":             {manifest: ip("1:2:3:4:5:6:7:8:9"), want: notAnAddress},
	"an address of IPv6 with two gaps":                {manifest: ip("1::2::3"), want: notAnAddress},
	"an address of IPv6 with three colons":            {manifest: ip("1:::2"), want: notAnAddress},
	"an address of IPv6 with a group of five":         {manifest: ip("fd00::12345"), want: notAnAddress},
	"an address of IPv6 with a zone":                  {manifest: ip("fe80::1%eth0"), want: notAnAddress},
	"an address of IPv4 in IPv6":                      {manifest: ip("::ffff:10.0.0.1"), want: notAnAddress},
	"an empty address":                                {manifest: ip(""), want: notAnAddress},
	"another address in an IP":                        {live: ip("10.0.0.1"), manifest: ip("10.0.0.2"), want: "ip cannot be changed; create another IP"},
	"an IP with a Service and a name that has none":   {manifest: `{kind: IP, metadata: {name: a.b}, spec: {ip: 10.0.0.1, serviceTemplate: {spec: {ports: [{port: 80}]}}}}`, want: "with serviceTemplate, the name has at most 63 lower-case letters"},
	"an IP with a Service without port":               {manifest: `{kind: IP, spec: {ip: 10.0.0.1, serviceTemplate: {spec: {ports: [{name: a}]}}}}`, want: "spec.serviceTemplate.spec.ports[0].port: Required value"},
	"an IP that was given none":                       {live: ip("10.0.0.1"), manifest: `{kind: IP, status: {ip: "10.70.0"}}`, status: true, want: notAnAddress},
	"an IP that is given another one":                 {live: `{kind: IP, spec: {ip: 10.0.0.1}, status: {ip: 10.70.0.1, cidr: 10.70.0.0/16}}`, manifest: `{kind: IP, status: {ip: 10.70.0.2, cidr: 10.70.0.0/16}}`, status: true, want: "an address that was given cannot be changed, only taken away"},
	"a Network without range":                         {manifest: `{kind: Network, spec: {}}`, want: "spec.cidr: Required value"},
	"a Network that is an address":                    {manifest: network("10.0.0.1"), want: notARange},
	"another range in a Network":                      {live: network("10.0.0.0/16"), manifest: network("10.1.0.0/16"), want: "cidr cannot be changed; create another Network"},
	"a negative number of addresses":                  {manifest: `{kind: Network, spec: {cidr: 10.0.0.0/16, preAllocated: -1}}`, want: "spec.preAllocated in body should be greater than or equal to 0"},
	"another number of addresses":                     {live: network("10.0.0.0/16"), manifest: `{kind: Network, spec: {cidr: 10.0.0.0/16, preAllocated: 1}}`, want: "preAllocated cannot be changed; create another Network"},
	"a Network that was given a shorter range":        {live: network("10.0.0.0/16"), manifest: `{kind: Network, status: {cidr: 10.1.0.0/17}}`, status: true, want: "status.cidr must have the family and the length of spec.cidr"},
	"a Network that was given the other family":       {live: network("10.0.0.0/16"), manifest: `{kind: Network, status: {cidr: "fd00::/16"}}`, status: true, want: "status.cidr must have the family and the length of spec.cidr"},
}

var badTemplates = map[string]bad{
	"a WgGatewayServer without Service":      {manifest: `{kind: WgGatewayServer, spec: {deployment: {spec: ` + podTemplate + `}}}`, want: "spec.service: Required value"},
	"a WgGatewayServer without Deployment":   {manifest: `{kind: WgGatewayServer, spec: {service: {}}}`, want: "spec.deployment: Required value"},
	"a WgGatewayServer with a list in place": {manifest: `{kind: WgGatewayServer, spec: {service: {}, deployment: {spec: [a]}}}`, want: "spec.deployment.spec in body must be of type object"},
	"a WgGatewayServer with a dot":           {manifest: `{kind: WgGatewayServer, metadata: {name: a.b}, spec: {service: {}, deployment: {}}}`, want: "the name has at most 60 lower-case letters, digits and dashes"},
	"a WgGatewayClient without Deployment":   {manifest: `{kind: WgGatewayClient, spec: {}}`, want: "spec.deployment: Required value"},
	"a WgGatewayClient with a long name":     {manifest: `{kind: WgGatewayClient, metadata: {name: ` + long(61) + `}, spec: {deployment: {}}}`, want: "the name has at most 60 lower-case letters, digits and dashes"},
	"metrics that are neither on nor off":    {manifest: `{kind: WgGatewayClient, spec: {deployment: {}, metrics: {}}}`, want: "spec.metrics.enabled: Required value"},
	"a server's template of a client":        {manifest: `{kind: WgGatewayServerTemplate, spec: {objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayClient}, template: {}}}`, want: "kind must be WgGatewayServer"},
	"a client's template of a server":        {manifest: `{kind: WgGatewayClientTemplate, spec: {objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayServer}, template: {}}}`, want: "kind must be WgGatewayClient"},
	"a template of another group's kind":     {manifest: `{kind: WgGatewayServerTemplate, spec: {objectKind: {apiVersion: v1, kind: WgGatewayServer}, template: {}}}`, want: `spec.objectKind.apiVersion: Unsupported value: "v1": supported values: "networking.liqo.io/v1beta1"`},
	"a template of nothing":                  {manifest: `{kind: WgGatewayServerTemplate, spec: {objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayServer}}}`, want: "spec.template: Required value"},
	"a template that is a text":              {manifest: `{kind: WgGatewayServerTemplate, spec: {objectKind: {apiVersion: networking.liqo.io/v1beta1, kind: WgGatewayServer}, template: "{{ .Name }}"}}`, want: "spec.template in body must be of type object"},
}

var badRules = map[string]bad{
	"a table without name":                        {manifest: firewall(`{name: "", family: IPV4}`), want: "spec.table.name in body should be at least 1 chars long"},
	"a table with a space in its name":            {manifest: firewall(`{name: "a b", family: IPV4}`), want: "spec.table.name in body should match"},
	"another name of a table":                     {live: firewall(`{name: a, family: IPV4}`), manifest: firewall(`{name: b, family: IPV4}`), want: "name cannot be changed; create another FirewallConfiguration"},
	"a table of an unknown family":                {manifest: firewall(`{name: a, family: IP}`), want: `spec.table.family: Unsupported value: "IP"`},
	"two chains of one name":                      {manifest: chain(`{name: a, type: filter, hook: forward, policy: accept, rules: {}}, {name: a, type: filter, hook: input, policy: accept, rules: {}}`), want: `spec.table.chains[1]: Duplicate value: {"name":"a"}`},
	"17 chains":                                   {manifest: firewall(`{name: a, family: IPV4, chains: ` + listOf(17, `{name: a#, type: filter, hook: forward, policy: accept, rules: {}}`) + `}`), want: "spec.table.chains: Too many: 17: must have at most 16 items"},
	"257 rules":                                   {manifest: filterChain(`filterRules: ` + listOf(257, `{name: a#, action: drop, match: []}`)), want: "Too many: 257: must have at most 256 items"},
	"a rule of filters in a chain of nat":         {manifest: chain(`{name: a, type: nat, hook: prerouting, policy: accept, rules: {filterRules: [{action: drop, match: []}]}}`), want: "filterRules need a chain of type filter"},
	"a rule of nat in a chain of filters":         {manifest: filterChain(`natRules: [{natType: masquerade, match: []}]`), want: "natRules need a chain of type nat"},
	"a rule of routes in a chain of filters":      {manifest: filterChain(`routeRules: [{name: a}]`), want: "routeRules need a chain of type route"},
	"nat where packets are forwarded":             {manifest: chain(`{name: a, type: nat, hook: forward, policy: accept, rules: {}}`), want: "a chain of type nat has hook prerouting, input, output or postrouting"},
	"routes where packets come in":                {manifest: chain(`{name: a, type: route, hook: input, policy: accept, rules: {}}`), want: "a chain of type route has hook output"},
	"the hook of devices in a table of addresses": {manifest: chain(`{name: a, type: filter, hook: ingress, policy: accept, rules: {}}`), want: "hook ingress needs family INET or NETDEV"},
	"nat in a table of bridges":                   {manifest: firewall(`{name: a, family: BRIDGE, chains: [{name: a, type: nat, hook: prerouting, policy: accept, rules: {}}]}`), want: "chains of type nat and route need family INET, IPV4 or IPV6"},
	"dnat where packets leave":                    {manifest: natRule("postrouting", `{natType: dnat, to: 10.0.0.1, match: []}`), want: "dnat needs hook prerouting or output, snat hook input or postrouting, masquerade hook postrouting"},
	"snat where packets come in":                  {manifest: natRule("prerouting", `{natType: snat, to: 10.0.0.1, match: []}`), want: "dnat needs hook prerouting or output, snat hook input or postrouting, masquerade hook postrouting"},
	"masquerade where packets come in":            {manifest: natRule("input", `{natType: masquerade, match: []}`), want: "dnat needs hook prerouting or output, snat hook input or postrouting, masquerade hook postrouting"},
	"dnat to nothing":                             {manifest: natRule("prerouting", `{natType: dnat, match: []}`), want: "natType dnat and snat need to, and masquerade takes none"},
	"masquerade to an address":                    {manifest: natRule("postrouting", `{natType: masquerade, to: 10.0.0.1, match: []}`), want: "natType dnat and snat need to, and masquerade takes none"},
	"dnat to a name":                              {manifest: natRule("prerouting", `{natType: dnat, to: example.com, match: []}`), want: "spec.table.chains[0].rules.natRules[0].to in body should match"},
	"dnat to a port":                              {manifest: natRule("prerouting", `{natType: dnat, to: "10.0.0.1:80", match: []}`), want: "spec.table.chains[0].rules.natRules[0].to in body should match"},
	"an action that does not exist":               {manifest: filterRule(`{action: log, match: []}`), want: `action: Unsupported value: "log"`},
	"a mark without value":                        {manifest: filterRule(`{action: ctmark, match: []}`), want: "action ctmark needs a value"},
	"a mark that is a word":                       {manifest: filterRule(`{action: ctmark, value: one, match: []}`), want: "filterRules[0].value in body should match"},
	"a segment size of UDP":                       {manifest: filterRule(`{action: tcpmssclamp, match: [{op: eq, proto: {value: udp}}]}`), want: "action tcpmssclamp needs a match of protocol tcp"},
	"a match of nothing":                          {manifest: match(`{op: eq}`), want: "one of ip, port, proto and dev is required"},
	"a match of nine parts":                       {manifest: filterRule(`{action: drop, match: ` + listOf(9, `{op: eq, dev: {position: in, value: eth#}}`) + `}`), want: "Too many: 9: must have at most 8 items"},
	"a match with an unknown operation":           {manifest: match(`{op: lt, proto: {value: tcp}}`), want: `op: Unsupported value: "lt": supported values: "eq", "neq"`},
	"a match of an unknown protocol":              {manifest: match(`{op: eq, proto: {value: icmp}}`), want: `proto.value: Unsupported value: "icmp": supported values: "tcp", "udp"`},
	"a match of an address that is none":          {manifest: match(`{op: eq, ip: {position: src, value: "10.0.0.256"}}`), want: "ip.value in body should match"},
	"a match of three addresses":                  {manifest: match(`{op: eq, ip: {position: src, value: 10.0.0.1-10.0.0.2-10.0.0.3}}`), want: "ip.value in body should match"},
	"a match of an address nowhere":               {manifest: match(`{op: eq, ip: {position: any, value: 10.0.0.1}}`), want: `ip.position: Unsupported value: "any": supported values: "src", "dst"`},
	"a match of port 0":                           {manifest: match(`{op: eq, port: {position: dst, value: "0"}}`), want: "port.value in body should match"},
	"a match of port 65536":                       {manifest: match(`{op: eq, port: {position: dst, value: "65536"}}`), want: "port.value in body should match"},
	"a match of ports from high to low":           {manifest: match(`{op: eq, port: {position: dst, value: 4000-3000}}`), want: "the lower port comes first"},
	"a match of a device with a slash":            {manifest: match(`{op: eq, dev: {position: in, value: a/b}}`), want: "dev.value in body should match"},
	"a host's condition of another type":          {live: firewall(`{name: a, family: IPV4}`), manifest: `{kind: FirewallConfiguration, status: {conditions: [{host: a, type: Ready, status: "True"}]}}`, status: true, want: `status.conditions[0].type: Unsupported value: "Ready": supported values: "Applied", "Error"`},
	"a host's condition twice":                    {live: firewall(`{name: a, family: IPV4}`), manifest: `{kind: FirewallConfiguration, status: {conditions: [{host: a, type: Applied, status: "True"}, {host: a, type: Applied, status: "False"}]}}`, status: true, want: `status.conditions[1]: Duplicate value: {"host":"a","type":"Applied"}`},
	"routes without rule":                         {manifest: routes(``), want: "spec.table.rules in body should have at least 1 items"},
	"routes for all packets of the host":          {manifest: routes(`{routes: [{dst: 10.0.0.0/8, dev: eth0}]}`), want: "one of dst, src, iif, oif and fwmark is required: a rule without any would take all packets of the host"},
	"a route that leads nowhere":                  {manifest: routes(`{dst: 10.0.0.0/8, routes: [{dst: 10.0.0.0/8}]}`), want: "one of gw and dev is required"},
	"two routes to one destination":               {manifest: routes(`{dst: 10.0.0.0/8, routes: [{dst: 10.0.0.0/8, dev: a}, {dst: 10.0.0.0/8, dev: b}]}`), want: `routes[1]: Duplicate value: {"dst":"10.0.0.0/8"}`},
	"65 rules":                                    {manifest: routes(strings.Trim(listOf(65, `{iif: a#, routes: []}`), "[]")), want: "Too many: 65: must have at most 64 items"},
	"129 routes":                                  {manifest: routes(`{iif: a, routes: ` + listOf(129, `{dst: 10.#.0.0/16, dev: a}`) + `}`), want: "Too many: 129: must have at most 128 items"},
	"a rule of a destination that is none":        {manifest: routes(`{dst: 10.0.0.1, routes: []}`), want: notARange},
	"a next hop that is a range":                  {manifest: routes(`{dst: 10.0.0.0/8, routes: [{dst: 10.0.0.0/8, gw: 10.0.0.0/24}]}`), want: notAnAddress},
	"a route of an unknown scope":                 {manifest: routes(`{dst: 10.0.0.0/8, routes: [{dst: 10.0.0.0/8, dev: a, scope: universe}]}`), want: `scope: Unsupported value: "universe"`},
	"a mark of 33 bits":                           {manifest: routes(`{fwmark: 4294967296, routes: []}`), want: "fwmark in body should be less than or equal to 4294967295"},
	"a priority after those of the kernel":        {manifest: routes(`{iif: a, priority: 32766, routes: []}`), want: "priority in body should be less than or equal to 32765"},
	"another name of a table of routes":           {live: routes(`{iif: a, routes: []}`), manifest: `{kind: RouteConfiguration, spec: {table: {name: b, rules: [{iif: a, routes: []}]}}}`, want: "name cannot be changed; create another RouteConfiguration"},
}
