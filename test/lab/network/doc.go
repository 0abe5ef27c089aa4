// Package network gives every control plane and every real node of a lab a
// network namespace and joins them.
//
// A lab has one switch: a bridge in a network namespace of its own, so that the
// host's firewall rules never see the lab's frames. Every namespace has one
// interface eth0 on it; the host has one, through which it reaches the API
// servers. Addresses come from a /24 of 172.30.0.0/16 that no other lab and no
// route of the host uses.
//
// Each namespace routes the pod ranges of its own cluster's nodes, and in flat
// mode those of all clusters; pod traffic to anything else leaves with the
// node's address. A link between two clusters is cut on the switch.
//
// In routed mode the switch is a router: it has a bridge for each cluster, whose
// /27 it is the gateway of, and passes nothing between them and the host but
// packets whose both addresses are of the lab's /24. A link between two clusters
// can be cut there, and further be made one that blocks UDP, has a smaller MTU,
// hides nodes behind one address, loses packets or is slow. Packets of a slow link
// take their way through a TUN device and the program in folder relay.
package network
