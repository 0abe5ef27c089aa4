// Package slicenode makes a VirtualNode of an accepted ResourceSlice that asks for one. What the provider answered is input:
// the node is never larger than what was asked, and carries only labels that no other part of the cluster gives a meaning to
// and that cannot be mistaken for a real node's. When the slice is deleted, the VirtualNode goes first.
package slicenode
