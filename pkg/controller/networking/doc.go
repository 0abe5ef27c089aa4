// Package networking registers the controllers of the network module: they give addresses to peers, nodes and gateways, and run a gateway
// for each peer. What goes through the kernel is up to the agents, which these controllers feed through the API.
package networking
