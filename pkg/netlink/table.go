package netlink

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"github.com/google/nftables/userdata"
	mdlayher "github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// families are those that tables of ours have, by their names.
var families = map[string]nftables.TableFamily{"ip": nftables.TableFamilyIPv4, "ip6": nftables.TableFamilyIPv6, "inet": nftables.TableFamilyINet}

// table is a table of the firewall.
type table struct {
	dataplane.Table
	// heads say, for each chain, when the kernel calls it, in the kernel's terms.
	heads map[string]head
	// strange is set if sets are not of the sort that their names stand for, or hold what ours never do: then all is made anew.
	strange bool
}

func (t table) fullName() string { return "table " + t.Family + " " + t.Name }

// head is what a chain is besides its rules.
type head struct {
	hook     dataplane.Hook
	priority int
	kind     nftables.ChainType
	drops    bool
}

func headOf(chain dataplane.Chain) head {
	if chain.Hook == "" {
		return head{}
	}
	kind := nftables.ChainTypeFilter
	if chain.NAT {
		kind = nftables.ChainTypeNAT
	}
	return head{hook: chain.Hook, priority: chain.Priority, kind: kind, drops: chain.Drops}
}

// hooks are the kernel's numbers of hooks.
var hooks = map[dataplane.Hook]*nftables.ChainHook{
	dataplane.Prerouting: nftables.ChainHookPrerouting, dataplane.Input: nftables.ChainHookInput, dataplane.Forward: nftables.ChainHookForward,
	dataplane.Output: nftables.ChainHookOutput, dataplane.Postrouting: nftables.ChainHookPostrouting,
}

func tablesOf(wanted []dataplane.Table) []table {
	var all []table
	for _, t := range wanted {
		made := table{Table: t, heads: map[string]head{}}
		for _, chain := range t.Chains {
			made.heads[chain.Name] = headOf(chain)
		}
		all = append(all, made)
	}
	return all
}

func (k *Kernel) tables(wanted dataplane.State) resource[table] {
	return resource[table]{
		name: table.fullName,
		same: func(a, b table) bool { return !a.strange && !b.strange && reflect.DeepEqual(a, b) },
		read: func() ([]table, error) {
			all, err := k.readTables(wanted.Firewall)
			return unkept(wanted, all), err
		},
		put: k.putTable,
		remove: func(t table) error {
			conn, err := k.firewall()
			if err != nil {
				return err
			}
			conn.DelTable(&nftables.Table{Family: families[t.Family], Name: t.Name})
			return conn.Flush()
		},
		part: table.Part,
	}
}

// vanishing is how often tables are read again of which somebody takes something away meanwhile.
const vanishing = 3

func (k *Kernel) readTables(wanted []dataplane.Table) ([]table, error) {
	conn, err := k.firewall()
	if err != nil {
		return nil, err
	}
	all, err := readTables(conn, wanted)
	for range vanishing {
		if !errors.Is(err, unix.ENOENT) {
			break
		}
		all, err = readTables(conn, wanted)
	}
	return all, err
}

func readTables(conn *nftables.Conn, wanted []dataplane.Table) ([]table, error) {
	var all []table
	for _, name := range slices.Sorted(maps.Keys(families)) {
		family := families[name]
		tables, err := conn.ListTablesOfFamily(family)
		if err != nil {
			return nil, fmt.Errorf("list tables: %w", err)
		}
		for _, t := range tables {
			if !ourTable(family, t.Name) {
				continue
			}
			i := slices.IndexFunc(wanted, func(w dataplane.Table) bool { return w.Family == name && w.Name == t.Name })
			reader := &reader{conn: conn, raw: t, wanted: dataplane.Table{Family: name, Name: t.Name}}
			if i >= 0 {
				reader.wanted = wanted[i]
			}
			read, err := reader.read()
			if err != nil {
				return nil, fmt.Errorf("read table %s %s: %w", name, t.Name, err)
			}
			all = append(all, read)
		}
	}
	inOrder(all, tablesOf(wanted), table.fullName)
	return all, nil
}

// ourTable tells whether a table is ours by its name: the agents' own are of one family each.
func ourTable(family nftables.TableFamily, name string) bool {
	return name == dataplane.FirewallTable && family != nftables.TableFamilyINet || (dataplane.Table{Name: name}).Part() != dataplane.OwnPart
}

