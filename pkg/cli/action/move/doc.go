// Package move moves a volume to another node: from this cluster to a provider, back, or from one provider to another.
//
// The data is copied into a volume of a temporary claim, by a pod at each end and two streams through this program, so that no
// network between the clusters is needed. Both ends are then identified by checksums. Only when these are equal is the claim taken
// away, with both volumes retained. After that nobody can write to the source, and it is identified once more, through a claim of
// the move's own: what was written to it since is not lost.
//
// One write decides which volume counts: the annotation at the copy, when it says that the copy is proved. Before it the claim
// keeps its volume or gets it back, whatever happens, and the copy goes; after it running the same command again ends the move.
// The source is given up last, when the claim has the copy.
//
// Two runs at once do not harm each other's data: who is about to delete the claim has marked it, and deletes only what carries
// its mark still; who undoes something takes the mark off first.
package move
