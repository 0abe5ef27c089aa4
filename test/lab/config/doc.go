// Package config renders what the programs of a lab are started with: the
// arguments of the control plane and the files of a node. It is pure: golden
// files show all of it.
package config
