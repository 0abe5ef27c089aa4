// Package shadowendpointslice keeps, at the provider, one EndpointSlice for every ShadowEndpointSlice, with or without the
// consumer.
//
// Contract:
//   - What the EndpointSlice holds is one pure function (Build) over the ShadowEndpointSlice, the ranges that the consumer
//     announced and the provider accepted, and whether the way to the consumer is known to be down.
//   - An endpoint whose address lies in no accepted range is left out: else a consumer could make Services of the provider
//     point at the provider's own nodes and pods, or at those of other tenants.
//   - The addresses of a consumer with a Configuration are translated by it: what is published is how this cluster reaches them. Nothing of
//     it is ready while no tunnel to the consumer works.
//   - An endpoint that the consumer says to be a pod of another cluster (annotation liqo.io/direct-connections-data) is published by this
//     cluster's own network to that cluster while it works, and only if that cluster's Configuration says that a pod can have the address.
//   - An endpoint that the consumer says to be a pod of this cluster (its node is this cluster) is published only if that is the consumer's own
//     pod of this namespace, which the Service does not select, and as this cluster knows it: its address, and whether it is ready.
//   - The Service that the endpoints belong to by name came from the same consumer: else there are none.
//   - An EndpointSlice of the name that this very ShadowEndpointSlice does not control is left alone.
//   - Of neither anything but metadata, and hashes of the pods' names, is kept in memory: what they hold is the consumer's choice, and read
//     when it is needed.
//   - Nothing is written that is there already, and nothing more than twice a minute because somebody at the provider undoes it.
package shadowendpointslice
