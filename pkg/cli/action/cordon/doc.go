// Package cordon says what a provider gives a consumer: nothing new (cordon), nothing at all (drain), or what was granted again.
//
// Contract:
//   - It needs the provider alone. Tenants and ResourceSlices are found by name in all tenant namespaces; a name that several have is refused
//     until the consumer is named.
//   - A tenant that is drained is neither cordoned nor uncordoned: only activating it gives it rights again.
//   - It ends once the Tenant and the Quotas say what was asked for, of a drained tenant once its pods have ended. What is so already is
//     written no more, and waited for.
//   - Whoever drains a tenant is told what stops and what stays, and asked.
package cordon
