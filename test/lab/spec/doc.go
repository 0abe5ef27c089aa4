// Package spec declares what a lab is: its clusters, their address ranges,
// their nodes and the options of their API servers. It is plain data with
// defaults and validation; package cluster turns it into running processes.
//
// A node is real (kubelet, containerd and pods in a network namespace; needs
// root) or simulated (its kubelet is played by kwok; needs no rights). A lab
// without any real node listens on loopback ports only and needs no root.
//
// The YAML form has the same field names in lower camel case:
//
//	name: demo
//	flat: true
//	clusters:
//	- name: rome
//	  podCIDR: 10.10.0.0/16
//	  serviceCIDR: 10.11.0.0/16
//	  nodes:
//	  - kind: real
//	  - kind: simulated
//	    count: 20
package spec
