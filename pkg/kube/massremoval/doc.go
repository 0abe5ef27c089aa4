// Package massremoval holds back the removal of many copies at once whose originals a list did not show.
//
// That an object is not in a list says less than that somebody was seen to delete it: after the restore of an old backup whatever was
// made since is missing, and the copies of it, running pods among them, would go like leftovers. So who is about to remove a copy because
// its original is not there, and did not see it go, asks a Guard.
//
// Contract:
//   - A few always go, and so does a share of all copies of the kind that the administrator sets. What was let go within the last
//     minutes counts with it, because not everything is listed at the same moment.
//   - What is more is held, all of it, and from then on whatever else is missing of that kind and namespace, until an administrator confirms just what
//     is held, or nothing of it is missing any more. What is held is named by a token, so that nothing that came later is confirmed with it.
//   - What other namespaces' users deleted, or what is of another kind, goes nevertheless: nobody keeps a leaked Secret of others at the provider.
//   - A restart goes on holding: what was shown before says that there is something to hold.
package massremoval
