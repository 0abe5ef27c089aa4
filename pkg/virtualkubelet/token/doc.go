// Package token gives offloaded pods the tokens of their ServiceAccounts, so that they can talk to their own cluster's API
// server from the provider.
//
// Contract:
//   - Tokens come from TokenRequest, with the node's own identity: the Node authorizer and NodeRestriction refuse a token for
//     any pod that is not bound to the node. They are bound to the pod and live as long as the pod asked, at most as long as
//     Options.MaxLifetime. One that the API server makes longer-lived is not passed on.
//   - All tokens of a pod stand in one Secret of the twin namespace, which the ShadowPod owns: it goes with it. It is written
//     once when the ShadowPod is there, and again when four fifths of the tokens' life are over.
//   - The Secret cannot be read back. What became of it is told by the provider's ledger; what was written is remembered. A
//     restart with everything in place asks for no token and writes nothing. What the ledger says decides about writes of
//     this package only: it is the provider's word.
//   - While the provider does not answer, pods keep what they have. An Event tells before it ends.
//   - Creation of pods does not wait for tokens, nor the other way round: they have a queue of their own.
package token
