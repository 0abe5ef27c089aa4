package cluster

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"liqo.io/liqo/test/lab/cgroup"
	"liqo.io/liqo/test/lab/image"
	"liqo.io/liqo/test/lab/network"
	"liqo.io/liqo/test/lab/process"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/state"
)

// ErrUnknown is returned when a lab, cluster or node does not exist.
var ErrUnknown = errors.New("unknown")

// Lab is a lab that exists on this machine.
type Lab struct {
	dir       string
	state     state.State
	processes *process.Table
	cgroups   cgroup.Hierarchies // empty in a lab that is simulated only
}

// Open returns a lab that was started before, running or not.
func Open(name string) (*Lab, error) {
	dir, err := state.Dir(name)
	if err != nil {
		return nil, err
	}
	s, found, err := state.Load(dir)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, fmt.Errorf("%w lab %q: start it with up, or see the existing ones with status", ErrUnknown, name)
	}
	return newLab(dir, s)
}

func newLab(dir string, s state.State) (*Lab, error) {
	l := &Lab{dir: dir, state: s, processes: process.NewTable(filepath.Join(dir, "processes"))}
	if s.Lab.Simulated() {
		return l, nil
	}
	var err error
	l.cgroups, err = cgroup.Detect()
	return l, err
}

// Spec returns the lab's declaration with every node listed.
func (l *Lab) Spec() spec.Lab { return l.state.Lab }

// Dir returns the folder with the lab's data, logs and kubeconfigs.
func (l *Lab) Dir() string { return l.dir }

// Plan returns the lab's network; nil in a lab that is simulated only.
func (l *Lab) Plan() *network.Plan { return l.state.Plan }

// Kubeconfig returns the path of the administrator's kubeconfig of a cluster. Its
// address is reachable from the host and from nodes and pods of every cluster
// of the lab (in a lab that is simulated only: from the host).
func (l *Lab) Kubeconfig(cluster string) string {
	return filepath.Join(l.clusterDir(cluster), "kubeconfig")
}

// Config returns the administrator's client configuration of a cluster, without client-side rate limits.
func (l *Lab) Config(cluster string) (*rest.Config, error) {
	if _, err := l.cluster(cluster); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig(cluster))
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of cluster %s: %w", cluster, err)
	}
	config.QPS = -1
	return config, nil
}

// Load brings docker-archive or OCI image files into every running real node of
// the clusters, all clusters when none is named. The nodes load side by side.
func (l *Lab) Load(ctx context.Context, archives []string, clusters ...string) error {
	if len(clusters) == 0 {
		for _, c := range l.state.Lab.Clusters {
			clusters = append(clusters, c.Name)
		}
	}
	var loads []func() error
	for _, name := range clusters {
		c, err := l.cluster(name)
		if err != nil {
			return err
		}
		for _, n := range c.NodesOf(spec.Real) {
			if l.nodeDown(name, n.Name) {
				continue
			}
			loads = append(loads, func() error {
				if err := image.Load(ctx, filepath.Join(l.nodeDir(name, n.Name), "containerd.sock"), archives...); err != nil {
					return fmt.Errorf("node %s of cluster %s: %w", n.Name, name, err)
				}
				return nil
			})
		}
	}
	errs := make([]error, len(loads))
	var group sync.WaitGroup
	for i, load := range loads {
		group.Go(func() { errs[i] = load() })
	}
	group.Wait()
	return errors.Join(errs...)
}

func (l *Lab) cluster(name string) (spec.Cluster, error) {
	c, ok := l.state.Lab.Cluster(name)
	if !ok {
		var names []string
		for _, c := range l.state.Lab.Clusters {
			names = append(names, c.Name)
		}
		return c, fmt.Errorf("%w cluster %q: lab %s has %v", ErrUnknown, name, l.state.Lab.Name, names)
	}
	return c, nil
}

func (l *Lab) clusterDir(cluster string) string { return filepath.Join(l.dir, cluster) }

func (l *Lab) nodeDir(cluster, node string) string {
	return filepath.Join(l.clusterDir(cluster), "nodes", node)
}

func (l *Lab) log(component string) string {
	return filepath.Join(l.dir, "logs", component+".log")
}

// Groups of control groups: one for the lab, one per cluster, below it the
// control plane's and the nodes', whose daemons and pods are apart.

func (l *Lab) labGroup() string { return filepath.Join(cgroup.Root, l.state.Lab.Name) }

func (l *Lab) clusterGroup(cluster string) string { return filepath.Join(l.labGroup(), cluster) }

func (l *Lab) controlGroup(cluster string) string {
	return filepath.Join(l.clusterGroup(cluster), "control")
}

func (l *Lab) nodeGroup(cluster, node string) string {
	return filepath.Join(l.clusterGroup(cluster), "nodes", node)
}

// Within returns the command that runs argv in the network namespace of a real
// node, or of the control plane when node is empty.
func (l *Lab) Within(cluster, node string, argv []string) ([]string, error) {
	if l.state.Plan == nil {
		return nil, errSimulated
	}
	endpoint := l.state.Plan.Node(cluster, node)
	if endpoint.Namespace == "" {
		return nil, fmt.Errorf("%w real node %q in cluster %s", ErrUnknown, node, cluster)
	}
	return append([]string{"nsenter", "--net=/run/netns/" + endpoint.Namespace, "--"}, argv...), nil
}
