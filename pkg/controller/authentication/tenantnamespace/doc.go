// Package tenantnamespace gives liqo-controller-manager its rights in tenant namespaces, and only there: it has no right to
// Secrets anywhere else. A namespace is a tenant namespace if it carries both the label and the name of one.
package tenantnamespace
