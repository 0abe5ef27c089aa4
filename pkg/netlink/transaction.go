package netlink

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"

	"liqo.io/liqo/pkg/dataplane"
)

// chunk is how many elements of a set are told in one message: its length is a number of 16 bits.
const chunk = 400

// putTable makes a table what is wanted, in one transaction: chains that differ are written anew, sets element by element. What cannot be
// changed so is made anew as a whole, in one transaction too.
func (k *Kernel) putTable(wanted table, there *table) error {
	if there != nil && !there.strange {
		if err := k.writeTable(wanted, *there, false); err == nil {
			return nil
		}
	}
	return k.writeTable(wanted, table{}, true)
}

// transaction collects what is to be changed in a table.
type transaction struct {
	conn  *nftables.Conn
	table *nftables.Table
	// sets is how many there are: each needs a number, and those that the library gives are not safe where several namespaces are changed at once.
	sets uint32
	err  error
}

func (t *transaction) set(name string) *nftables.Set {
	t.sets++
	return &nftables.Set{Table: t.table, ID: t.sets, Name: name, KeyType: nftables.TypeIPAddr}
}

func (k *Kernel) writeTable(wanted, there table, anew bool) error {
	conn, err := k.firewall()
	if err != nil {
		return err
	}
	t := &transaction{conn: conn, table: &nftables.Table{Family: families[wanted.Family], Name: wanted.Name}}
	conn.AddTable(t.table)
	if anew {
		conn.DelTable(t.table)
		conn.AddTable(t.table)
	}
	t.clear(wanted, there)
	for _, name := range wanted.Counters {
		if !slices.Contains(there.Counters, name) {
			conn.AddObj(&nftables.NamedObj{Table: t.table, Name: name, Type: nftables.ObjTypeCounter, Obj: &expr.Counter{}})
		}
	}
	t.putSets(wanted, there)
	t.putChains(wanted, there)
	t.dropRest(wanted, there)
	if t.err != nil {
		return t.err
	}
	return conn.Flush()
}

func (t *transaction) note(err error) {
	if t.err == nil {
		t.err = err
	}
}

// chain finds a chain by its name.
func (t table) chain(name string) (dataplane.Chain, bool) {
	i := slices.IndexFunc(t.Chains, func(c dataplane.Chain) bool { return c.Name == name })
	if i < 0 {
		return dataplane.Chain{}, false
	}
	return t.Chains[i], true
}

// clear empties the chains that are written anew, and removes those that are not wanted, or not as they are.
func (t *transaction) clear(wanted, there table) {
	var gone []string
	for _, chain := range there.Chains {
		other, ok := wanted.chain(chain.Name)
		if !ok || !reflect.DeepEqual(chain, other) || there.heads[chain.Name] != wanted.heads[chain.Name] {
			t.conn.FlushChain(&nftables.Chain{Name: chain.Name, Table: t.table})
		}
		if !ok || there.heads[chain.Name] != wanted.heads[chain.Name] {
			gone = append(gone, chain.Name)
		}
	}
	for _, name := range gone {
		t.conn.DelChain(&nftables.Chain{Name: name, Table: t.table})
	}
}

// putSets makes sets and maps, or changes their elements.
func (t *transaction) putSets(wanted, there table) {
	for _, set := range wanted.Sets {
		raw := t.set(set.Name)
		raw.Interval = set.Interval
		i := slices.IndexFunc(there.Sets, func(s dataplane.Set) bool { return s.Name == set.Name })
		var old []netip.Prefix
		switch {
		case i < 0:
			t.note(t.conn.AddSet(raw, nil))
		case there.Sets[i].Interval != set.Interval:
			t.note(fmt.Errorf("set %s is of another sort", set.Name))
		default:
			old = there.Sets[i].Elements
		}
		change(t, raw, old, set.Elements, func(p netip.Prefix) []nftables.SetElement { return interval(set.Interval, p) })
	}
	for _, m := range wanted.Maps {
		raw := t.set(m.Name)
		raw.IsMap, raw.DataType = true, nftables.TypeIPAddr
		var old []dataplane.Element
		if i := slices.IndexFunc(there.Maps, func(other dataplane.Map) bool { return other.Name == m.Name }); i >= 0 {
			old = there.Maps[i].Elements
		} else {
			t.note(t.conn.AddSet(raw, nil))
		}
		change(t, raw, old, m.Elements, func(e dataplane.Element) []nftables.SetElement {
			return []nftables.SetElement{{Key: e.Key.AsSlice(), Val: e.Value.AsSlice()}}
		})
	}
}

