// Package renewgrant answers, at the provider, the Renews by which consumers ask for fresh certificates for new keys. Who asks
// is derived from the tenant namespace; the request must be exactly the one that fits the tenant or its slice.
package renewgrant
