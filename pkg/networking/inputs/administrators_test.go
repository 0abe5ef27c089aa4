package inputs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

var (
	aNode    = Host{Category: networkingv1beta1.CategoryFabric, Unique: "node-2", Namespace: "liqo", Own: "liqo"}
	aGateway = Host{Category: networkingv1beta1.CategoryGateway, Unique: "milan", Namespace: "liqo", Own: "liqo-tenant-milan"}
)

func asked(t *testing.T) (objects AdministratorObjects) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "administrators.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &objects); err != nil {
		t.Fatal(err)
	}
	return objects
}

// What administrators ask for becomes tables of its own, of nodes and of gateways; an object is for whom its labels and its namespace say.
func TestStatesOfAdministrators(t *testing.T) {
	objects := asked(t)
	for name, host := range map[string]Host{"administrators-node.txt": aNode, "administrators-gateway.txt": aGateway} {
		state, requests := Administrators(host, objects)
		var told []string
		for _, r := range requests {
			if r.Refused != nil {
				t.Errorf("%s: %s is refused: %v", name, r.Meta.Name, r.Refused)
			}
			told = append(told, "# "+r.Kind+" "+r.Meta.Namespace+"/"+r.Meta.Name+": "+r.Part)
		}
		golden(t, name, strings.Join(told, "\n")+"\n"+state.String())
		backwards := AdministratorObjects{slices.Clone(objects.Firewalls), slices.Clone(objects.Routes)}
		slices.Reverse(backwards.Firewalls)
		slices.Reverse(backwards.Routes)
		if other, _ := Administrators(host, backwards); other.String() != state.String() {
			t.Errorf("%s: in another order the objects make %s", name, other)
		}
	}
	if state, requests := Administrators(Host{Category: networkingv1beta1.CategoryGateway, Unique: "rome", Namespace: "other", Own: "liqo-tenant-rome"}, objects); len(requests) > 0 || state.String() != "" {
		t.Errorf("objects for others: %s %v", state, requests)
	}
}

// Of two objects with a table of one name, the elder has it.
func TestTheElderHasTheName(t *testing.T) {
	objects := asked(t)
	second := *objects.Firewalls[0].DeepCopy()
	second.Name, second.UID, second.CreationTimestamp = "a-second", "u-second", metav1.Now()
	objects.Firewalls = append([]networkingv1beta1.FirewallConfiguration{second}, objects.Firewalls...)
	state, requests := Administrators(aNode, objects)
	for _, r := range requests {
		if (r.Refused != nil) != (r.Meta.Name == second.Name) {
			t.Errorf("%s: %v", r.Meta.Name, r.Refused)
		}
	}
	if state.Kept != nil {
		t.Errorf("%q stay as they are, although the elder's table is wanted", state.Kept)
	}
}

// refusedFirewalls are chains that cannot be carried out, by what is wrong, in which host.
var refusedFirewalls = map[string]struct {
	host        Host
	table, want string
}{
	"bridges":             {aNode, `{name: a, family: BRIDGE}`, "family BRIDGE is not supported: use IPV4, IPV6 or INET"},
	"a long name":         {aNode, `{name: ` + strings.Repeat("a", 251) + `, family: IPV4}`, "more than 250 characters"},
	"ingress":             {aNode, inChain("filter", "ingress", 0, ""), "hook ingress is not supported"},
	"routes":              {aNode, inChain("route", "output", 0, ""), "type route is not supported"},
	"nat too early":       {aNode, inChain("nat", "prerouting", -200, ""), "priority of a chain of type nat is higher than -200"},
	"nat in a gateway":    {aGateway, inChain("nat", "prerouting", 0, ""), "a gateway knows no connections, so it cannot carry out type nat"},
	"nat before ours":     {aNode, inChain("nat", "postrouting", 99, `natRules: [{natType: masquerade, match: []}]`), "would take packets to peers from it"},
	"nat of ours":         {aNode, inChain("nat", "postrouting", 99, `natRules: [{natType: masquerade, match: [{op: eq, dev: {value: cni-liqo, position: out}}]}]`), "would take packets to peers"},
	"to another family":   {aNode, inChain("nat", "prerouting", 0, `natRules: [{natType: dnat, to: "fd00::1", match: []}]`), "a table of family ip cannot translate to fd00::1"},
	"one name twice":      {aNode, filters(`{name: x, action: accept, match: []}, {name: x, action: drop, match: []}`), "rule x: another rule of the chain has its name"},
	"a range backwards":   {aNode, filters(`{action: drop, match: [{op: eq, ip: {value: 10.0.0.9-10.0.0.1, position: src}}]}`), "rule 1: 10.0.0.9-10.0.0.1 is no range"},
	"another family":      {aNode, filters(`{action: drop, match: [{op: eq, ip: {value: "fd00::/8", position: src}}]}`), "no packet of a table of family ip has an address like fd00::/8"},
	"ports of nothing":    {aNode, filters(`{action: drop, match: [{op: neq, proto: {value: tcp}}, {op: eq, proto: {value: tcp}, port: {value: "80", position: dst}}]}`), "no packet with ports"},
	"out before it is":    {aNode, inChain("filter", "input", 0, `filterRules: [{action: drop, match: [{op: eq, dev: {value: eth0, position: out}}]}]`), "in hook input it is not known by which device"},
	"in of its own":       {aNode, inChain("filter", "output", 0, `filterRules: [{action: drop, match: [{op: eq, dev: {value: eth0, position: in}}]}]`), "have not come by a device"},
	"notrack too late":    {aNode, inChain("filter", "prerouting", 0, `filterRules: [{action: notrack, match: []}]`), "a priority lower than -200"},
	"notrack elsewhere":   {aNode, inChain("filter", "forward", -300, `filterRules: [{action: notrack, match: []}]`), "action notrack needs hook prerouting or output"},
	"marks in a gateway":  {aGateway, filters(`{action: ctmark, value: "1", match: []}`), "a gateway knows no connections"},
	"marks too early":     {aNode, inChain("filter", "prerouting", -300, `filterRules: [{action: metamarkfromctmark, match: []}]`), "before the kernel knows the connection"},
	"a mark of 33 bits":   {aNode, filters(`{action: ctmark, value: "4294967296", match: []}`), "is not a number of 32 bits"},
	"a late reject":       {aNode, inChain("filter", "postrouting", 0, `filterRules: [{action: reject, match: []}]`), "not possible in hook postrouting"},
	"a long segment":      {aNode, filters(`{action: tcpmssclamp, value: "65536", match: []}`), "a segment has at most 65535 bytes"},
	"a way not known yet": {aNode, inChain("filter", "prerouting", 0, `filterRules: [{action: tcpmssclamp, match: []}]`), "the way is not known yet in hook prerouting"},
}

