package gateway

import (
	"net/netip"
	"slices"
	"time"

	"liqo.io/liqo/pkg/addressing"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

const (
	// announcing is the kind of message that names ranges. Who does not know it leaves it alone.
	announcing = 3
	// rangeSize is what a range of IPv4 takes: its address and its length.
	rangeSize        = 4 + 1
	announcementHead = len(magic) + 1
	announcementSize = announcementHead + addressing.MaxAnnounced*rangeSize
	// announcedEvery is how often another announcement may be heard. Each has ranges found and given back.
	announcedEvery = 30 * time.Second
)

// announce is the message that names ranges. Those of IPv6 are left out: no tunnel carries them.
func announce(ranges []netip.Prefix) []byte {
	raw := append(make([]byte, 0, announcementSize), magic[:]...)
	raw = append(raw, announcing)
	for _, r := range ranges {
		if address := r.Addr(); address.Is4() && len(raw) < announcementSize {
			raw = append(append(raw, address.AsSlice()...), byte(r.Bits())) //nolint:gosec // At most 32.
		}
	}
	return raw
}

// announcement reads such a message; false if it is none. The ranges are what a peer says, and nothing more.
func announcement(raw []byte) (ranges []netip.Prefix, ok bool) {
	if len(raw) < announcementHead || len(raw) > announcementSize || (len(raw)-announcementHead)%rangeSize != 0 ||
		[4]byte(raw[:4]) != magic || raw[4] != announcing {
		return nil, false
	}
	for one := range slices.Chunk(raw[announcementHead:], rangeSize) {
		r := netip.PrefixFrom(netip.AddrFrom4([4]byte(one)), int(one[4]))
		if !r.IsValid() {
			return nil, false
		}
		ranges = append(ranges, r.Masked())
	}
	return ranges, true
}

// announcementOf is what the other end is told: the further ranges of this cluster.
func announcementOf(c *networkingv1beta1.Configuration) (ranges []netip.Prefix) {
	if !c.Spec.Transit || c.Spec.Local == nil || len(c.Spec.Local.CIDR.External) == 0 {
		return nil
	}
	for _, text := range c.Spec.Local.CIDR.External[1:] {
		if r, err := text.Prefix(); err == nil {
			ranges = append(ranges, r)
		}
	}
	return ranges
}

// transit is what the other end tells of the clusters behind it.
type transit struct {
	// unwanted says that nobody wants to know.
	unwanted bool
	ranges   []netip.Prefix
	// at is when it last told something new; zero if it has told nothing.
	at time.Time
}

// hear takes an announcement in. One that comes too soon after another one will be repeated.
func (t *transit) hear(ranges []netip.Prefix, now time.Time) {
	if t.at.IsZero() || !slices.Equal(t.ranges, ranges) && now.Sub(t.at) >= announcedEvery {
		t.ranges, t.at = ranges, now
	}
}

// status is what is told of it, after what was told before.
func (t *transit) status(before *networkingv1beta1.ConnectionTransit) *networkingv1beta1.ConnectionTransit {
	switch {
	case t.unwanted:
		return nil
	case t.at.IsZero():
		return before
	}
	told := &networkingv1beta1.ConnectionTransit{}
	for _, r := range t.ranges {
		told.CIDRs = append(told.CIDRs, networkingv1beta1.CIDR(r.String()))
	}
	return told
}
