// Package virtualnode is the admission of VirtualNodes. Mutation gives them the labels by which they are found and fills in,
// from the VkOptionsTemplate, what they leave open. Validation refuses those that contradict their namespace, change the
// cluster they are for, or take a name that another VirtualNode or a physical Node has.
package virtualnode
