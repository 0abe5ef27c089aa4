package inputs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// portFields are where each protocol has its ports.
var portFields = map[int]map[networkingv1beta1.MatchPosition]dataplane.Field{
	tcp: {"src": dataplane.TCPSource, "dst": dataplane.TCPPort},
	udp: {"src": dataplane.UDPSource, "dst": dataplane.UDPPort},
}

// matches are rules that, together, are met by the packets that meet all conditions: one, or, where ports are looked at, one for each protocol that
// has them.
func (c *chainMaker) matches(all []networkingv1beta1.Match) ([]dataplane.ChainRule, error) {
	var common, protocols []dataplane.Match
	ports := false
	left := []int{tcp, udp}
	for i := range all {
		m := &all[i]
		not := m.Op == "neq"
		if m.Proto != nil {
			number := map[string]int{"tcp": tcp, "udp": udp}[m.Proto.Value]
			left = slices.DeleteFunc(left, func(other int) bool { return (other == number) == not })
			protocols = append(protocols, dataplane.Match{Field: dataplane.Transport, Not: not, Number: uint16(number)}) //nolint:gosec // 6 or 17.
		}
		if m.IP != nil {
			match, err := c.address(m.IP, not)
			if err != nil {
				return nil, err
			}
			common = append(common, match)
		}
		if m.Dev != nil {
			match, err := c.device(m.Dev, not)
			if err != nil {
				return nil, err
			}
			common = append(common, match)
		}
		ports = ports || m.Port != nil
	}
	if !ports {
		return []dataplane.ChainRule{{Match: append(common, protocols...)}}, nil
	}
	if len(left) == 0 {
		return nil, errors.New("no packet with ports has such a protocol")
	}
	var rules []dataplane.ChainRule
	for _, protocol := range left {
		rule := dataplane.ChainRule{Match: slices.Clone(common)}
		for i := range all {
			if port := all[i].Port; port != nil {
				match, err := portMatch(protocol, port, all[i].Op == "neq")
				if err != nil {
					return nil, err
				}
				rule.Match = append(rule.Match, match)
			}
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func (c *chainMaker) address(from *networkingv1beta1.MatchIP, not bool) (m dataplane.Match, err error) {
	m.Not = not
	if m.First, m.Last, err = ends(from.Value); err != nil {
		return m, err
	}
	if !c.carries(m.First) {
		return m, fmt.Errorf("no packet of a table of family %s has an address like %s", c.family, from.Value)
	}
	fields := map[networkingv1beta1.MatchPosition]dataplane.Field{"src": dataplane.Source, "dst": dataplane.Destination}
	if m.First.Is6() {
		fields = map[networkingv1beta1.MatchPosition]dataplane.Field{"src": dataplane.Source6, "dst": dataplane.Destination6}
	}
	m.Field = fields[from.Position]
	return m, nil
}

func (c *chainMaker) device(from *networkingv1beta1.MatchDev, not bool) (dataplane.Match, error) {
	m := dataplane.Match{Field: dataplane.InDevice, Not: not, Device: string(from.Value)}
	switch {
	case from.Position == "in" && c.at("output"):
		return m, errors.New("packets in hook output have not come by a device (position in)")
	case from.Position == "out" && c.at("prerouting", "input"):
		return m, fmt.Errorf("in hook %s it is not known by which device a packet will leave (position out)", c.from.Hook)
	case from.Position == "out":
		m.Field = dataplane.OutDevice
	}
	return m, nil
}

func portMatch(protocol int, from *networkingv1beta1.MatchPort, not bool) (dataplane.Match, error) {
	m := dataplane.Match{Field: portFields[protocol][from.Position], Not: not}
	first, last, isRange := strings.Cut(from.Value, "-")
	if !isRange {
		last = first
	}
	low, err := strconv.ParseUint(first, 10, 16)
	if err != nil {
		return m, fmt.Errorf("%s is no port: %w", first, err)
	}
	high, err := strconv.ParseUint(last, 10, 16)
	if err != nil {
		return m, fmt.Errorf("%s is no port: %w", last, err)
	}
	m.Number = uint16(low)
	if high != low {
		m.Through = uint16(high)
	}
	return m, nil
}
