package inputs

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// The numbers of protocols.
const tcp, udp = 6, 17

const (
	// conntrack is the priority of the kernel's own chain by which it learns of connections, in hooks prerouting and output.
	conntrack = -200
	// maxTableName is how long the name of a table may be, so that the kernel takes it with our prefix.
	maxTableName = 255 - len(dataplane.AdministratorPrefix)
)

var tableFamilies = map[networkingv1beta1.TableFamily]string{"IPV4": "ip", "IPV6": "ip6", "INET": "inet"}

// firewall makes a table of an administrator's. If it cannot be made, its name alone is returned.
func firewall(host Host, wanted networkingv1beta1.Table) (dataplane.Table, error) {
	table := dataplane.Table{Name: dataplane.AdministratorPrefix + string(wanted.Name), Family: tableFamilies[wanted.Family]}
	named := dataplane.Table{Name: table.Name}
	if table.Family == "" {
		return named, fmt.Errorf("family %s is not supported: use IPV4, IPV6 or INET", wanted.Family)
	}
	if len(wanted.Name) > maxTableName {
		return named, fmt.Errorf("the name of the table has more than %d characters", maxTableName)
	}
	for i := range wanted.Chains {
		chain, err := (&chainMaker{host: host, family: table.Family, from: &wanted.Chains[i]}).chain()
		if err != nil {
			return named, fmt.Errorf("chain %s: %w", wanted.Chains[i].Name, err)
		}
		table.Chains = append(table.Chains, chain)
	}
	return table, nil
}

// chainMaker makes a chain.
type chainMaker struct {
	host   Host
	family string
	from   *networkingv1beta1.Chain
}

func (c *chainMaker) chain() (dataplane.Chain, error) {
	from := c.from
	chain := dataplane.Chain{
		Name: string(from.Name), Hook: dataplane.Hook(from.Hook), Priority: int(from.Priority), NAT: from.Type == "nat", Drops: from.Policy == "drop",
	}
	if err := c.supported(); err != nil {
		return chain, err
	}
	names := map[string]bool{}
	add := func(i int, name *string, rules []dataplane.ChainRule, err error) error {
		of := fmt.Sprintf("rule %d", i+1)
		if name != nil {
			of = "rule " + *name
			if names[*name] && err == nil {
				err = errors.New("another rule of the chain has its name")
			}
			names[*name] = true
		}
		if err != nil {
			return fmt.Errorf("%s: %w", of, err)
		}
		chain.Rules = append(chain.Rules, rules...)
		return nil
	}
	for i := range from.Rules.FilterRules {
		rule := &from.Rules.FilterRules[i]
		rules, err := c.filter(rule)
		if err := add(i, rule.Name, rules, err); err != nil {
			return chain, err
		}
	}
	for i := range from.Rules.NatRules {
		rule := &from.Rules.NatRules[i]
		rules, err := c.nat(rule)
		if err := add(i, rule.Name, rules, err); err != nil {
			return chain, err
		}
	}
	if !c.gateway() && chain.TakesPeers() {
		return chain, fmt.Errorf("it comes before Liqo's own translation and would take packets to peers from it: "+
			"give it priority %d or a higher one, or each of its rules a match (op neq) of device %s, position out",
			dataplane.PrioritySrcNAT, dataplane.NodeDevice)
	}
	return chain, nil
}

// supported refuses chains that cannot be had.
func (c *chainMaker) supported() error {
	nat := c.from.Type == "nat"
	switch {
	case c.from.Hook == "ingress":
		return errors.New("hook ingress is not supported: a chain has no field for the device that it would need")
	case c.from.Type == "route":
		return errors.New("type route is not supported: its rules do nothing; " +
			"mark packets in a chain of type filter, and use a RouteConfiguration with fwmark")
	case nat && c.gateway():
		return errors.New("a gateway knows no connections, so it cannot carry out type nat; translate addresses on the nodes (category fabric)")
	case nat && c.from.Priority <= conntrack:
		return fmt.Errorf("the priority of a chain of type nat is higher than %d", conntrack)
	}
	return nil
}

func (c *chainMaker) gateway() bool { return c.host.Category == networkingv1beta1.CategoryGateway }

func (c *chainMaker) at(hooks ...networkingv1beta1.ChainHook) bool {
	return slices.Contains(hooks, c.from.Hook)
}

// filter makes the rules that stand for one of an administrator's.
func (c *chainMaker) filter(rule *networkingv1beta1.FilterRule) ([]dataplane.ChainRule, error) {
	matches, err := c.matches(rule.Match)
	if err != nil {
		return nil, err
	}
	statement, err := c.action(rule)
	if err != nil {
		return nil, err
	}
	for i := range matches {
		if statement.Do == dataplane.Clamp {
			matches[i].Match = append(matches[i].Match, dataplane.Match{Field: dataplane.Opening})
		}
		if rule.Counter {
			matches[i].Do = append(matches[i].Do, dataplane.Statement{Do: dataplane.Count})
		}
		matches[i].Do = append(matches[i].Do, statement)
	}
	return matches, nil
}

