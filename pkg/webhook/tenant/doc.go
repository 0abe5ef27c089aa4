// Package tenant admits Tenants: the label that names the consumer is filled in, and a Tenant must stand alone in the tenant
// namespace of its own cluster, under a name that no other Tenant of this cluster has.
package tenant
