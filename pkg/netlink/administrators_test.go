package netlink

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"liqo.io/liqo/pkg/dataplane"
)

func parsed(text string) netip.Addr { return netip.MustParseAddr(text) }

// administrators are tables, routes and rules with all that administrators may ask for, besides what a node needs itself.
func administrators(t *testing.T) dataplane.State {
	t.Helper()
	do := func(all ...dataplane.Statement) []dataplane.Statement { return all }
	filter := dataplane.Chain{Name: "filter", Hook: dataplane.Forward, Priority: -10, Drops: true, Rules: []dataplane.ChainRule{
		{Match: []dataplane.Match{{Field: dataplane.Source, First: parsed("10.61.0.0"), Last: parsed("10.61.0.9")}, {Field: dataplane.TCPPort, Number: 80, Through: 90}}, Do: do(dataplane.Statement{Do: dataplane.Count}, dataplane.Statement{Do: dataplane.Accept})},
		{Match: []dataplane.Match{{Field: dataplane.Destination6, Not: true, First: parsed("fd00::"), Last: parsed("fd00::ff")}}, Do: do(dataplane.Statement{Do: dataplane.Reject, Name: "icmpx"})},
		{Match: []dataplane.Match{{Field: dataplane.UDPSource, Number: 53, Not: true}}, Do: do(dataplane.Statement{Do: dataplane.MarkConnection, Mark: 0xff})},
		{Match: []dataplane.Match{{Field: dataplane.Transport, Number: 17, Not: true}}, Do: do(dataplane.Statement{Do: dataplane.MarkPacket})},
		{Match: []dataplane.Match{{Field: dataplane.Transport, Number: 6}, {Field: dataplane.Opening}}, Do: do(dataplane.Statement{Do: dataplane.Clamp})},
		{Match: []dataplane.Match{{Field: dataplane.InDevice, Device: "eth0"}, {Field: dataplane.TCPSource, Number: 1}}, Do: do(dataplane.Statement{Do: dataplane.Drop})},
	}}
	nat := []dataplane.Chain{
		{Name: "in", Hook: dataplane.Prerouting, Priority: -101, NAT: true, Rules: []dataplane.ChainRule{
			{Do: do(dataplane.Statement{Do: dataplane.DNAT, Address: netip.AddrPortFrom(parsed("10.0.0.1"), 0)})},
			{Do: do(dataplane.Statement{Do: dataplane.DNAT, Prefix: netip.MustParsePrefix("10.9.0.0/16")})},
		}},
		{Name: "out", Hook: dataplane.Postrouting, Priority: 110, NAT: true, Rules: []dataplane.ChainRule{
			{Do: do(dataplane.Statement{Do: dataplane.SNAT, Address: netip.AddrPortFrom(parsed("192.0.2.1"), 0)})}, {Do: do(dataplane.Statement{Do: dataplane.Masquerade})},
		}},
	}
	table := dataplane.AdministratorTable("test")
	asked := dataplane.State{
		Firewall: []dataplane.Table{
			{Family: "inet", Name: "liqo/both", Chains: []dataplane.Chain{filter}},
			{Family: "ip", Name: "liqo/nat", Chains: append(nat, dataplane.Chain{Name: "raw", Hook: dataplane.Prerouting, Priority: -300, Rules: []dataplane.ChainRule{
				{Do: do(dataplane.Statement{Do: dataplane.Notrack})}, {Do: do(dataplane.Statement{Do: dataplane.Reject, Name: "icmp"})},
			}})},
			{Family: "ip6", Name: "liqo/six", Chains: []dataplane.Chain{{Name: "c", Hook: dataplane.Input, Rules: []dataplane.ChainRule{{Do: do(dataplane.Statement{Do: dataplane.Reject, Name: "icmpv6"})}}}}},
		},
		Routes: []dataplane.Route{
			{Table: table, Destination: netip.MustParsePrefix("0.0.0.0/0"), Via: parsed("172.31.1.254"), Near: true},
			{Table: table, Destination: netip.MustParsePrefix("192.0.2.0/24"), Device: "eth0", Source: parsed("172.31.1.2"), Scope: dataplane.ScopeGlobal},
			{Table: table, Destination: netip.MustParsePrefix("192.0.2.9/32"), Device: "eth0", Via: parsed("10.1.1.1")},
		},
		Rules: []dataplane.Rule{
			{Priority: 32000, Mark: 0xff, Table: table},
			{Priority: 90, To: netip.MustParsePrefix("192.0.2.0/24"), From: netip.MustParsePrefix("10.244.0.0/16"), In: "cni0", Table: table},
			{Priority: 91, Out: "eth0", Table: table},
		},
	}
	return nodeState(t, nil).With(asked)
}

// partsOf are the parts of administrators that are in a State.
func partsOf(state dataplane.State) (all []string) {
	for _, thing := range state.Firewall {
		all = append(all, thing.Part())
	}
	for _, thing := range state.Routes {
		all = append(all, thing.Part())
	}
	for _, thing := range state.Rules {
		all = append(all, thing.Part())
	}
	return slices.DeleteFunc(all, func(part string) bool { return part == dataplane.OwnPart })
}

