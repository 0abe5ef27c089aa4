package inputs

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/dataplane"
)

// usualPriority is that of a rule which says none: before the kernel's main table (32766), after whatever else a host may have.
const usualPriority = 32000

// routing makes the routes of an administrator's table, and the rules that lead to them. The kernel has one table for all rules: which of them has a
// route cannot be told apart there, so two rules have no different routes to one destination.
func routing(host Host, wanted networkingv1beta1.RouteTable) (routes []dataplane.Route, rules []dataplane.Rule, err error) {
	table := dataplane.AdministratorTable(wanted.Name)
	for i := range wanted.Rules {
		rule, err := routingRule(&wanted.Rules[i])
		rule.Table = table
		switch {
		case err != nil:
		case slices.Contains(rules, rule):
			err = errors.New("another rule says the same")
		case host.Category == networkingv1beta1.CategoryGateway && rule.TakesOwn() != "":
			err = errors.New(rule.TakesOwn())
		}
		if err != nil {
			return nil, nil, fmt.Errorf("rule %d: %w", i+1, err)
		}
		rules = append(rules, rule)
		for j := range wanted.Rules[i].Routes {
			route, err := routeOf(&wanted.Rules[i].Routes[j])
			route.Table = table
			same := slices.IndexFunc(routes, func(other dataplane.Route) bool { return other.Destination == route.Destination })
			switch {
			case err != nil:
			case same < 0:
				routes = append(routes, route)
			case routes[same] != route:
				err = fmt.Errorf("another rule of the table has another route to it; put that into a RouteConfiguration of its own")
			}
			if err != nil {
				return nil, nil, fmt.Errorf("rule %d: route to %s: %w", i+1, wanted.Rules[i].Routes[j].Dst, err)
			}
		}
	}
	return routes, rules, nil
}

// four reads a range of IPv4.
func four(what string, text networkingv1beta1.CIDR) (netip.Prefix, error) {
	prefix, err := text.Prefix()
	if err != nil {
		return prefix, fmt.Errorf("%s: %w", what, err)
	}
	if !prefix.Addr().Is4() {
		return prefix, fmt.Errorf("%s: %s is not of IPv4, which alone is routed", what, text)
	}
	return prefix.Masked(), nil
}

// narrow reads a range of IPv4; none if all addresses are in it, which the kernel does not tell from none.
func narrow(what string, text networkingv1beta1.CIDR) (netip.Prefix, error) {
	prefix, err := four(what, text)
	if prefix.Bits() == 0 {
		return netip.Prefix{}, err
	}
	return prefix, err
}

func routingRule(from *networkingv1beta1.Rule) (rule dataplane.Rule, err error) {
	rule.Priority = usualPriority
	if from.Priority != nil {
		rule.Priority = int(*from.Priority)
	}
	if from.Dst != nil {
		if rule.To, err = narrow("dst", *from.Dst); err != nil {
			return rule, err
		}
	}
	if from.Src != nil {
		if rule.From, err = narrow("src", *from.Src); err != nil {
			return rule, err
		}
	}
	if from.Iif != nil {
		rule.In = string(*from.Iif)
	}
	if from.Oif != nil {
		rule.Out = string(*from.Oif)
	}
	if from.FwMark != nil {
		if *from.FwMark == 0 {
			return rule, errors.New("fwmark 0 is that of packets without a mark: leave it out")
		}
		rule.Mark = uint32(*from.FwMark) //nolint:gosec // The API server takes no other.
	}
	return rule, nil
}

func routeOf(from *networkingv1beta1.Route) (route dataplane.Route, err error) {
	if route.Destination, err = four("dst", from.Dst); err != nil {
		return route, err
	}
	for what, text := range map[string]*networkingv1beta1.IP{"gw": from.Gw, "src": from.Src} {
		if text == nil {
			continue
		}
		address, err := text.Addr()
		if err != nil {
			return route, fmt.Errorf("%s: %w", what, err)
		}
		if !address.Is4() {
			return route, fmt.Errorf("%s: %s is not of IPv4, which alone is routed", what, *text)
		}
		if what == "gw" {
			route.Via = address
		} else {
			route.Source = address
		}
	}
	if from.Dev != nil {
		route.Device = string(*from.Dev)
	}
	onlink := from.Onlink != nil && *from.Onlink
	if onlink && (route.Device == "" || !route.Via.IsValid()) {
		return route, errors.New("onlink needs gw and dev: it is about a next hop on a device")
	}
	route.Near = route.Via.IsValid() && !onlink
	if from.Scope != nil && dataplane.Scope(*from.Scope) != route.UsualScope() {
		route.Scope = dataplane.Scope(*from.Scope)
	}
	return route, nil
}
