// Package slicenode makes a VirtualNode of an accepted ResourceSlice that asks for one. What the provider answered is input:
// the node is never larger than what was asked, and carries only labels that no other part of the cluster gives a meaning to
// and that cannot be mistaken for a real node's. VirtualNodes of other names that somebody made of the slice, which controls them, are kept in
// step with it, too. When the slice is deleted, its VirtualNodes go first.
package slicenode
