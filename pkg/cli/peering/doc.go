// Package peering holds the commands that join two clusters and separate them: peer, unpeer, force unpeer, authenticate,
// unauthenticate and revoke. They are glue around pkg/cli/action.
package peering
