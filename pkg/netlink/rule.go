package netlink

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// kernelProtocol marks the rules that the kernel makes for a new namespace.
const kernelProtocol = 2

// rule is a rule, or the absence of one, with what it has besides that ours do not have.
type rule struct {
	dataplane.Rule
	Odd string
	raw *netlink.Rule
}

func rulesOf(wanted []dataplane.Rule) []rule {
	var all []rule
	// What must not be there goes last: until then it does what ours will do.
	for _, absent := range []bool{false, true} {
		for _, r := range wanted {
			if r.Absent == absent {
				all = append(all, rule{Rule: r})
			}
		}
	}
	return all
}

func (k *Kernel) rules(state dataplane.State) resource[rule] {
	wanted := state.Rules
	return resource[rule]{
		name: func(r rule) string { return fmt.Sprintf("rule %q%s", r.Rule, r.Odd) },
		same: func(a, b rule) bool { return a.Rule == b.Rule },
		read: func() ([]rule, error) {
			all, err := k.route.RuleList(unix.AF_INET)
			if err != nil {
				return nil, fmt.Errorf("list rules: %w", err)
			}
			return unkept(state, readRules(all, wanted)), nil
		},
		put: func(r rule, _ *rule) error {
			raw := ruleOf(r.Rule)
			if r.Absent {
				raw.Protocol = 0
				return gone(k.route.RuleDel(raw))
			}
			return k.route.RuleAdd(raw)
		},
		remove: func(r rule) error { return k.removeRule(r, wanted) },
		part:   rule.Part,
		leads:  true,
	}
}

// readRules are our rules, and those of the wanted absences that are.
func readRules(raw []netlink.Rule, wanted []dataplane.Rule) []rule {
	var all []rule
	for _, r := range wanted {
		if r.Absent && !slices.ContainsFunc(raw, func(other netlink.Rule) bool { return other.Priority == r.Priority && other.Table == r.Table }) {
			all = append(all, rule{Rule: r})
		}
	}
	for _, r := range raw {
		if r.Protocol != dataplane.Protocol {
			continue
		}
		read := rule{Rule: dataplane.Rule{Priority: r.Priority, In: r.IifName, Out: r.OifName, Mark: r.Mark, Table: r.Table}, raw: &r}
		if r.Src != nil {
			read.From = prefixOf(r.Src)
		}
		if r.Dst != nil {
			read.To = prefixOf(r.Dst)
		}
		if made := *ruleOf(read.Rule); !reflect.DeepEqual(normal(made), normal(r)) {
			read.Odd = fmt.Sprintf(" %+v", r)
		}
		all = append(all, read)
	}
	return all
}

// normal is a rule without what only says how it was told.
func normal(r netlink.Rule) netlink.Rule {
	r.Src, r.Dst, r.Family = nil, nil, 0
	return r
}

func ruleOf(r dataplane.Rule) *netlink.Rule {
	raw := netlink.NewRule()
	raw.Priority, raw.Table, raw.IifName, raw.Family, raw.Protocol = r.Priority, r.Table, r.In, unix.AF_INET, dataplane.Protocol
	if r.To.IsValid() {
		raw.Dst = ipNet(r.To)
	}
	if r.From.IsValid() {
		raw.Src = ipNet(r.From)
	}
	raw.OifName, raw.Mark = r.Out, r.Mark
	if r.Mark != 0 {
		all := ^uint32(0)
		raw.Mask = &all
	}
	return raw
}

// removeRule removes a rule of ours. One that leads to the kernel's own table stands for the kernel's own rule, which comes back first: without
// any, the host has no addresses.
func (k *Kernel) removeRule(r rule, wanted []dataplane.Rule) error {
	replaced := slices.ContainsFunc(wanted, func(r dataplane.Rule) bool { return r.Absent })
	if r.Table == dataplane.LocalTable && !replaced {
		own := ruleOf(dataplane.Rule{Table: dataplane.LocalTable})
		own.Protocol = kernelProtocol
		if err := k.route.RuleAdd(own); err != nil && !errors.Is(err, unix.EEXIST) {
			return err
		}
	}
	return k.route.RuleDel(r.raw)
}
