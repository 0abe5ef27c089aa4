package netlink

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/google/nftables"
	mdlayher "github.com/mdlayher/netlink"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// Kernel is the part of the kernel that is one network namespace.
type Kernel struct {
	// namespace is none if it is the process's own: to enter one, even that, takes a right that the agents do not have.
	namespace netns.NsHandle
	route     *netlink.Handle
	// raw is for what the library has no call for.
	raw *nl.SocketHandle
	// busy lets one pass at a time look and change.
	busy sync.Mutex
	// known are the indices of our devices when they were last looked at.
	known atomic.Pointer[map[int]bool]
	// keys are the private keys of devices, by the public ones.
	keys map[dataplane.Key]PrivateKey
	// user are the WireGuard devices of this process, by their names; endpoints is where their peers were last said to be.
	user      map[string]userEnd
	endpoints map[string]netip.AddrPort
	// forgot says that Forget has taken away what the next pass will put there again.
	forgot bool
	// stop, in tests, ends a pass before a change.
	stop func(change string) error
}

// buffer is how much the kernel may have to tell before we read it, or we it, in bytes: the firewall of a large cluster is one message.
const buffer = 8 << 20

// Open opens a network namespace by its file; "" is that of the calling process. WireGuard devices whose private keys it is given are run here,
// with their peers; of others, only what any device has is looked at.
func Open(path string, keys ...PrivateKey) (*Kernel, error) {
	namespace := netns.None()
	var err error
	if path != "" {
		if namespace, err = netns.GetFromPath(path); err != nil {
			return nil, fmt.Errorf("open network namespace %s: %w", path, err)
		}
	}
	k := &Kernel{
		namespace: namespace, keys: map[dataplane.Key]PrivateKey{}, user: map[string]userEnd{}, endpoints: map[string]netip.AddrPort{},
	}
	for _, key := range keys {
		k.keys[key.Public()] = key
	}
	if k.route, err = netlink.NewHandleAt(namespace, unix.NETLINK_ROUTE); err != nil {
		return nil, errors.Join(fmt.Errorf("open rtnetlink: %w", err), k.Close())
	}
	socket, err := nl.GetNetlinkSocketAt(namespace, netns.None(), unix.NETLINK_ROUTE)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open rtnetlink: %w", err), k.Close())
	}
	k.raw = &nl.SocketHandle{Socket: socket}
	return k, nil
}

// Close lets go of the namespace. What is in it stays, but for WireGuard devices in user space.
func (k *Kernel) Close() error {
	for name := range k.user {
		k.tunnelGone(name)
	}
	if k.route != nil {
		k.route.Close()
	}
	if k.raw != nil {
		k.raw.Close()
	}
	if !k.namespace.IsOpen() {
		return nil
	}
	return k.namespace.Close()
}

// firewall opens a conversation with nftables.
func (k *Kernel) firewall() (*nftables.Conn, error) {
	return nftables.New(nftables.WithNetNSFd(max(int(k.namespace), 0)), nftables.WithSockOptions(func(c *mdlayher.Conn) error {
		return errors.Join(c.SetReadBuffer(buffer), c.SetWriteBuffer(buffer))
	}))
}

// Read returns what of ours is in the namespace. What is there in place of something that is wanted is told in the same words, so that both can
// be compared: settings are read of the devices that are to have them, and rules of the firewall are known if they are wanted. A device that
// is down is left out, and so are the peers of WireGuard devices that others run.
func (k *Kernel) Read(wanted dataplane.State) (dataplane.State, error) {
	k.busy.Lock()
	defer k.busy.Unlock()
	var state dataplane.State
	devices, err := again(k.devices(wanted.Links).read)
	for _, d := range devices {
		if d.Up {
			state.Links = append(state.Links, d.Link)
		}
	}
	read := func(next func() error) {
		if err == nil {
			err = next()
		}
	}
	read(func() error {
		addresses, err := again(k.readAddresses)
		for i, link := range state.Links {
			for _, a := range addresses {
				if a.Device == link.Name {
					state.Links[i].Addresses = append(state.Links[i].Addresses, a.Prefix)
				}
			}
		}
		return err
	})
	read(func() (err error) { state.Devices, err = again(k.settings(wanted.Devices).read); return err })
	read(func() (err error) { state.Neighbors, err = again(k.readNeighbors); return err })
	read(func() (err error) { state.Peers, err = again(k.peers(wanted).read); return err })
	read(func() error {
		routes, err := again(k.routes(wanted).read)
		for _, r := range routes {
			if !r.misplaced { // As good as none: packets take another one.
				state.Routes = append(state.Routes, r.Route)
			}
		}
		return err
	})
	read(func() error {
		rules, err := again(k.rules(wanted).read)
		for _, r := range rules {
			state.Rules = append(state.Rules, r.Rule)
		}
		return err
	})
	read(func() error {
		tables, err := again(k.tables(wanted).read)
		for _, t := range tables {
			state.Firewall = append(state.Firewall, t.Table)
		}
		return err
	})
	return state, err
}

