// Package stored bounds how many bytes a provider's API server stores for each consumer: an etcd has room for 2 GiB unless it is told
// otherwise, and when it is full nobody writes anything in the whole cluster. Quotas count objects, of which each may have 1.5 MiB.
//
// Contract:
//   - What counts is what a consumer wrote in its twins, as JSON, and twice what the provider makes a copy of; and, up to Past times as
//     much together with it, what was overwritten or deleted within the time for which an etcd keeps it (compaction).
//   - A consumer with more has its twins labelled offloading.liqo.io/too-many-bytes. The policy liqo-consumer-bytes lets it make and
//     change nothing there, and delete what it likes, until it has less again.
//   - It is noticed within a second. Until then a consumer writes as fast as its priority level lets it.
//   - ConfigMaps and Secrets are watched namespace by namespace, as the controller manager's rights are. Of no object more is kept than
//     its name, version and size, and no label is taken off before all that is watched is known.
package stored