// reader reads one table, in the order in which it is wanted.
type reader struct {
	conn   *nftables.Conn
	raw    *nftables.Table
	wanted dataplane.Table
}

func (r *reader) read() (table, error) {
	t := table{Table: dataplane.Table{Family: r.wanted.Family, Name: r.wanted.Name}, heads: map[string]head{}}
	objects, err := r.conn.GetNamedObjects(r.raw)
	if err != nil {
		return t, err
	}
	for _, object := range objects {
		if named, ok := object.(*nftables.NamedObj); ok {
			t.Counters = append(t.Counters, named.Name)
			t.strange = t.strange || named.Type != nftables.ObjTypeCounter
		}
	}
	inOrder(t.Counters, r.wanted.Counters, func(name string) string { return name })
	if err := r.readSets(&t); err != nil {
		return t, err
	}
	inOrder(t.Sets, r.wanted.Sets, func(s dataplane.Set) string { return s.Name })
	inOrder(t.Maps, r.wanted.Maps, func(m dataplane.Map) string { return m.Name })
	if err := r.readChains(&t); err != nil {
		return t, err
	}
	inOrder(t.Chains, r.wanted.Chains, func(c dataplane.Chain) string { return c.Name })
	return t, nil
}

// inOrder sorts what is there as it is wanted; what is not wanted comes last.
func inOrder[T any](there, wanted []T, name func(T) string) {
	place := map[string]int{}
	for i, thing := range wanted {
		place[name(thing)] = i - len(wanted)
	}
	slices.SortStableFunc(there, func(a, b T) int {
		return cmp.Or(cmp.Compare(place[name(a)], place[name(b)]), cmp.Compare(name(a), name(b)))
	})
}

func (r *reader) readSets(t *table) error {
	sets, err := r.conn.GetSets(r.raw)
	if err != nil {
		return err
	}
	for _, set := range sets {
		if set.Anonymous {
			continue
		}
		raw, err := r.conn.GetSetElements(set)
		if err != nil {
			return err
		}
		slices.SortFunc(raw, func(a, b nftables.SetElement) int {
			return cmp.Or(slices.Compare(a.Key, b.Key), cmp.Compare(order(a), order(b)))
		})
		if set.IsMap {
			elements, ok := pairs(raw)
			t.Maps = append(t.Maps, dataplane.Map{Name: set.Name, Elements: elements})
			t.strange = t.strange || !ok || set.Interval || set.DataType != nftables.TypeIPAddr
			continue
		}
		elements, ok := prefixes(set.Interval, raw)
		t.Sets = append(t.Sets, dataplane.Set{Name: set.Name, Interval: set.Interval, Elements: elements})
		t.strange = t.strange || !ok
	}
	return nil
}

// order puts the end of an interval before the beginning of the next one.
func order(e nftables.SetElement) int {
	if e.IntervalEnd {
		return 0
	}
	return 1
}

func pairs(raw []nftables.SetElement) (all []dataplane.Element, ok bool) {
	for _, e := range raw {
		key, fine := netip.AddrFromSlice(e.Key)
		value, too := netip.AddrFromSlice(e.Val)
		if !fine || !too {
			return nil, false
		}
		all = append(all, dataplane.Element{Key: key, Value: value})
	}
	return all, true
}

// prefixes are the elements of a set; ok is false if there is anything else in it.
func prefixes(interval bool, raw []nftables.SetElement) (all []netip.Prefix, ok bool) {
	for i, e := range raw {
		first, fine := netip.AddrFromSlice(e.Key)
		switch {
		case !fine:
			return nil, false
		case !interval:
			all = append(all, netip.PrefixFrom(first, first.BitLen()))
		case e.IntervalEnd:
		default:
			var next []byte
			if i+1 < len(raw) {
				next = raw[i+1].Key
			}
			prefix, found := between(first, next)
			if !found {
				return nil, false
			}
			all = append(all, prefix)
		}
	}
	return all, true
}

// between is the prefix from an address to the one before another one; nil is after the last address.
func between(first netip.Addr, next []byte) (netip.Prefix, bool) {
	for bits := range first.BitLen() + 1 {
		prefix := netip.PrefixFrom(first, bits)
		if prefix.Masked() == prefix && slices.Equal(after(prefix), next) {
			return prefix, true
		}
	}
	return netip.Prefix{}, false
}

// after is the address after the last one of a prefix; nil if there is none.
func after(prefix netip.Prefix) []byte {
	_, last := dataplane.Ends(prefix)
	return last.Next().AsSlice()
}