// resource is one sort of thing in the kernel.
type resource[T any] struct {
	// name is that of one of them, with what makes it another one: a wanted thing replaces what has its name.
	name func(T) string
	// same compares two of one name; nil is reflect.DeepEqual.
	same func(a, b T) bool
	// read lists what of ours is there.
	read func() ([]T, error)
	// put puts a thing there, in place of what has its name, if anything has.
	put func(wanted T, there *T) error
	// remove takes away what is there. It is no error if it is gone.
	remove func(T) error
	// part tells to which part of a State a thing belongs; nil if all are of the agents' own.
	part func(T) string
	// spares tells whether an error of put concerns nothing but that one thing of the agents' own, which is left out then; nil if none does.
	spares func(wanted T, err error) bool
	// leads tells that the things lead packets to others of their part: if one of those was refused, they are not wanted.
	leads bool
}

func (r resource[T]) partOf(thing T) string {
	if r.part == nil {
		return dataplane.OwnPart
	}
	return r.part(thing)
}

// bring is put; its error is spared if it concerns nothing but the thing itself.
func (r resource[T]) bring(wanted T, there *T) error {
	err := r.put(wanted, there)
	if err != nil && r.spares != nil && r.spares(wanted, err) {
		return spared{err}
	}
	return err
}

// Refused is the error of a State of which the kernel has all but some parts of administrators.
type Refused struct {
	// Parts are what they were refused for.
	Parts map[string]error
}

func (r *Refused) Error() string {
	var all []string
	for _, part := range slices.Sorted(maps.Keys(r.Parts)) {
		all = append(all, part+": "+r.Parts[part].Error())
	}
	return strings.Join(all, "; ")
}

// passes is how many comparisons Apply makes at most. Of what the first one changes, the kernel may take other things away, as the routes of an
// address that is not wanted any more; the second one puts them back, and the third finds nothing to do.
const passes = 3

// Apply makes what of ours is in the namespace equal to a State, and returns what it changed; the empty State removes all. If the kernel refuses
// parts of administrators, all else is there, and the error is a Refused. So is all else where it refuses a route by the address of a node or a
// gateway; who keeps a State is told of that (Report).
func (k *Kernel) Apply(wanted dataplane.State) (changes []string, err error) {
	r, _ := k.apply(wanted)
	return r.Changes, r.Err
}

// apply makes a pass, and tells whether Forget was called before.
func (k *Kernel) apply(wanted dataplane.State) (r Report, forgot bool) {
	k.busy.Lock()
	defer k.busy.Unlock()
	forgot, k.forgot = k.forgot, false
	for range passes {
		p := k.compare(wanted)
		r.Changes, r.Left = append(r.Changes, p.changes...), p.left
		switch {
		case p.err != nil:
			r.Err = p.err
			return r, forgot
		case len(p.changes) > 0:
		case len(p.refused) > 0:
			r.Err = &Refused{p.refused}
			return r, forgot
		default:
			return r, forgot
		}
	}
	r.Err = fmt.Errorf("the kernel does not keep what it is told: %q", r.Changes)
	return r, forgot
}

