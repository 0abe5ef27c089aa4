// Package authentication wires the controllers of its sub-packages: who a peer is, what it asks for, and how its certificates
// are issued and renewed. Both sides of a peering run in every cluster; which one acts is decided per object.
package authentication