func (r *reader) readChains(t *table) error {
	chains, err := r.conn.ListChainsOfTableFamily(r.raw.Family)
	if err != nil {
		return err
	}
	rules, err := r.readRules()
	if err != nil {
		return err
	}
	for _, raw := range chains {
		if raw.Table.Name != r.raw.Name {
			continue
		}
		chain := dataplane.Chain{Name: raw.Name, Rules: rules[raw.Name]}
		t.heads[raw.Name] = head{}
		if raw.Hooknum != nil && raw.Priority != nil {
			for hook, number := range hooks {
				if *number == *raw.Hooknum {
					chain.Hook = hook
				}
			}
			chain.Priority, chain.NAT = int(*raw.Priority), raw.Type == nftables.ChainTypeNAT
			chain.Drops = raw.Policy != nil && *raw.Policy == nftables.ChainPolicyDrop
			t.heads[raw.Name] = head{hook: chain.Hook, priority: chain.Priority, kind: raw.Type, drops: chain.Drops}
		}
		t.Chains = append(t.Chains, chain)
	}
	return nil
}

// unknown stands for rules that are not wanted, whatever they do.
const unknown dataplane.Do = "unknown rule"

// readRules reads the rules of a table by chain. Each is known by its comment: the library cannot tell all that ours do.
func (r *reader) readRules() (map[string][]dataplane.ChainRule, error) {
	known := map[string]dataplane.ChainRule{}
	for _, chain := range r.wanted.Chains {
		for _, rule := range chain.Rules {
			comment, err := digest(rule)
			if err != nil {
				return nil, err
			}
			known[comment] = rule
		}
	}
	conn, err := mdlayher.Dial(unix.NETLINK_NETFILTER, &mdlayher.Config{NetNS: r.conn.NetNS})
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	filter, err := mdlayher.MarshalAttributes([]mdlayher.Attribute{{Type: unix.NFTA_RULE_TABLE, Data: []byte(r.raw.Name + "\x00")}})
	if err != nil {
		return nil, err
	}
	messages, err := conn.Execute(mdlayher.Message{
		Header: mdlayher.Header{Type: unix.NFNL_SUBSYS_NFTABLES<<8 | unix.NFT_MSG_GETRULE, Flags: mdlayher.Request | mdlayher.Dump},
		Data:   append([]byte{byte(r.raw.Family), unix.NFNETLINK_V0, 0, 0}, filter...),
	})
	if err != nil {
		return nil, err
	}
	found := map[string][]dataplane.ChainRule{}
	for _, message := range messages {
		attributes, err := mdlayher.NewAttributeDecoder(message.Data[4:])
		if err != nil {
			return nil, err
		}
		attributes.ByteOrder = binary.BigEndian
		chain, comment := "", ""
		for attributes.Next() {
			switch attributes.Type() {
			case unix.NFTA_RULE_CHAIN:
				chain = attributes.String()
			case unix.NFTA_RULE_USERDATA:
				comment, _ = userdata.GetString(attributes.Bytes(), userdata.TypeComment)
			}
		}
		rule, ok := known[comment]
		if !ok {
			rule = dataplane.ChainRule{Do: []dataplane.Statement{{Do: unknown}}}
		}
		found[chain] = append(found[chain], rule)
	}
	return found, nil
}

// Counted is how many packets the counters of our firewall have counted, by their names. A table that is not there counts nothing.
func (k *Kernel) Counted() (map[string]uint64, error) {
	k.busy.Lock()
	defer k.busy.Unlock()
	connection, err := k.firewall()
	if err != nil {
		return nil, fmt.Errorf("open nftables: %w", err)
	}
	counted := map[string]uint64{}
	tables, err := connection.ListTables()
	if err != nil {
		return nil, fmt.Errorf("list tables: %w", err)
	}
	for _, t := range tables {
		if t.Name != dataplane.FirewallTable {
			continue
		}
		objects, err := connection.GetNamedObjects(t)
		if err != nil {
			return nil, fmt.Errorf("read counters: %w", err)
		}
		for _, object := range objects {
			named, ok := object.(*nftables.NamedObj)
			if !ok {
				continue
			}
			if counter, ok := named.Obj.(*expr.Counter); ok {
				counted[named.Name] += counter.Packets
			}
		}
	}
	return counted, nil
}
