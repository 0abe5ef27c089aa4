// Package translation says how this cluster sees a peer's addresses: by the Configuration of the peer in its tenant namespace. It also says
// which addresses peers are told of what is no pod.
//
// Contract:
//   - What crosses a peering are the sender's own addresses; who receives them translates, by its own Configuration of the sender.
//   - What is no pod has one of the external range for that, by an IP resource. Where there is none, what crosses is what there is.
//   - Without a Configuration the clusters see each other's addresses as they are.
//   - A Configuration that does not say yet how the peer is seen is an error, not the identity: its addresses mean nothing here until then.
package translation