func inChain(kind, hook string, priority int, rules string) string {
	text, _ := yaml.Marshal(priority)
	return `{name: a, family: IPV4, chains: [{name: c, type: ` + kind + `, hook: ` + hook + `, policy: accept, priority: ` + strings.TrimSpace(string(text)) + `, rules: {` + rules + `}}]}`
}

func filters(rules string) string { return inChain("filter", "forward", 0, "filterRules: ["+rules+"]") }

// What cannot be carried out is said in words, and what the kernel has of it stays.
func TestRefusedFirewalls(t *testing.T) {
	for name, tc := range refusedFirewalls {
		object := networkingv1beta1.FirewallConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: tc.host.Own, Labels: map[string]string{
			networkingv1beta1.FirewallCategoryLabel: tc.host.Category, networkingv1beta1.FirewallUniqueLabel: tc.host.Unique,
		}}}
		if err := yaml.UnmarshalStrict([]byte(tc.table), &object.Spec.Table); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		state, requests := Administrators(tc.host, AdministratorObjects{Firewalls: []networkingv1beta1.FirewallConfiguration{object}})
		refused(t, name, state, requests, "table liqo/"+string(object.Spec.Table.Name), tc.want)
	}
}

func refused(t *testing.T, name string, state dataplane.State, requests []Request, part, want string) {
	t.Helper()
	if len(requests) != 1 || requests[0].Refused == nil || !strings.Contains(requests[0].Refused.Error(), want) {
		t.Errorf("%s: %+v, want %q", name, requests, want)
		return
	}
	if state.String() != "" || !slices.Equal(state.Kept, []string{part}) {
		t.Errorf("%s: it makes %s, and %q stay; want nothing, and %q", name, state, state.Kept, part)
	}
}

// refusedRoutes are rules that cannot be carried out.
var refusedRoutes = map[string]struct {
	host        Host
	rules, want string
}{
	"IPv6":                      {aNode, `{dst: "fd00::/8", routes: []}`, "not of IPv4, which alone is routed"},
	"a next hop of IPv6":        {aNode, `{dst: 10.0.0.0/8, routes: [{dst: 10.0.0.0/8, gw: "fd00::1", dev: a}]}`, "not of IPv4"},
	"no mark":                   {aNode, `{fwmark: 0, routes: []}`, "fwmark 0 is that of packets without a mark"},
	"a rule twice":              {aNode, `{iif: a, routes: []}, {iif: a, routes: []}`, "rule 2: another rule says the same"},
	"two ways":                  {aNode, `{iif: a, routes: [{dst: 10.0.0.0/8, dev: a}]}, {iif: b, routes: [{dst: 10.0.0.0/8, dev: b}]}`, "another rule of the table has another route to it"},
	"onlink anywhere":           {aNode, `{iif: a, routes: [{dst: 10.0.0.0/8, gw: 10.0.0.1, onlink: true}]}`, "onlink needs gw and dev"},
	"a gateway's own":           {aGateway, `{dst: 10.0.0.0/8, priority: 50, routes: []}`, "it has to say that packets came by liqo or liqo-tunnel"},
	"what ends of a tunnel ask": {aGateway, `{iif: liqo-tunnel, priority: 50, routes: []}`, "leave out 169.254.18.0/30"},
}

func TestRefusedRoutes(t *testing.T) {
	for name, tc := range refusedRoutes {
		object := networkingv1beta1.RouteConfiguration{ObjectMeta: metav1.ObjectMeta{Namespace: tc.host.Own, Labels: map[string]string{
			networkingv1beta1.RouteCategoryLabel: tc.host.Category, networkingv1beta1.RouteUniqueLabel: tc.host.Unique,
		}}}
		if err := yaml.UnmarshalStrict([]byte(`{name: a, rules: [`+tc.rules+`]}`), &object.Spec.Table); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		state, requests := Administrators(tc.host, AdministratorObjects{Routes: []networkingv1beta1.RouteConfiguration{object}})
		refused(t, name, state, requests, dataplane.Route{Table: dataplane.AdministratorTable("a")}.Part(), tc.want)
	}
}
