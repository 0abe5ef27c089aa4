// Package ip gives each IP resource an address of this cluster's external range, by which peers reach what it stands for, and makes the Service
// that an IP asks for.
//
// Contract:
//   - An address that was given does not change. Where two IPs have the same one, as after a backup was restored, it is taken away from the
//     younger one, which gets another.
//   - The Service leads to what the IP stands for, by the address that this cluster knows it by: nothing here leads to the one for peers.
//   - The Service and the EndpointSlice have the IP's name and go with it. One of that name that somebody else made is left alone.
package ip
