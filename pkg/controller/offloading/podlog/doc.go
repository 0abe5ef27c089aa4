// Package podlog decides, at the provider, which pods' logs a consumer may read.
//
// RBAC cannot say "the pods that run your ShadowPods", and admission is not asked about reading. So this controller keeps one
// Role, liqo-pod-logs, in each twin namespace. It names the pods whose logs were asked for, and nobody writes anything for
// the many pods whose logs nobody reads.
//
// Contract:
//   - A pod is named exactly while a ShadowPod of its name carries the annotation offloading.liqo.io/logs-requested, belongs to
//     the namespace's consumer, and controls the pod.
//   - The consumer is the one that the twin namespace belongs to, never one that a ShadowPod or a pod names.
//   - A Role that names no pod has no rule: a rule without names would allow all pods.
//   - Role and binding are made when the first pod is asked for, and go with the namespace. A Role of that name which is not
//     ours is left alone.
package podlog
