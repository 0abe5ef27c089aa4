// Package api tests what the API servers answer by themselves: the schemas of our kinds, and what a peer may do with the
// rights that a provider gives it. No controller of ours runs.
package api
