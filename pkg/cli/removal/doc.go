// Package removal deletes objects and waits until they are really gone, saying meanwhile what keeps them.
//
// Contract:
//   - Only the very object that was read is deleted: a new one of the same name is left alone, and counts as "gone".
//   - An object that is not there is no error, and nothing is said about it.
//   - What is told while waiting comes from the object itself: its finalizers and its conditions.
package removal
