// Package network connects the networks of two clusters, and takes the connection back.
//
// Contract:
//   - Preconditions first: both clusters answer, are two, have Liqo with its network module, and give the user every right that is needed.
//     Nothing is created before they all hold.
//   - Each side is told the other's ranges (Configuration); one side gets a gateway server, the other one a client that goes to it; each is
//     told the other's public key. All of it stands in the tenant namespaces, with the cluster ID of the peer as label and,
//     where it is new, as name.
//   - Idempotent and resumable: run again it continues, and where everything is in place it writes nothing. How a gateway is exposed, and
//     the endpoint of a tunnel that is up, stay as they are unless options say otherwise. Networks that are connected the other way round
//     stay so.
//   - Each wait tells what the controllers and gateways say. When the time is over, the error says which side waits for what.
//   - Disconnecting removes gateways and keys and keeps ranges, so that a peer that comes back is seen as before; resetting removes both.
//     How the gateway was made stays known with the ranges: the next one in that cluster is made so, unless options say otherwise.
package network
