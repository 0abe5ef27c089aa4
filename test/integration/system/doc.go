// Package system runs our binaries as processes, with exactly the rights that the chart and the controllers give them,
// against two control planes with simulated nodes: rome is the consumer, milan the provider. Deployments of ours are played
// by kwok; the virtual kubelet runs as a process in the place of the simulated pod that its Deployment gets.
package system
