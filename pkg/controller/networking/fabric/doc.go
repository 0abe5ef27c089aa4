// Package fabric tells nodes and gateways of this cluster how they reach each other: an InternalNode for each physical node, an InternalFabric
// for each gateway, both with an address towards peers.
//
// Contract:
//   - An InternalNode goes when its Node is gone, which is asked live; an InternalFabric goes with its gateway.
//   - What is not known any more, as the address of a gateway whose pod is being replaced, stays as it was.
//   - Condition Ready of an InternalNode and its addresses are the node agent's.
package fabric
