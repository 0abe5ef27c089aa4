// Package netlink puts a dataplane.State into the kernel, and keeps it there.
//
// Contract:
//   - What is ours is marked in the kernel: devices by the names of package dataplane and their kind, what is on a device by the device, routes by
//     table and protocol, rules by protocol, the firewall by the name of its table. Everything else is foreign and is never touched. So what
//     an older version or a process that was killed has left behind is found, and removed.
//   - Apply changes only what differs: applied twice, a State makes no change at all. The firewall comes first, each table in one transaction; then
//     what packets need before what leads them to it: devices, addresses, neighbours, routes, rules. Devices forward last. What is not wanted any
//     more goes in the opposite order, but devices before all else.
//   - Apply that ends early, for an error or because the process was killed, has done nothing that another one does not complete. Nothing is open
//     then: what comes by a device of ours passes the firewall, and goes on only if the rules are there.
//   - Keep applies whenever the kernel tells that something of ours changed, and every minute.
//   - Rules of the firewall are compared by a digest of what they are to do, which each carries as its comment. Whoever changes what such a rule
//     does and keeps its comment is not noticed: this takes intent, and the rights of root.
//   - Where the kernel has no WireGuard, the devices whose private keys Open is given run in this process. A peer is told to be at an endpoint
//     when that is news, and may move afterwards, as WireGuard has it.
package netlink
