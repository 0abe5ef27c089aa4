// Package inputs makes the inputs of package dataplane out of the API's objects.
//
// Contract:
//   - It is pure. What it makes is used by the agents that put it into the kernel, and by the commands that compare and explain.
//   - What cannot be read, and what can be no peer's, is left out and told as a Problem; the rest is carried out. What was not given yet
//     (an IP resource's address, a fabric's MTU, a node's address) is left out silently: it will come.
//   - An error means that something is not known without which nothing can be said of the whole. Then nobody may act: what is in the kernel
//     stays.
package inputs
