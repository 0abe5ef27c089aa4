// Package share asks a provider for a share of its resources, makes virtual nodes of shares, shows them, and gives them back.
//
// Contract:
//   - It needs the consumer alone: what a provider answers is read off the ResourceSlice.
//   - What is there is not changed by asking for it again. A ResourceSlice or VirtualNode of the name that is other than wanted is refused.
//   - It ends once the provider granted the ResourceSlice, and pods can be scheduled onto the virtual node, if there is to be one.
//   - Whoever deletes is told which pods leave, and what goes with the last virtual node of a provider, and is asked.
package share
