// Package offload extends namespaces to the selected provider clusters, and takes them back.
//
// Contract:
//   - Namespace writes one NamespaceOffloading per namespace and waits until the controllers have answered for its present
//     generation. It is idempotent; what cannot be changed afterwards is refused before anything is written.
//   - Several namespaces are handled one after another; an error in one does not keep the others from being handled.
//   - Undo deletes the NamespaceOffloadings and waits until the remote namespaces are gone. Remote namespaces are deleted with
//     everything in them, so commands ask the user first.
//   - Selector is pure: it turns label selectors into the node selector of the API.
package offload
