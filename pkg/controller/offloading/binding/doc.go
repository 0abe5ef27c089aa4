// Package binding keeps the RoleBindings by which rights reach into one namespace: of virtual kubelets in the namespaces that
// are offloaded, of consumers and of our own controllers in the twins. A RoleBinding that exists under the name and is not
// ours (it lacks the label liqo.io/managed) is reported as a conflict and left alone.
package binding
