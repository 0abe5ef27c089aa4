// Package offloading tests what becomes of namespaces, pods, volumes, Services and Events that are offloaded, and what who stole an identity
// does not get. Its tests run side by side, each with namespaces of its own: see package world.
package offloading
