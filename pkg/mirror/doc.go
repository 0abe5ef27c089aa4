// Package mirror is the reflection engine: it makes the objects of offloaded namespaces exist in their twins at a provider,
// and keeps them so. It runs any reflection.Kind and knows none.
//
// Contract:
//   - For each mapped namespace and each kind with workers there is one local watch, limited to that namespace. The remote
//     watch, limited to objects that came from here, opens only once something of the kind crosses or was found there. Kinds
//     that may not be read at the provider are compared with the provider's ledger of them instead.
//   - A kind with a parent, such as the EndpointSlices of Services, opens its local watch in a namespace once there is a parent
//     object or something in the twin; once open it stays so. Its objects are looked at again with each change of their parent.
//     While the parent's kind is off nothing of the kind is made, and what is there stays. Where a parent decides about no object
//     and only has to be there, as for Ingresses, neither holds, and while its kind is off the watch is open.
//   - Nothing is written that is already there: a restart with everything in place makes no write.
//   - What cannot be read takes one write as well, labels and annotations that come or go included, and one request to remove: the last
//     answer, or the ledger, told what to test. After a restart the first removal looks first, and so does a change made meanwhile.
//   - Remote objects without our mark are never touched. Deletes carry the UID and version of what was seen, and writes to
//     existing objects test the mark in the same request.
//   - Something is deleted only on positive knowledge: the local watch is in step and a live read says that the object is
//     gone, or the user's policy keeps it at home. Namespaces that leave the mapping, kinds that are turned off, lost peers
//     and caches that are not in step delete nothing.
//   - Many copies whose originals a list did not show, as after the restore of an old backup, are kept until that is confirmed. What a
//     watch was told goes at once.
//   - With several virtual nodes of a provider one engine works for all. For lack of use it removes something only when the use
//     by the pods of all of them is known.
//   - Where the configuration wants it, the status of a remote object that is in step comes back into that of the local one,
//     at most twice a minute, and never over what somebody else at home writes there.
//   - Same name with a new UID is a new object: the old remote one goes first.
//   - What cannot be changed in place is replaced, once a dry run says that the provider takes the new one.
//   - If somebody at the provider keeps undoing what is reflected, no more than two writes a minute are made.
//   - Of a copy that lacks nothing but some fields a dry run tells whether the provider's API server drops them. If so the user is
//     told once, a note on the copy remembers it, and nothing is written for them until the object or the provider's version changes.
//   - While the peer is not connected work is parked without polling, and resumes at once with the connection.
//   - What is refused is tried again with growing pauses: rules change without anybody telling.
//   - What a kind remarks on a parent at home, seen from all of its children, is an Event on the parent, once until it is right again.
//   - Failures are Events on the local object, at most one every five minutes for the same failure, metrics, and Problems.
//   - All settings change at run time. Run returns only when everything it started has ended.
package mirror
