// Package move moves a volume to another node: from this cluster to a provider, back, or from one provider to another.
//
// The data is copied into a volume of a temporary claim, by a pod at each end and two streams through this program, so that no
// network between the clusters is needed. Both ends are then identified by checksums. Only when these are equal does the claim
// change its volume, and only after that is the old volume given up. Up to that moment an interruption leaves the claim as it
// was; after it, running the same command again ends the move.
package move
