// Package apiserver gives this cluster's API server an address that peers reach: an IP resource for the ClusterIP of Service
// default/kubernetes, or one for each endpoint of it. Pods at providers are told that address.
//
// Contract:
//   - What is wanted is one pure function (Wanted) over what the cluster says of its API server.
//   - Objects are known by a label. One of the name that somebody else made is left alone.
//   - Nothing is removed before what takes its place is known.
package apiserver
