// Package nodefailure lets, at the provider, the pods of ShadowPods move away from a node that died.
//
// Kubernetes marks the pods of such a node for deletion, and then waits for the node's word that they ended, which never
// comes. This controller, which is off unless controllerManager.config.enableNodeFailureController is set, removes them by
// force, and the ShadowPod controller makes them anew elsewhere.
//
// Contract:
//   - A pod is removed only if a ShadowPod controls it, it is being deleted already, its grace period is over, and its node
//     says by the API server's own word, not by the cache's, that it is not ready.
//   - A node that does not exist is none of its business: Kubernetes removes the pods of those.
//   - It is opt-in, because a node that is only cut off may still run what is then started elsewhere.
package nodefailure
