// Package pod runs the pods of a virtual node: each gets a ShadowPod in the twin of its namespace, and shows what becomes of
// the pod that the provider makes from it.
//
// Contract:
//   - Two queues: new work (ShadowPods made, changed and removed; local pods removed at last) and status back. Neither waits
//     behind the other.
//   - The decisions are those of package reflection. This package fetches, calls and applies; it writes only what differs, so
//     a restart with everything in place writes nothing.
//   - A ShadowPod carries the UID of its local pod. One with another UID is of an earlier pod of that name: it goes first,
//     and its remote pod with it, before a new one is made. Creation is guarded by the name: AlreadyExists with our UID is
//     success, which also covers lost answers and crashes.
//   - A terminating local pod is removed when its ShadowPod and its remote pod are known to be gone, not before; or when its provider is
//     lost, was told to stop it without signs of life, took some, and must have stopped it.
//   - A ShadowPod without local pod is removed only after the local API server confirmed that there is no such pod.
//     Many whose pods a list did not show, as after the restore of an old backup, are kept until that is confirmed.
//   - A twin is watched from the first pod of its namespace on, or because a survey found ShadowPods there; it is surveyed until
//     the provider told.
//   - While the provider does not answer, or a cache is not filled, nothing is removed and no status is written.
//   - A pod is given up (Failed/OffloadingAborted) only when the NamespaceMap was read and does not want its namespace.
//
// Local calls are made as the node itself; remote ones with the slice's identity. All caches are narrowed by selectors.
package pod
