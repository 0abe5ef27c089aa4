package network

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/test/lab/golden"
	"liqo.io/liqo/test/lab/spec"
)

func TestChoose(t *testing.T) {
	var all []netip.Prefix
	all = append(all, netip.MustParsePrefix("172.16.0.0/12"))
	for sentence, c := range map[string]struct {
		taken []netip.Prefix
		want  string
	}{
		"first one on an empty machine":  {nil, "172.30.0.0/24"},
		"next one beside another lab":    {[]netip.Prefix{netip.MustParsePrefix("172.30.0.0/24")}, "172.30.1.0/24"},
		"a gap is used":                  {[]netip.Prefix{netip.MustParsePrefix("172.30.0.0/24"), netip.MustParsePrefix("172.30.2.0/24")}, "172.30.1.0/24"},
		"a single host route counts":     {[]netip.Prefix{netip.MustParsePrefix("172.30.0.7/32")}, "172.30.1.0/24"},
		"unrelated routes do not matter": {[]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}, "172.30.0.0/24"},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, err := Choose(c.taken)
			if err != nil || got.String() != c.want {
				t.Errorf("got %s, %v, want %s", got, err, c.want)
			}
		})
	}
	if _, err := Choose(all); err == nil || !strings.Contains(err.Error(), "take another lab down") {
		t.Errorf("error = %v, want one with a remedy", err)
	}
}

func TestParseRoutes(t *testing.T) {
	got, err := parseRoutes([]byte(`[{"dst":"default","dev":"eth0"},{"dst":"192.0.2.0/24"},{"dst":"172.30.0.1","type":"local"}]`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("[192.0.2.0/24 172.30.0.1/32]", fmt.Sprint(got)); diff != "" {
		t.Errorf("routes differ (-want +got):\n%s", diff)
	}
}

func TestRendering(t *testing.T) {
	separate := spec.Demo(2)
	separate.Flat = false
	separate.Clusters[1].PodCIDR = separate.Clusters[0].PodCIDR
	services := spec.Demo(2)
	services.FlatServices = true
	routed := separate
	routed.Routed = true
	encapsulated := spec.Demo(2)
	encapsulated.Flat = false
	encapsulated.Clusters[0].CNI = spec.Flannel
	for name, lab := range map[string]spec.Lab{"flat.txt": spec.Demo(2), "services.txt": services, "separate.txt": separate, "routed.txt": routed, "encapsulated.txt": encapsulated} {
		t.Run(name, func(t *testing.T) {
			golden.Check(t, name, describe(NewPlan(lab.Complete(), netip.MustParsePrefix("172.30.4.0/24"))))
		})
	}
}

func TestNamesFit(t *testing.T) {
	a, b := Plan{Lab: "a-name-of-20-letters"}, Plan{Lab: "a-name-of-20-lettert"}
	if len(a.HostInterface()) > 15 || a.HostInterface() == b.HostInterface() {
		t.Errorf("interfaces %s and %s must differ and have at most 15 characters", a.HostInterface(), b.HostInterface())
	}
}

func TestOnlyRoutersHaveMoreFaultsThanCuts(t *testing.T) {
	if err := (Plan{}).Forget(t.Context()); !errors.Is(err, ErrNoRouter) {
		t.Errorf("forgetting connections: error = %v, want a refusal", err)
	}
	for name, fault := range map[string]Fault{"UDP": {NoUDP: true}, "MTU": {MTU: 1300}, "NAT": {NAT: Symmetric}, "loss": {Loss: 5}, "delay": {Delay: time.Second}} {
		if err := (Plan{}).SetFaults(t.Context(), []Fault{fault}); !errors.Is(err, ErrNoRouter) {
			t.Errorf("%s: error = %v, want a refusal", name, err)
		}
	}
}

// describe shows everything that is applied for a plan.
func describe(p Plan) string {
	var b strings.Builder
	section := func(title, text string) { fmt.Fprintf(&b, "# %s\n%s\n", title, text) }
	section("host", p.renderSwitch())
	section(p.Switch(), p.renderBridge())
	for _, e := range p.Endpoints {
		section(p.Switch()+": port of "+e.Namespace, p.renderPort(e))
		section(e.Namespace, p.renderEndpoint(e))
		if e.masquerades() {
			section(e.Namespace+": nftables", p.renderMasquerade(e))
		}
	}
	section("no link cut", p.renderFaults(nil))
	section("rome and milan cut", p.renderFaults([]Fault{{A: "milan", B: "rome", Cut: true}}))
	if p.Routed {
		section("rome behind an address, UDP blocked, a small MTU", p.renderFaults([]Fault{{A: "rome", B: "milan", NoUDP: true, MTU: 1300, NAT: PortRestricted}}))
		slow := []Fault{{A: "rome", B: "milan", Loss: 5, Delay: 50 * time.Millisecond}}
		section("a slow link from rome to milan that loses packets", p.renderFaults(slow)+p.renderRelays(slow, map[string]bool{"br1": true}))
		section("as fast as before", p.renderRelays(nil, map[string]bool{"br1": true, "relay1-2": true}))
		section("rome behind an address, with random ports", p.renderFaults([]Fault{{A: "rome", B: "milan", NAT: Symmetric}}))
	}
	return b.String()
}
