// Package renewal replaces, at the consumer, certificates and keys of Identities before they expire.
//
// When two thirds of a certificate's life have passed, a new key is stored beside the present one, and a Renew with a request
// for it is sent to the provider. Once the answer fits the new key, the keys are swapped in one write and the Identity follows;
// the old kubeconfig stays in use until then, and both certificates are valid meanwhile. Every step can be repeated after a
// crash. The Renew stays until the next renewal.
package renewal
