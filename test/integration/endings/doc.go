// Package endings ends peerings whose provider does not play its part any more: rome is the consumer, milan the provider, and each world
// is one peering of theirs.
package endings
