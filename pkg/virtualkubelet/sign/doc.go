// Package sign gives the provider signs that this cluster lives, for pods that it is to stop without, and tells when it must have stopped one.
//
// Contract:
//   - A sign is one write of one Lease at the provider, whatever the number of pods; none is made while no pod of the node asks for it.
//   - Signs are given after the node's own Lease was renewed, and only then: when this cluster may replace the node's pods, they have ended.
//   - Nothing follows from silence before the provider took a sign: it may be one that takes none. Who starts anew knows of none.
package sign
