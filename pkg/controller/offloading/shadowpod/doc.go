// Package shadowpod keeps, at the provider, one Pod for every ShadowPod, with or without the consumer.
//
// Contract:
//   - What is done next is one pure decision (Decide) over the ShadowPod and the Pod of its name.
//   - A Pod that finished by itself is recorded in the ShadowPod's status and never runs again, even when Pod and node vanish:
//     Pods that may finish carry a finalizer until that is written. A Pod that was deleted, evicted or lost is made again.
//   - A Pod that asks for it is stopped once its consumer gave no sign of life for as long as it says (Silent), and none is made again. Signs
//     are when the API server wrote a Lease, so a restart forgets none. A consumer that never gave one is not judged.
//   - No Pod is created from a specification that fails the allow-list, whoever admitted the ShadowPod.
//   - The Pods together stay within what their user was granted, however many replicas of the webhook admitted ShadowPods: one
//     without room has condition Ready=False with reason QuotaExceeded until there is. A Pod counts until it is gone or finished,
//     also without its ShadowPod.
//   - A Pod of the name that this very ShadowPod does not control is left alone; one of an earlier ShadowPod of the name is
//     waited for.
//   - A Pod that runs gets the ShadowPod's labels, annotations, images, deadline, tolerations, ephemeral containers and size, and
//     loses the labels and annotations that the ShadowPod loses. Of its specification only what is asked for anew is brought over: what
//     the provider's admission made of it stays. What is refused holds up nothing else; what somebody keeps undoing is asked for twice
//     a minute at most.
//   - Refusals by the provider's rules (quota, Pod Security, webhooks) are shown in condition Ready and retried slowly.
package shadowpod