const withDevice = "ip link add name eth0 type veth peer name eth1; ip link set eth0 up; ip link set eth1 up; ip addr add 172.31.1.2/24 dev eth0"

// What administrators ask for is read as it was applied, comes back when somebody takes it away, and goes with the last word about it; what is not
// known of them stays.
func TestTheKernelHasWhatAdministratorsAskFor(t *testing.T) {
	space := namespace(t)
	foreign(t, space, withDevice)
	k, state := opened(t, space), administrators(t)
	same := func(when string) {
		t.Helper()
		read, err := k.Read(state)
		if err != nil {
			t.Fatal(err)
		}
		if d := diff(state, read); d != "" {
			t.Fatalf("%s, it is read as (-want +got):\n%s", when, d)
		}
		if changes := apply(t, k, state); changes != nil {
			t.Fatalf("%s, it is changed when it is there: %q", when, changes)
		}
	}
	apply(t, k, state)
	same("after it was applied")
	foreign(t, space, "nft delete table ip liqo/nat; nft flush chain inet liqo/both filter; ip rule del pref 91; ip route flush table "+strings.Fields(state.Routes[len(state.Routes)-1].Part())[2])
	apply(t, k, state)
	same("after it was taken away")
	unknown := nodeState(t, nil)
	unknown.Kept = []string{dataplane.AllParts}
	if changes := apply(t, k, unknown); changes != nil {
		t.Errorf("what is not known was changed: %q", changes)
	}
	apply(t, k, nodeState(t, nil))
	read, err := k.Read(dataplane.State{})
	if err != nil {
		t.Fatal(err)
	}
	if left := partsOf(read); len(left) > 0 {
		t.Errorf("what is not asked for any more is left: %q", left)
	}
}

// A table that is refused in another family stays as it was in the one that it had.
func TestATableKeepsItsFamilyUntilItMayHaveAnother(t *testing.T) {
	k, state := opened(t, namespace(t)), nodeState(t, nil)
	drops := dataplane.Chain{Name: "c", Hook: dataplane.Forward, Drops: true}
	before := dataplane.Table{Family: "ip", Name: "liqo/x", Chains: []dataplane.Chain{drops}}
	apply(t, k, state.With(dataplane.State{Firewall: []dataplane.Table{before}}))
	// Where packets are sent on to others is decided before they are forwarded.
	after := dataplane.Table{Family: "inet", Name: "liqo/x", Chains: []dataplane.Chain{drops, {Name: "d", Hook: dataplane.Forward, NAT: true}}}
	wanted := state.With(dataplane.State{Firewall: []dataplane.Table{after}})
	_, err := k.Apply(wanted)
	var refused *Refused
	if !errors.As(err, &refused) || refused.Parts[after.Part()] == nil {
		t.Fatalf("a table that cannot be: %v", err)
	}
	read, err := k.Read(wanted)
	if err != nil || !slices.ContainsFunc(read.Firewall, func(table dataplane.Table) bool { return table.Family == before.Family && table.Name == before.Name }) {
		t.Errorf("the kernel has (error %v)\n%s", err, read)
	}
	after.Chains = after.Chains[:1]
	apply(t, k, state.With(dataplane.State{Firewall: []dataplane.Table{after}}))
	if read, err = k.Read(wanted); err != nil || !slices.Equal(partsOf(read), []string{after.Part()}) {
		t.Errorf("in the end there are %q, error %v", partsOf(read), err)
	}
}

// What the kernel refuses of administrators is told, leads no packet anywhere, and keeps nothing else from its place; a table that is part of one
// transaction stays as it was. When the kernel can have it, it has it.
func TestWhatIsRefusedOfAdministrators(t *testing.T) {
	space := namespace(t)
	k, state := opened(t, space), administrators(t)
	_, err := k.Apply(state)
	var refused *Refused
	part := state.Routes[len(state.Routes)-1].Part()
	if !errors.As(err, &refused) || len(refused.Parts) != 1 || refused.Parts[part] == nil {
		t.Fatalf("without the device: %v, want that %s is refused", err, part)
	}
	read, err := k.Read(state)
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Rules) != 0 || len(read.Firewall) != len(state.Firewall) {
		t.Errorf("the kernel has\n%s", read)
	}
	ctx, cancel := context.WithCancel(t.Context())
	wanted, reports, ended := make(chan dataplane.State, 1), make(chan Report, 64), make(chan error, 1)
	wanted <- state
	go func() { ended <- k.Keep(ctx, wanted, func(r Report) { reports <- r }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	for refusing := true; refusing; {
		select {
		case r := <-reports:
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if r.Refused[part] != nil {
				foreign(t, space, withDevice)
			}
			refusing = len(r.Refused) > 0
		case <-time.After(30 * time.Second):
			t.Fatal("after 30 s the routes by the device that came are not there")
		}
	}
	if rules := foreign(t, space, "ip rule show"); !strings.Contains(rules, "lookup "+strings.Fields(part)[2]) {
		t.Errorf("the rules are\n%s", rules)
	}
}