// action is what a rule does.
func (c *chainMaker) action(rule *networkingv1beta1.FilterRule) (s dataplane.Statement, err error) {
	value := uint64(0)
	if rule.Value != nil {
		if value, err = number(*rule.Value); err != nil {
			return s, err
		}
	}
	if err := c.possible(rule.Action, value); err != nil {
		return s, err
	}
	switch rule.Action {
	case networkingv1beta1.ActionAccept:
		s.Do = dataplane.Accept
	case networkingv1beta1.ActionDrop:
		s.Do = dataplane.Drop
	case networkingv1beta1.ActionReject:
		s.Do, s.Name = dataplane.Reject, dataplane.RejectedBy[c.family]
	case networkingv1beta1.ActionNotrack:
		s.Do = dataplane.Notrack
	case networkingv1beta1.ActionCtMark:
		s.Do, s.Mark = dataplane.MarkConnection, uint32(value) //nolint:gosec // Read as 32 bits.
	case networkingv1beta1.ActionSetMetaMarkFromCtMark:
		s.Do = dataplane.MarkPacket
	case networkingv1beta1.ActionTCPMssClamp:
		s.Do, s.Size = dataplane.Clamp, int(value)
	default:
		return s, fmt.Errorf("action %s is not supported", rule.Action)
	}
	return s, nil
}

// possible refuses actions that the kernel would not carry out in this chain.
func (c *chainMaker) possible(action networkingv1beta1.FilterAction, value uint64) error {
	early := c.at("prerouting", "output") && c.from.Priority <= conntrack
	switch action {
	case networkingv1beta1.ActionCtMark, networkingv1beta1.ActionSetMetaMarkFromCtMark:
		if c.gateway() {
			return fmt.Errorf("a gateway knows no connections, so it cannot carry out action %s; mark them on the nodes (category fabric)", action)
		}
		if early {
			return fmt.Errorf("action %s comes before the kernel knows the connection: give the chain a priority higher than %d", action, conntrack)
		}
	case networkingv1beta1.ActionReject:
		if c.at("postrouting") {
			return errors.New("action reject is not possible in hook postrouting")
		}
	case networkingv1beta1.ActionNotrack:
		if !early || c.from.Priority == conntrack {
			return fmt.Errorf("action notrack needs hook prerouting or output, and a priority lower than %d: afterwards the connection is tracked already", conntrack)
		}
	case networkingv1beta1.ActionTCPMssClamp:
		if value > math.MaxUint16 {
			return fmt.Errorf("a segment has at most %d bytes, not %d", math.MaxUint16, value)
		}
		if value == 0 && !c.at("forward", "output", "postrouting") {
			return fmt.Errorf("the way is not known yet in hook %s: action tcpmssclamp needs a value there", c.from.Hook)
		}
	}
	return nil
}

// number reads one of 32 bits, decimal or hexadecimal.
func number(text string) (uint64, error) {
	digits, base := text, 10
	if hexadecimal, ok := strings.CutPrefix(text, "0x"); ok {
		digits, base = hexadecimal, 16
	}
	value, err := strconv.ParseUint(digits, base, 32)
	if err != nil {
		return 0, fmt.Errorf("value %s is not a number of 32 bits", text)
	}
	return value, nil
}

// nat makes the rules that stand for one of an administrator's.
func (c *chainMaker) nat(rule *networkingv1beta1.NatRule) ([]dataplane.ChainRule, error) {
	matches, err := c.matches(rule.Match)
	if err != nil {
		return nil, err
	}
	statement := dataplane.Statement{Do: dataplane.Masquerade}
	if rule.NatType != networkingv1beta1.NatTypeMasquerade {
		if statement, err = c.translation(rule); err != nil {
			return nil, err
		}
	}
	for i := range matches {
		matches[i].Do = append(matches[i].Do, statement)
	}
	return matches, nil
}

func (c *chainMaker) translation(rule *networkingv1beta1.NatRule) (s dataplane.Statement, err error) {
	s.Do = dataplane.SNAT
	if rule.NatType == networkingv1beta1.NatTypeDestination {
		s.Do = dataplane.DNAT
	}
	if rule.To == nil {
		return s, fmt.Errorf("natType %s needs to", rule.NatType)
	}
	first, last, err := ends(*rule.To)
	switch {
	case err != nil:
		return s, err
	case !c.carries(first):
		return s, fmt.Errorf("a table of family %s cannot translate to %s", c.family, *rule.To)
	case first == last:
		s.Address = netip.AddrPortFrom(first, 0)
	default:
		s.Prefix, err = netip.ParsePrefix(*rule.To)
	}
	s.Prefix = s.Prefix.Masked()
	return s, err
}

// carries tells whether packets of an address's family pass the table.
func (c *chainMaker) carries(address netip.Addr) bool {
	return c.family == "inet" || address.Is4() == (c.family == "ip")
}

// ends are the first and the last address of what is written as an address, a prefix, or both ends of a range.
func ends(text string) (first, last netip.Addr, err error) {
	if prefix, err := netip.ParsePrefix(text); err == nil {
		first, last = dataplane.Ends(prefix)
		return first, last, nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	if first, err = netip.ParseAddr(from); err != nil {
		return first, last, fmt.Errorf("%s is neither an address nor a range: %w", text, err)
	}
	if last, err = netip.ParseAddr(to); err != nil {
		return first, last, fmt.Errorf("%s is neither an address nor a range: %w", text, err)
	}
	if first.Is4() != last.Is4() || last.Less(first) {
		return first, last, fmt.Errorf("%s is no range: the lower address comes first, and both are of one family", text)
	}
	return first, last, nil
}
