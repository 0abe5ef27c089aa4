// Package ingressstatus takes the addresses that came back from a provider out of the status of this cluster's Ingresses when the
// provider goes, so that they lead nobody astray and leave room for those of another one.
//
// A virtual kubelet writes them; this controller outlives it, and removes them when the namespace is no longer offloaded to that
// provider, the provider's last VirtualNode is gone, or what comes back is turned off.
//
// Contract:
//   - Who wrote them is known by the API server's record of managed fields: each provider has a field manager of its own. What
//     anybody else wrote, or wrote too, is left alone.
//   - A provider that does not answer is not gone: only NamespaceMaps, VirtualNodes and VkOptionsTemplates of this cluster decide, read
//     once more past the cache before anything is removed. What cannot be read keeps the addresses.
//   - It writes nothing else, and only to the version of the Ingress that was judged.
package ingressstatus