// change removes the elements of a set that are not wanted, and adds those that are missing.
func change[E comparable](t *transaction, set *nftables.Set, there, wanted []E, raw func(E) []nftables.SetElement) {
	for _, step := range []struct {
		with, without []E
		do            func(*nftables.Set, []nftables.SetElement) error
	}{{there, wanted, t.conn.SetDeleteElements}, {wanted, there, t.conn.SetAddElements}} {
		other := map[E]bool{}
		for _, element := range step.without {
			other[element] = true
		}
		var elements []nftables.SetElement
		for _, element := range step.with {
			if !other[element] {
				elements = append(elements, raw(element)...)
			}
		}
		for part := range slices.Chunk(elements, chunk) {
			t.note(step.do(set, part))
		}
	}
}

// interval is a prefix as elements of a set: its first address, and, in a set of intervals, the one after its last.
func interval(interval bool, prefix netip.Prefix) []nftables.SetElement {
	elements := []nftables.SetElement{{Key: prefix.Addr().AsSlice()}}
	if end := after(prefix); interval && end != nil {
		elements = append(elements, nftables.SetElement{Key: end, IntervalEnd: true})
	}
	return elements
}

// putChains makes chains, then writes the rules of those that are new or empty now.
func (t *transaction) putChains(wanted, there table) {
	for _, chain := range wanted.Chains {
		if _, ok := there.chain(chain.Name); ok && there.heads[chain.Name] == wanted.heads[chain.Name] {
			continue
		}
		raw := &nftables.Chain{Name: chain.Name, Table: t.table}
		if h := wanted.heads[chain.Name]; h.hook != "" {
			raw.Type, raw.Hooknum, raw.Priority = h.kind, hooks[h.hook], nftables.ChainPriorityRef(nftables.ChainPriority(h.priority)) //nolint:gosec // Small.
			if h.drops {
				policy := nftables.ChainPolicyDrop
				raw.Policy = &policy
			}
		}
		t.conn.AddChain(raw)
	}
	for _, chain := range wanted.Chains {
		old, ok := there.chain(chain.Name)
		if ok && reflect.DeepEqual(old, chain) && there.heads[chain.Name] == wanted.heads[chain.Name] {
			continue
		}
		for _, rule := range chain.Rules {
			comment, err := digest(rule)
			t.note(err)
			code, err := compile(rule)
			t.note(err)
			t.conn.AddRule(&nftables.Rule{
				Table: t.table, Chain: &nftables.Chain{Name: chain.Name, Table: t.table}, Exprs: code,
				UserData: userdata.AppendString(nil, userdata.TypeComment, comment),
			})
		}
	}
}

// dropRest removes the sets, maps and counters that no rule needs any more.
func (t *transaction) dropRest(wanted, there table) {
	var kept, all []string
	for _, s := range wanted.Sets {
		kept = append(kept, s.Name)
	}
	for _, m := range wanted.Maps {
		kept = append(kept, m.Name)
	}
	for _, s := range there.Sets {
		all = append(all, s.Name)
	}
	for _, m := range there.Maps {
		all = append(all, m.Name)
	}
	for _, name := range all {
		if !slices.Contains(kept, name) {
			t.conn.DelSet(&nftables.Set{Table: t.table, Name: name})
		}
	}
	for _, name := range there.Counters {
		if !slices.Contains(wanted.Counters, name) {
			t.conn.DeleteObject(&nftables.NamedObj{Table: t.table, Name: name, Type: nftables.ObjTypeCounter, Obj: &expr.Counter{}})
		}
	}
}
