// Package agent is what the agents of nodes and gateways have in common: their connection to the API server, what tells the kubelet how they
// are, and what tells people how the kernel differs from what is wanted.
//
// Contract:
//   - The connection is as small as can be: there is one agent on every node and one for every peer. It knows our kinds alone.
//   - What is followed begins with what is stored now, never with what a server had in its cache.
//   - Nobody is told of an object that was not read: as long as a kind has not been listed, Synced says so.
package agent
