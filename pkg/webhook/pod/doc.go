// Package pod is the admission of new pods in offloaded namespaces: it lets the scheduler put them where the namespace's
// NamespaceOffloading says. The decision is placement.MutatePod; this package only looks up what it needs. A pod whose
// namespace has no NamespaceOffloading (any more) is admitted as it is, with a warning: it must not be lost over that.
//
// From Kubernetes 1.36 on the API server decides by itself (the chart's policy liqo-placement), and asks here only about pods
// that it marks: those that name their node, and those that may be large while their namespace has no label that says so.
package pod
