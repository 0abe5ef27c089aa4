// Package podaddress knows which addresses the pods of this cluster have. The manager's own cache holds other pods: this one holds all, and of
// each only where it runs and under which addresses.
package podaddress
