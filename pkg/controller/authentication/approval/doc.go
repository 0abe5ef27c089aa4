// Package approval approves the certificate requests of virtual kubelets, and no others: the client certificate with which one
// becomes the node of its VirtualNode, and the serving certificate of its endpoint. Signer, requester, subject, addresses,
// extensions and usages must be exactly the expected ones. A request that is not is left alone, never denied: it may be
// somebody else's to decide; an Event says what was wrong if it claimed to be from one of our virtual kubelets.
package approval
