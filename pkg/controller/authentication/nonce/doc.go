// Package nonce plays both sides of the handshake's first half. At the provider it fills the nonce Secret of a tenant
// namespace; at the consumer it signs the provider's nonce with a key of its own for that provider, and puts the signature,
// the public key and the certificate signing request beside it, so that whoever builds the Tenant needs no private key.
package nonce
