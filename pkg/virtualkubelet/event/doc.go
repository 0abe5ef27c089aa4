// Package event brings Events of the provider's twin namespaces back to the local objects that they are about.
//
// Contract:
//   - What comes back, and in which form, is decided by package reflection. This package watches, holds back, limits, writes.
//   - One watch per twin namespace, opened once something of the namespace crossed. It starts where the twin is at that
//     moment: no Event of the past comes back, so a restart writes nothing. Where it broke off it goes on, unless the
//     provider has forgotten.
//   - An Event is written only about a local object that is known to stand behind the remote one. Until that is known it
//     waits for a few seconds, then it is dropped.
//   - Warnings are written as they come. Of the Normal Events of an object only the last one in ten seconds is, and repeats
//     are collected for as long.
//   - Per object client-go's correlator limits as it does in a kubelet: repeats raise a count, similar Events become one, 25
//     writes at once and one every five minutes of each type. Per provider two token buckets, one for each type, bound all
//     writes; what waits for a token is bounded in number and size.
//   - A provider that sends faster than anybody could read is not listened to for a while.
//   - The name of a local Event follows from the remote one's UID, so a repeat after a restart changes the Event. What is
//     changed is tested, in the same request, to be about the same object and to come from the same provider.
package event
