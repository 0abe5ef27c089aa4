// Package peer lets a consumer cluster use resources of a provider.
//
// Contract:
//   - Preconditions first: both clusters answer, are two, have Liqo in fitting versions, and give the user every right that is
//     needed. Nothing is created before they all hold.
//   - Idempotent and resumable: run again after an interruption or a timeout it continues, and where everything is in place it
//     writes nothing.
//   - Steps: the networks (see package network) where both clusters have the module, authentication (see package authenticate),
//     a ResourceSlice named after the provider, its VirtualNode, its Node. Each wait tells what the controllers say, and ends
//     early when the provider refuses.
//   - The report says what is in place, also when an error ended the run.
package peer