// compare changes what differs from a State. The firewall knows devices by their names: it comes before them, and goes after them. Devices forward
// once all else is there, and go before all else. So wherever a pass ends, no packet passes the firewall by, or goes on without the rules.
func (k *Kernel) compare(wanted dataplane.State) *pass {
	p := &pass{stop: k.stop, refused: map[string]error{}}
	tables := bring(p, k.tables(wanted), tablesOf(wanted.Firewall))
	devices := bring(p, k.devices(wanted.Links), devicesOf(wanted.Links))
	addresses := bring(p, k.addresses(), addressesOf(wanted.Links))
	neighbors := bring(p, k.neighbors(), neighborsOf(wanted.Neighbors))
	entries := bring(p, k.forwarding(), entriesOf(wanted.Neighbors))
	peers := bring(p, k.peers(wanted), k.peersOf(wanted))
	routes := bring(p, k.routes(wanted), routesOf(wanted.Routes))
	rules := bring(p, k.rules(wanted), rulesOf(wanted.Rules))
	bring(p, k.settings(wanted.Devices), wanted.Devices)
	for _, rest := range []func(){devices, rules, routes, peers, entries, neighbors, addresses, tables} {
		rest()
	}
	return p
}

// pass is one comparison of what is there with what is wanted. After the first error it does nothing more, but for errors of administrators' parts.
type pass struct {
	stop    func(change string) error
	changes []string
	err     error
	// refused are the first errors of administrators' parts.
	refused map[string]error
	// left says what was left out, and why.
	left []string
}

// spared is the error of a change that is left out.
type spared struct{ error }

// do makes one change of a part.
func (p *pass) do(part, verb, name string, change func() error) {
	if p.err != nil {
		return
	}
	text := verb + " " + name
	if p.stop != nil {
		if p.err = p.stop(text); p.err != nil {
			return
		}
	}
	err := change()
	switch {
	case err == nil:
		p.changes = append(p.changes, text)
	case errors.As(err, &spared{}):
		p.left = append(p.left, text+": "+err.Error())
	case part == dataplane.OwnPart:
		p.err = fmt.Errorf("%s: %w", text, err)
	case p.refused[part] == nil:
		p.refused[part] = fmt.Errorf("%s: %w", text, err)
	}
}

// bring puts the wanted things of one sort there, and returns what removes those that are not wanted.
func bring[T any](p *pass, r resource[T], wanted []T) (rest func()) {
	if p.err != nil {
		return func() {}
	}
	there, err := again(r.read)
	if err != nil {
		p.err = err
		return func() {}
	}
	surplus := map[string]T{}
	for _, thing := range there {
		surplus[r.name(thing)] = thing
	}
	for _, thing := range wanted {
		name, part := r.name(thing), r.partOf(thing)
		old, ok := surplus[name]
		if r.leads && p.refused[part] != nil {
			continue
		}
		delete(surplus, name)
		switch {
		case !ok:
			p.do(part, "add", name, func() error { return r.bring(thing, nil) })
		case r.same != nil && !r.same(old, thing) || r.same == nil && !reflect.DeepEqual(old, thing):
			p.do(part, "change", name, func() error { return r.bring(thing, &old) })
		}
	}
	return func() {
		for _, thing := range there {
			if _, ok := surplus[r.name(thing)]; ok && !p.holdsOn(r.leads, r.partOf(thing)) {
				p.do(r.partOf(thing), "remove", r.name(thing), func() error { return gone(r.remove(thing)) })
			}
		}
	}
}

// holdsOn tells whether what there is of a part stays although it is not wanted: of a part that was refused, what leads no packets does. A table
// changes as a whole or not at all, though it may get another name by that.
func (p *pass) holdsOn(leads bool, part string) bool { return !leads && p.refused[part] != nil }

// again reads until nothing changed meanwhile: on a busy node the kernel may say so of what it lists.
func again[T any](read func() ([]T, error)) (all []T, err error) {
	for range 10 {
		if all, err = read(); !errors.Is(err, netlink.ErrDumpInterrupted) {
			break
		}
	}
	return all, err
}

// gone forgives that what was to be removed is not there, as what a device had.
func gone(err error) error {
	if errors.As(err, &netlink.LinkNotFoundError{}) {
		return nil
	}
	for _, missing := range []error{unix.ENOENT, unix.ESRCH, unix.ENODEV, unix.EADDRNOTAVAIL, unix.ENXIO} {
		if errors.Is(err, missing) {
			return nil
		}
	}
	return err
}
