package dataplane_test

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"liqo.io/liqo/pkg/dataplane"
)

// A gateway that was taken over speaks for no one but peers, also not where a connection is known that has nothing to do with peers. A pod asks a
// DNS server of its own cluster, a node asks another one: neither takes the gateway's answers, nor what it tells of their connections.
func TestATakenOverGatewayJoinsNoConnection(t *testing.T) {
	l := build(t, dataplane.Labs(t)[0])
	defer l.close()
	// Where the kernel does not check sources, our rules have to.
	for _, place := range []dataplane.Place{nodeOne, nodeTwo, theGateway} {
		l.run(t, l.spaces[place], "for device in /proc/sys/net/ipv4/conf/*; do echo 0 > $device/rp_filter; done")
	}
	s := newSpy(t, l)
	udp := func(from, to string, source, destination uint16, payload string) []byte {
		return header{protocol: unix.IPPROTO_UDP, from: from, to: to}.packet(datagram(source, destination, payload))
	}
	const peer, gateway = "10.61.2.2", "10.70.255.254"
	for name, tc := range map[string]struct {
		asker           dataplane.Place
		from, to, asked string
	}{
		"a pod asks a pod of another node":  {thePod, victimPod, "10.244.1.2", "A pod 10.244.1.2 itself"},
		"a pod asks something outside":      {thePod, victimPod, "192.0.2.50", "printer itself"},
		"a node asks another node":          {nodeTwo, "172.31.1.2", "172.31.1.1", "A1 itself"},
		"a node asks something outside too": {nodeTwo, "172.31.1.2", "192.0.2.50", "printer itself"},
	} {
		t.Run(name, func(t *testing.T) {
			question := s.mark()
			asked := udp(tc.from, tc.to, 40000, 53, question)
			forgeries := map[string]func(token string) []byte{
				"an answer": func(token string) []byte { return udp(tc.to, tc.from, 53, 40000, token) },
			}
			for who, source := range map[string]string{"a peer": peer, "the gateway": gateway, "who was asked": tc.to} {
				forgeries["an error of "+who] = func(token string) []byte {
					return icmpPacket(source, tc.from, 3, 3, [4]byte{}, udp(tc.from, tc.to, 40000, 53, token))
				}
				forgeries["a smaller MTU, by "+who] = func(token string) []byte {
					return icmpPacket(source, tc.from, 3, 4, [4]byte{0, 0, 2, 64}, udp(tc.from, tc.to, 40000, 53, token))
				}
			}
			forge := func(packet []byte) {
				if err := s.put(theGateway, dataplane.GatewayDevice, [][]byte{frame(vtepMAC("172.31.1.2"), unix.ETH_P_IP, packet)}); err != nil {
					t.Fatal(err)
				}
			}
			taken := func(token string) bool { return slices.Contains(s.sightings(token), string(tc.asker)+" itself") }
			early := s.mark()
			forge(forgeries["an answer"](early))
			s.settle(t)
			if taken(early) {
				t.Fatal("control: the answer arrives although nobody asked")
			}
			s.until(t, question, tc.asked, func() { _ = s.put(tc.asker, "", [][]byte{asked}) })
			late := map[string]string{}
			for what, forged := range forgeries {
				late[what] = s.mark()
				forge(forged(late[what]))
			}
			s.settle(t)
			for what, token := range late {
				if taken(token) {
					t.Errorf("%s asked %s; %s that the gateway of peer B made is taken: seen %q", tc.asker, tc.to, what, s.sightings(token))
				}
			}
		})
	}
}
