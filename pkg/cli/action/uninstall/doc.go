// Package uninstall removes Liqo from one cluster.
//
// Contract:
//   - It refuses as long as a peering or an offloaded namespace exists, and names the command that ends each of them: the
//     controllers that would clean up are about to go.
//   - Helm removes the release; the CustomResourceDefinitions stay unless Purge is asked for.
//   - Purge also removes the definitions (their objects first), the tenant namespaces, Liqo's namespace, and whatever the
//     controllers left outside them.
//   - It proves what it did: everything that is left is listed and reported.
//   - Idempotent: what is gone already is no error.
package uninstall
