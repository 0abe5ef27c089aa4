// Package metrics shows what the controller manager's caches hold as metrics: how the virtual nodes of this cluster are, which of
// its namespaces are not offloaded as they should be and why, and what it runs for the consumers that it granted resources to.
//
// Contract:
//   - Everything is counted at the scrape, from the caches that the controllers keep anyway: nothing is asked of an API server.
//   - Only the active replica shows anything, so that the values of several replicas do not add up.
//   - Labels are few: the IDs of peers, the names of virtual nodes and of namespaces that fail, reasons of a closed list.
package metrics
