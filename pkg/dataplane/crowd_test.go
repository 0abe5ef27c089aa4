package dataplane_test

import (
	"bytes"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// What a peer opens is remembered by the node of the pod that it goes to. The kernel's table is one for the whole node, kubelet and all tenants: a
// peer does not fill it, whatever it opens. What a peer's many pods open at once in good faith all passes.
func TestAPeerDoesNotFillANodesTableOfConnections(t *testing.T) {
	const opened, inGoodFaith = 30000, 3000
	datagrams := func(source netip.Addr, i int) []byte {
		return header{protocol: unix.IPPROTO_UDP, from: source.String(), to: victimPod}.packet(datagram(uint16(1024+i%500), uint16(2000+i/500), "x")) //nolint:gosec // Ports.
	}
	const slowly = "datagrams, as if they came slowly"
	for name, packet := range map[string]func(source netip.Addr, i int) []byte{
		"datagrams to a pod": datagrams,
		slowly:               datagrams,
		"connections to a pod": func(source netip.Addr, i int) []byte {
			return tcpPacket(source.String(), victimPod, uint16(2000+i%500), 0x02, "") //nolint:gosec // A port.
		},
		"echoes to a node": func(source netip.Addr, i int) []byte {
			return icmpPacket(source.String(), "10.70.0.2", 8, 0, [4]byte{byte(i >> 8), byte(i), 0, 1}, []byte("x")) //nolint:gosec // A number.
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := build(t, dataplane.Labs(t)[0])
			defer l.close()
			// An answer that refuses would end what is opened.
			l.run(t, l.spaces[thePod], "nft add table ip quiet; nft add chain ip quiet input '{ type filter hook input priority 0; policy drop; }'")
			if name == slowly { // By their number alone.
				l.without(t, map[dataplane.Place][]string{nodeTwo: {string(dataplane.RateOver)}})
			}
			number := func(of string) int {
				var out bytes.Buffer
				if err := l.output(t, l.spaces[nodeTwo], "cat /proc/sys/net/netfilter/"+of, &out); err != nil {
					t.Fatal(err, out.String())
				}
				n, err := strconv.Atoi(strings.TrimSpace(out.String()))
				if err != nil {
					t.Fatal(err)
				}
				return n
			}
			settled := func() int {
				was, now := -1, number("nf_conntrack_count")
				for was != now {
					pause(t.Context(), 300*time.Millisecond)
					was, now = now, number("nf_conntrack_count")
				}
				return now
			}
			before, sent, source := number("nf_conntrack_count"), 0, netip.MustParseAddr("10.244.3.1")
			for i := range opened {
				if i%500 == 499 {
					source = source.Next()
				}
				if i == inGoodFaith {
					if now := settled(); now-before < inGoodFaith*9/10 { // Some of them may be lost in queues.
						t.Errorf("of %d that are opened at once, %d pass", inGoodFaith, now-before)
					}
				}
				for range 100 { // the device is a queue
					raw := packet(source, i)
					if n, err := l.tunnels[theGateway].Write(raw); err == nil && n == len(raw) {
						sent++
						break
					}
				}
			}
			now := settled()
			t.Logf("%d before, %d after %d packets of one peer; the kernel has room for %d", before, now, sent, number("nf_conntrack_max"))
			if now-before > sent/4 {
				t.Errorf("one peer opened %d connections in a moment, and node A2 remembers %d of them: nothing bounds what a peer opens", sent, now-before)
			}
		})
	}
}

// Datagrams to somebody who never answers are of one connection, however many they are: they are not taken for as many, and leave the peer's others room.
func TestDatagramsOfOneConnectionLeaveRoom(t *testing.T) {
	l := build(t, dataplane.Labs(t)[0])
	defer l.close()
	l.run(t, l.spaces[thePod], "nft add table ip quiet; nft add chain ip quiet input '{ type filter hook input priority 0; policy drop; }'")
	write := func(raw []byte) {
		for range 100 { // the device is a queue
			if n, err := l.tunnels[theGateway].Write(raw); err == nil && n == len(raw) {
				return
			}
		}
	}
	for range 20000 {
		write(header{protocol: unix.IPPROTO_UDP, from: "10.244.3.1", to: victimPod}.packet(datagram(1024, 514, "x")))
	}
	const others = 1000
	for i := range others {
		write(header{protocol: unix.IPPROTO_UDP, from: "10.244.3.2", to: victimPod}.packet(datagram(uint16(2000+i), 53, "x"))) //nolint:gosec // A port.
	}
	var out bytes.Buffer
	remembered := 0
	for deadline := time.Now().Add(10 * time.Second); remembered < others*9/10 && time.Now().Before(deadline); pause(t.Context(), 100*time.Millisecond) {
		out.Reset()
		if err := l.output(t, l.spaces[nodeTwo], "cat /proc/sys/net/netfilter/nf_conntrack_count", &out); err != nil {
			t.Fatal(err, out.String())
		}
		remembered, _ = strconv.Atoi(strings.TrimSpace(out.String()))
	}
	if remembered < others*9/10 {
		t.Errorf("beside 20 000 datagrams of one connection, of %d others %d pass", others, remembered)
	}
}
