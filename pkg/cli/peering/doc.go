// Package peering holds the commands that join two clusters and separate them: peer, unpeer, force unpeer, authenticate,
// unauthenticate and revoke; those by which a provider says what a consumer gets: cordon, uncordon, drain and activate; and those on the single
// shares of a peering and their virtual nodes: create, delete and get. They are glue around pkg/cli/action.
package peering
