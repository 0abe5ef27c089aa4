// Package peering holds the commands that join two clusters and separate them: peer, unpeer, force unpeer, authenticate,
// unauthenticate and revoke; and those by which a provider says what a consumer gets: cordon, uncordon, drain and activate. They are glue
// around pkg/cli/action.
package peering
