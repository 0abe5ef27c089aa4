// Package certificate issues client certificates to consumers through the Kubernetes CSR API.
//
//   - A request is checked exactly before an object is made of it, and again as the API server stored it before it is approved:
//     only a CertificateSigningRequest of our own making, unchanged, is ever approved.
//   - Nothing blocks: while the signer works, Issue returns a wait.
//   - What was issued is recorded in a Secret beside the tenant's objects, so that doing it again gives the same certificate;
//     a new one is issued when the request changed, or when two thirds of the certificate's life have passed.
package certificate
