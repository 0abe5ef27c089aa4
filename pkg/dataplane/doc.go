// Package dataplane says what the network of peered clusters is made of on a node and in a gateway, and how a packet travels through it.
//
// Contract:
//   - A State is all that one agent of ours owns in one network namespace, as a plain value: links, neighbours, routes, rules, the firewall,
//     WireGuard peers, settings of devices. It holds no secret.
//   - Node and Gateway are pure: the same input makes the same State, whatever the order in the input. What cannot be used is left out and
//     returned as a Problem; the rest works.
//   - Walk interprets States as the kernel does: it answers which hops a packet takes, with its addresses before and after each, and how
//     the answer comes back. Two States that it cannot tell apart may still differ in speed, never in what they let pass.
//   - String of a State is stable, in the words of ip and nft.
//
// The kernel alone decides in the end: pkg/netlink puts a State there.
package dataplane
