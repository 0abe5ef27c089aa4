package cluster

import (
	"context"

	"liqo.io/liqo/test/lab/network"
	"liqo.io/liqo/test/lab/spec"
)

// Status is what is to be said about a lab.
type Status struct {
	// Lab is its name.
	Lab string `json:"lab"`
	// Subnet is the range of its machine network; empty in a lab that is simulated only.
	Subnet string `json:"subnet,omitempty"`
	// Clusters are its clusters.
	Clusters []OneStatus `json:"clusters"`
	// Faults are what is wrong with links between clusters.
	Faults []network.Fault `json:"faults,omitempty"`
}

// OneStatus is what is to be said about a cluster.
type OneStatus struct {
	// Name of the cluster and path of its kubeconfig.
	Name       string `json:"name"`
	Kubeconfig string `json:"kubeconfig"`
	// Waiting names the first thing that is not ready; empty when all is.
	Waiting string `json:"waiting,omitempty"`
	// Dead are the components that should run and do not.
	Dead []string `json:"dead,omitempty"`
	// Real and Simulated count the declared nodes.
	Real      int `json:"real"`
	Simulated int `json:"simulated"`
	// MemoryMB is the memory of all its processes and containers without page
	// cache; 0 when the lab has no control groups to measure it with.
	MemoryMB int64 `json:"memoryMB,omitempty"`
}

// Status looks at every cluster of the lab.
func (l *Lab) Status(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, shortCheck)
	defer cancel()
	s := Status{Lab: l.state.Lab.Name, Faults: l.state.Faults}
	if l.state.Plan != nil {
		s.Subnet = l.state.Plan.Subnet.String()
	}
	for _, c := range l.state.Lab.Clusters {
		status := OneStatus{
			Name: c.Name, Kubeconfig: l.Kubeconfig(c.Name),
			Real: len(c.NodesOf(spec.Real)), Simulated: len(c.NodesOf(spec.Simulated)),
		}
		for _, component := range l.components(c) {
			if !l.processes.Alive(component) {
				status.Dead = append(status.Dead, component)
			}
		}
		if client, err := l.client(c.Name); err != nil {
			status.Waiting = err.Error()
		} else {
			status.Waiting = l.notReady(ctx, client, c)
		}
		if l.state.Plan != nil {
			if bytes, ok := l.cgroups.Memory(l.clusterGroup(c.Name)); ok {
				status.MemoryMB = bytes >> 20
			}
		}
		s.Clusters = append(s.Clusters, status)
	}
	return s
}

// Ready says that every cluster is ready and nothing that should run is dead.
func (s Status) Ready() bool {
	for _, c := range s.Clusters {
		if c.Waiting != "" || len(c.Dead) > 0 {
			return false
		}
	}
	return true
}
