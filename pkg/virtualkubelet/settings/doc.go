// Package settings is what a virtual kubelet is told by its own cluster, and by its flags.
//
// Settings are one value: the VirtualNode, the keys that stay at home, and the configuration of each kind, which each flag that is given
// decides, else the VkOptionsTemplate that the VirtualNode names, else a default. A Source reads them, and the NamespaceMap, into
// one View, which is another one whenever one of these changes: nothing of it needs a restart. Before VirtualNode and template were both read no
// namespace is mapped, and nothing may cross: they say what has to stay at home.
package settings
