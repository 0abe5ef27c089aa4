package netlink

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// register is where the code of a rule keeps what it works on; the kernel numbers them from 1.
const register = 1

// digest is the comment of a rule: whatever changes what the kernel is told of it changes the digest.
func digest(rule dataplane.ChainRule) (string, error) {
	code, err := compile(rule)
	if err != nil {
		return "", err
	}
	sum := sha256.New()
	for _, step := range code {
		raw, err := expr.Marshal(unix.NFPROTO_IPV4, step)
		if err != nil {
			return "", fmt.Errorf("encode rule %q: %w", rule, err)
		}
		sum.Write(raw)
	}
	return "liqo " + hex.EncodeToString(sum.Sum(nil)[:12]), nil
}

// compiler writes the code of a rule.
type compiler struct{ code []expr.Any }

// compile translates a rule to the kernel's code.
func compile(rule dataplane.ChainRule) ([]expr.Any, error) {
	c := &compiler{}
	for _, m := range rule.Match {
		if err := c.match(m); err != nil {
			return nil, fmt.Errorf("rule %q: %w", rule, err)
		}
	}
	for _, s := range rule.Do {
		if err := c.statement(s); err != nil {
			return nil, fmt.Errorf("rule %q: %w", rule, err)
		}
	}
	return c.code, nil
}

func (c *compiler) add(steps ...expr.Any) { c.code = append(c.code, steps...) }

// part is where in a packet an address is, and where the checksum that has to follow it.
type part struct {
	base             expr.PayloadBase
	offset, checksum uint32
	// flags say that the checksum of TCP and UDP follows too.
	flags uint32
}

// parts of the header, and of the header that an ICMP error quotes after its own 8 bytes. The quoted header's checksum takes up what changes
// in it, so that ICMP's own stays right.
var parts = map[dataplane.Field]part{
	dataplane.Source:            {expr.PayloadBaseNetworkHeader, 12, 10, unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR},
	dataplane.Destination:       {expr.PayloadBaseNetworkHeader, 16, 10, unix.NFT_PAYLOAD_L4CSUM_PSEUDOHDR},
	dataplane.QuotedSource:      {expr.PayloadBaseTransportHeader, 20, 18, 0},
	dataplane.QuotedDestination: {expr.PayloadBaseTransportHeader, 24, 18, 0},
}

func (c *compiler) load(field dataplane.Field) error {
	p, ok := parts[field]
	if !ok {
		return fmt.Errorf("%q is no address of a packet", field)
	}
	c.add(&expr.Payload{DestRegister: register, Base: p.base, Offset: p.offset, Len: 4})
	return nil
}

func (c *compiler) store(field dataplane.Field) {
	p := parts[field]
	c.add(&expr.Payload{
		OperationType: expr.PayloadWrite, SourceRegister: register, Base: p.base, Offset: p.offset, Len: 4,
		CsumType: expr.CsumTypeInet, CsumOffset: p.checksum, CsumFlags: p.flags,
	})
}

func (c *compiler) match(m dataplane.Match) error {
	switch m.Field {
	case dataplane.Source6, dataplane.Destination6:
		c.addressRange(m)
	case dataplane.TCPSource:
		c.number(unix.IPPROTO_TCP, 0, 2, m)
	case dataplane.UDPSource:
		c.number(unix.IPPROTO_UDP, 0, 2, m)
	case dataplane.Transport:
		c.add(
			&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register},
			&expr.Cmp{Op: equal(!m.Not), Register: register, Data: []byte{byte(m.Number)}}, //nolint:gosec // A protocol has 8 bits.
		)
	case dataplane.InDevice:
		c.device(expr.MetaKeyIIFNAME, m)
	case dataplane.OutDevice:
		c.device(expr.MetaKeyOIFNAME, m)
	case dataplane.OriginalDestination:
		// Not expr.CtKeyDST, which is of either family: nft 1.0.6 crashes when it lists a rule with that.
		c.add(&expr.Ct{Register: register, Key: expr.CtKeyDSTIP}) // Direction 0: the original one.
		c.address(m)
	case dataplane.ConnectionState, dataplane.Confirmed:
		return c.connection(m)
	case dataplane.UDPPort:
		c.number(unix.IPPROTO_UDP, 2, 2, m)
	case dataplane.TCPPort:
		c.number(unix.IPPROTO_TCP, 2, 2, m)
	case dataplane.ICMPType:
		c.number(unix.IPPROTO_ICMP, 0, 1, m)
	case dataplane.Opening:
		const syn, rst = 2, 4
		c.protocol(unix.IPPROTO_TCP)
		c.add(
			&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: 13, Len: 1},
			&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 1, Mask: []byte{syn | rst}, Xor: []byte{0}},
			&expr.Cmp{Op: equal(!m.Not), Register: register, Data: []byte{syn}},
		)
	default:
		if m.First.IsValid() {
			c.addressRange(m)
			return nil
		}
		if err := c.load(m.Field); err != nil {
			return err
		}
		c.address(m)
	}
	return nil
}

