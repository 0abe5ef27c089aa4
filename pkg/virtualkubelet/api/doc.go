// Package api serves the kubelet's HTTPS endpoint for a virtual node.
//
// The local kube-apiserver calls it for `kubectl logs`, `exec`, `attach` and `port-forward`; every such call is run
// against the provider's API server, on the twin of the pod. The routes, query parameters, stream protocols (SPDY,
// WebSocket channels up to v5, SPDY tunnelled through WebSocket) and error texts are those of a kubelet, so callers
// cannot tell the difference.
//
// Callers are authenticated and authorized by the local API server exactly as a kubelet does it: client certificate
// signed by the cluster's client CA or a token confirmed by TokenReview, then SubjectAccessReview on a subresource of
// the node. There is no anonymous access and no exempt route. exec, attach, run and port-forward always need the verb
// create, whatever the HTTP method: a WebSocket upgrade is a GET, and reading rights must not run commands.
//
// The provider is another tenant and may be hostile or dead. Until it has accepted a stream it may neither take longer
// than Limits.DialTimeout nor send more than a bounded number of bytes; redirects are refused; its error texts are
// bounded; a stream without data ends after Limits.IdleTimeout; at most Limits.Streams streams run at once, more are
// answered with 429. A log that is not followed is bounded in time and bytes, and by the bytes that the caller asked for.
// When the caller goes away the call at the provider is cancelled, and the reverse.
//
// Where a pod's twin runs is asked from Remote, which the owner of the pods implements. The package keeps no state
// about pods and writes nothing to any cluster. It needs `create` on tokenreviews and subjectaccessreviews, which
// Kubernetes' Node authorizer grants to every node.
package api
