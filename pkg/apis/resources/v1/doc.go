// Package v1 is the API of a resource plugin: a gRPC service of a provider's administrator that decides what each consumer is granted, in
// place of a share of what is free. grants.proto is its contract; the rest is generated from it.
//
// A plugin may also serve grpc.health.v1.Health for the service liqo.resources.v1.Grants: it is not asked while it says that it is not serving.
// How it is configured, and what becomes of answers that are late or wrong, says docs/guide/sharing-resources.md.
package v1
