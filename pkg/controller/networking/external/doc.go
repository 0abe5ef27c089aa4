// Package external knows who has which address of this cluster's external range: IP resources have theirs from the bottom, nodes and gateways
// from the top.
//
// Contract:
//   - The record is the objects themselves. The Ledger is what one process knows of them: it reads all of them live before it gives the
//     first address, and from then on it is the only one who gives any. So it needs no list for each address that it gives.
//   - A holder that asks again gets the address that it has. An address is free again only when its holder was released.
//   - Of two holders of one address the elder keeps it.
//   - What was given from a range that is configured no more stays.
package external
