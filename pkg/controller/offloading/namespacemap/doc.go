// Package namespacemap makes, at the provider, the twins of a consumer's namespaces: it reconciles the NamespaceMaps that
// consumers replicate into their tenant namespaces.
//
// Contract:
//   - The tenant is read from the tenant namespace's label, never from the NamespaceMap, which the consumer writes.
//   - A namespace is a twin of a map only if both annotations say so: managed-by-namespace-map is <tenant namespace>/<map>, and
//     origin-uid is the map's own UID; one that an earlier map of that name left, for the very namespace, is taken up. Any other
//     namespace of a wanted name is a conflict: it is reported for that name alone and never touched.
//   - A twin is deleted only when the map no longer wants it, or is deleted. A cordoned, drained or unknown tenant keeps its twins and
//     gets no new ones; one that is drained loses its rights in them, and its pods.
//   - A twin that was wanted last in an earlier peering, or that was made for an earlier namespace of the same name, is not deleted, nor
//     taken up, while it holds claims.
//   - If the Tenant is gone, drained or revoked when the map is deleted, the consumer was not asked: twins that hold claims stay, without
//     rights and pods, and an Event says how their data is lost.
//   - A tenant has as many twins as it may have, over all its maps, those that are leaving, and those that are gone and left
//     volumes, included; only its oldest map gets new ones.
//   - What the ResourceQuota of a twin allows of storage is less what volumes take that outlived their claims there.
//   - The consumer's rights in a twin come last, after its Pod Security labels, ResourceQuota and NetworkPolicy.
//   - A twin that does not go names in status what keeps it.
package namespacemap
