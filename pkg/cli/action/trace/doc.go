// Package trace answers which way a packet takes from a pod or node of one cluster to an address that it knows, by what the clusters' objects
// say. Nothing is sent and nothing is changed.
package trace