// addressRange compares an address of a packet of either family with a range. A packet of the other family has no such address.
func (c *compiler) addressRange(m dataplane.Match) {
	family, offset, length := byte(unix.NFPROTO_IPV4), uint32(12), uint32(4)
	if m.First.Is6() {
		family, offset, length = unix.NFPROTO_IPV6, 8, 16
	}
	if m.Field == dataplane.Destination || m.Field == dataplane.Destination6 {
		offset += length
	}
	c.add(
		&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: register},
		&expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{family}},
		&expr.Payload{DestRegister: register, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: length},
		&expr.Range{Op: equal(!m.Not), Register: register, FromData: m.First.AsSlice(), ToData: m.Last.AsSlice()},
	)
}

func equal(yes bool) expr.CmpOp {
	if yes {
		return expr.CmpOpEq
	}
	return expr.CmpOpNeq
}

func (c *compiler) device(key expr.MetaKey, m dataplane.Match) {
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, m.Device)
	c.add(&expr.Meta{Key: key, Register: register}, &expr.Cmp{Op: equal(!m.Not), Register: register, Data: name})
}

// address compares the address that was loaded with a set or a prefix.
func (c *compiler) address(m dataplane.Match) {
	if m.Set != "" {
		c.add(&expr.Lookup{SourceRegister: register, SetName: m.Set, Invert: m.Not})
		return
	}
	c.add(
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4, Mask: mask(m.Prefix.Bits()), Xor: make([]byte, 4)},
		&expr.Cmp{Op: equal(!m.Not), Register: register, Data: m.Prefix.Addr().AsSlice()},
	)
}

// mask has as many bits set as a prefix.
func mask(bits int) []byte {
	return binary.BigEndian.AppendUint32(nil, ^uint32(0)<<(32-bits))
}

// connection looks for one of some bits of the packet's connection.
func (c *compiler) connection(m dataplane.Match) error {
	key, bits := expr.CtKeySTATE, uint32(0)
	if m.Field == dataplane.Confirmed {
		key, bits = expr.CtKeySTATUS, 1<<3 // IPS_CONFIRMED
	}
	for _, state := range m.States {
		bit, ok := map[string]uint32{
			dataplane.StateNew: expr.CtStateBitNEW, dataplane.StateEstablished: expr.CtStateBitESTABLISHED,
			dataplane.StateRelated: expr.CtStateBitRELATED, dataplane.StateUntracked: expr.CtStateBitUNTRACKED,
		}[state]
		if !ok {
			return fmt.Errorf("%q is no state of a connection", state)
		}
		bits |= bit
	}
	c.add(
		&expr.Ct{Register: register, Key: key},
		&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(bits), Xor: make([]byte, 4)},
		&expr.Cmp{Op: equal(m.Not), Register: register, Data: make([]byte, 4)},
	)
	return nil
}

func (c *compiler) protocol(number byte) {
	c.add(&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: register}, &expr.Cmp{Op: expr.CmpOpEq, Register: register, Data: []byte{number}})
}

// number compares a number of the transport's header.
func (c *compiler) number(protocol byte, offset, length uint32, m dataplane.Match) {
	c.protocol(protocol)
	c.add(&expr.Payload{DestRegister: register, Base: expr.PayloadBaseTransportHeader, Offset: offset, Len: length})
	if m.Through != 0 {
		from, to := binary.BigEndian.AppendUint16(nil, m.Number), binary.BigEndian.AppendUint16(nil, m.Through)
		c.add(&expr.Range{Op: equal(!m.Not), Register: register, FromData: from, ToData: to})
		return
	}
	c.add(
		&expr.Cmp{Op: equal(!m.Not), Register: register, Data: binary.BigEndian.AppendUint16(nil, m.Number)[2-length:]},
	)
}

