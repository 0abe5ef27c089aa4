// Package mirroring runs the engine of pkg/mirror to a provider: a Reflection sees to it that of several virtual nodes of one provider only one
// reflects at a time, the holder of the provider's Lease. A virtual node that is its provider's only one takes none. It tells the engine, too,
// what the pods on all of them use.
package mirroring
