// Package offloaded finds what a cluster has at others: pods, namespaces and volumes. Commands by which that would end say so, and
// ask, before they change anything.
package offloaded