func (c *compiler) statement(s dataplane.Statement) error {
	switch s.Do {
	case dataplane.Accept, dataplane.Drop, dataplane.Return, dataplane.Goto, dataplane.Jump:
		c.add(verdict(s.Do, s.Name))
	case dataplane.Count:
		if s.Name == "" {
			c.add(&expr.Counter{})
			return nil
		}
		c.add(&expr.Objref{Type: int(nftables.ObjTypeCounter), Name: s.Name})
	case dataplane.Notrack:
		c.add(&expr.Notrack{})
	case dataplane.RateOver:
		bound := uint32(s.Size) //nolint:gosec // Some thousands.
		c.add(&expr.Limit{Type: expr.LimitTypePkts, Rate: uint64(bound), Unit: expr.LimitTimeSecond, Burst: 2 * bound, Over: true})
	case dataplane.CountOver:
		c.add(&expr.Connlimit{Count: uint32(s.Size), Flags: expr.NFT_CONNLIMIT_F_INV}) //nolint:gosec // Some thousands.
	case dataplane.Rewrite, dataplane.Lookup:
		return c.rewrite(s)
	case dataplane.SNAT, dataplane.DNAT:
		return c.translate(s)
	case dataplane.Mark:
		c.add(
			&expr.Immediate{Register: register, Data: binaryutil.NativeEndian.PutUint32(s.Mark)},
			&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: register},
		)
	case dataplane.MarkConnection:
		c.add(
			&expr.Immediate{Register: register, Data: binaryutil.NativeEndian.PutUint32(s.Mark)},
			&expr.Ct{Register: register, Key: expr.CtKeyMARK, SourceRegister: true},
		)
	case dataplane.MarkPacket:
		c.add(&expr.Ct{Register: register, Key: expr.CtKeyMARK}, &expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: register})
	case dataplane.Reject:
		return c.reject(s.Name)
	case dataplane.Masquerade:
		c.add(&expr.Masq{})
	case dataplane.Clamp:
		c.clamp(s.Size)
	default:
		return fmt.Errorf("%q is not to be had", s.Do)
	}
	return nil
}

func verdict(do dataplane.Do, chain string) *expr.Verdict {
	kind := map[dataplane.Do]expr.VerdictKind{
		dataplane.Accept: expr.VerdictAccept, dataplane.Drop: expr.VerdictDrop, dataplane.Return: expr.VerdictReturn,
		dataplane.Goto: expr.VerdictGoto, dataplane.Jump: expr.VerdictJump,
	}[do]
	return &expr.Verdict{Kind: kind, Chain: chain}
}

// rewrite puts a prefix before an address, or what a map has for it in its place.
func (c *compiler) rewrite(s dataplane.Statement) error {
	if err := c.load(s.Field); err != nil {
		return err
	}
	if s.Do == dataplane.Lookup {
		c.add(&expr.Lookup{SourceRegister: register, DestRegister: register, IsDestRegSet: true, SetName: s.Name})
	} else {
		host := mask(s.Prefix.Bits())
		for i := range host {
			host[i] = ^host[i]
		}
		c.add(&expr.Bitwise{SourceRegister: register, DestRegister: register, Len: 4, Mask: host, Xor: s.Prefix.Addr().AsSlice()})
	}
	c.store(s.Field)
	return nil
}

// translate gives a connection another source or destination.
func (c *compiler) translate(s dataplane.Statement) error {
	nat := &expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: register}
	if s.Do == dataplane.DNAT {
		nat.Type = expr.NATTypeDestNAT
	}
	switch {
	case s.Address.Port() != 0:
		return fmt.Errorf("ports are not translated")
	case s.Field != "":
		if err := c.load(s.Field); err != nil {
			return err
		}
	case s.Prefix.IsValid():
		if s.Prefix.Addr().Is6() {
			nat.Family = unix.NFPROTO_IPV6
		}
		nat.RegAddrMax, nat.Prefix = register+1, true
		first, last := dataplane.Ends(s.Prefix)
		c.add(&expr.Immediate{Register: nat.RegAddrMin, Data: first.AsSlice()}, &expr.Immediate{Register: nat.RegAddrMax, Data: last.AsSlice()})
	default:
		if s.Address.Addr().Is6() {
			nat.Family = unix.NFPROTO_IPV6
		}
		c.add(&expr.Immediate{Register: register, Data: s.Address.Addr().AsSlice()})
	}
	c.add(nat)
	return nil
}

// reject tells a packet's sender that nobody is at its port.
func (c *compiler) reject(by string) error {
	code, ok := map[string]*expr.Reject{
		"icmp": {Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 3}, "icmpv6": {Type: unix.NFT_REJECT_ICMP_UNREACH, Code: 4},
		"icmpx": {Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH},
	}[by]
	if !ok {
		return fmt.Errorf("%q is no sort of ICMP", by)
	}
	c.add(code)
	return nil
}

// clamp bounds the segment size that is offered; the kernel never raises it.
func (c *compiler) clamp(size int) {
	const option, offset, length = 2, 2, 2 // Option 2 of TCP, and where its value is.
	if size > 0 {
		c.add(&expr.Immediate{Register: register, Data: binary.BigEndian.AppendUint16(nil, uint16(size))}) //nolint:gosec // An MTU.
	} else {
		c.add(
			&expr.Rt{Register: register, Key: expr.RtTCPMSS},
			&expr.Byteorder{SourceRegister: register, DestRegister: register, Op: expr.ByteorderHton, Len: 2, Size: 2},
		)
	}
	c.add(&expr.Exthdr{SourceRegister: register, Type: option, Offset: offset, Len: length, Op: expr.ExthdrOpTcpopt})
}
