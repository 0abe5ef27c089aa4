package cluster

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/config"
	"liqo.io/liqo/test/lab/process"
	"liqo.io/liqo/test/lab/spec"
)

const (
	etcdTimeout         = 2 * time.Minute
	controlPlaneTimeout = 3 * time.Minute
	readyTimeout        = 4 * time.Minute
)

// AwaitEtcd returns when etcd of a cluster, which was started just now, is healthy.
func (l *Lab) AwaitEtcd(ctx context.Context, cluster string) error {
	c, err := l.cluster(cluster)
	if err != nil {
		return err
	}
	component, url := cluster+"/"+binary.Etcd, l.placed(config.ControlPlane{Cluster: c}).EtcdURL()+"/health"
	last := ""
	err = wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, etcdTimeout, true, func(ctx context.Context) (bool, error) {
		if !l.processes.Alive(component) {
			return false, l.died(component)
		}
		var healthy bool
		healthy, last = answers(ctx, url)
		return healthy, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("etcd of cluster %s was not healthy within %s: %s; %s", cluster, etcdTimeout, last, l.lastWords(component))
	}
	return err
}

// answers asks a server whether all is well, and returns what it said.
func answers(ctx context.Context, url string) (well bool, said string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, err.Error()
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false, err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	return err == nil && response.StatusCode == http.StatusOK, fmt.Sprint(response.Status, " ", string(body))
}

// lastWords are the ends of the logs of components.
func (l *Lab) lastWords(components ...string) string {
	var all []string
	for _, component := range components {
		log := l.log(component)
		all = append(all, fmt.Sprintf("the end of %s: %s", log, process.Tail(log, 600)))
	}
	return strings.Join(all, "\n")
}

// waitAPIServer waits until the API server of a cluster is ready.
func (b *builder) waitAPIServer(ctx context.Context, cp config.ControlPlane) error {
	client, err := b.client(cp.Cluster.Name)
	if err != nil {
		return err
	}
	last := ""
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, controlPlaneTimeout, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
		defer cancel()
		if _, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx); err != nil {
			last = err.Error()
			for _, name := range []string{binary.Etcd, binary.APIServer} {
				if component := cp.Cluster.Name + "/" + name; !b.processes.Alive(component) {
					return false, b.diedListening(component, cp)
				}
			}
			return false, nil
		}
		return true, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("the API server did not become ready within %s: %s; %s", controlPlaneTimeout, last,
			b.lastWords(cp.Cluster.Name+"/"+binary.APIServer, cp.Cluster.Name+"/"+binary.Etcd))
	}
	return err
}

// died says why a component ended, with the end of its log.
func (l *Lab) died(component string) error {
	return fmt.Errorf("%s ended right after its start; %s", component, l.lastWords(component))
}

// diedListening is died, with a sentence of its own for a port that is taken.
func (l *Lab) diedListening(component string, cp config.ControlPlane) error {
	if strings.Contains(process.Tail(l.log(component), 4000), "address already in use") {
		return portTaken(cp.Cluster.Name, cp.Port)
	}
	return l.died(component)
}

func (l *Lab) client(cluster string) (*kubernetes.Clientset, error) {
	rest, err := l.Config(cluster)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(rest)
	if err != nil {
		return nil, fmt.Errorf("connecting to cluster %s: %w", cluster, err)
	}
	return client, nil
}

// waitReady waits until nodes and add-ons of a cluster are ready.
func (b *builder) waitReady(ctx context.Context, c spec.Cluster) error {
	client, err := b.client(c.Name)
	if err != nil {
		return err
	}
	missing := ""
	err = wait.PollUntilContextTimeout(ctx, 250*time.Millisecond, readyTimeout, true, func(ctx context.Context) (bool, error) {
		current := b.notReady(ctx, client, c)
		if current == "" {
			return true, nil
		}
		if ctx.Err() == nil { // else it only says that the time is over
			missing = current
		}
		for _, component := range b.components(c) {
			if !b.processes.Alive(component) {
				return false, b.died(component)
			}
		}
		return false, nil
	})
	if wait.Interrupted(err) {
		return fmt.Errorf("not ready after %s: %s\n%s", readyTimeout, missing, b.lastWords(b.components(c)...))
	}
	return err
}

// notReady names the first thing of a cluster that is not ready; "" when all is.
func (l *Lab) notReady(ctx context.Context, client kubernetes.Interface, c spec.Cluster) string {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "its API server: " + err.Error()
	}
	ready := map[string]bool{}
	for _, n := range nodes.Items {
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
				ready[n.Name] = true
			}
		}
	}
	for _, n := range c.Nodes {
		if !ready[n.Name] && !l.nodeDown(c.Name, n.Name) {
			return "node " + n.Name
		}
	}
	if c.WithoutControllerManager || c.WithoutScheduler || l.runningNodes(c) == 0 {
		return ""
	}
	addons := map[string]string{"coredns": "kube-dns"} // deployment → app
	if c.IngressClass != "" {
		addons["ingress"] = "ingress"
	}
	for name, app := range addons {
		deployment, err := client.AppsV1().Deployments("kube-system").Get(ctx, name, metav1.GetOptions{})
		if err != nil || deployment.Status.AvailableReplicas == 0 {
			return "deployment kube-system/" + name + whyWaiting(ctx, client, app)
		}
	}
	return ""
}

// whyWaiting says what the pods of an add-on wait for, as far as they tell.
func whyWaiting(ctx context.Context, client kubernetes.Interface, app string) string {
	pods, err := client.CoreV1().Pods("kube-system").List(ctx, metav1.ListOptions{LabelSelector: "k8s-app=" + app})
	if err != nil {
		return ""
	}
	for _, p := range pods.Items {
		for _, s := range p.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil {
				return fmt.Sprintf(" (pod %s: %s %s)", p.Name, w.Reason, w.Message)
			}
		}
		for _, condition := range p.Status.Conditions {
			if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
				return fmt.Sprintf(" (pod %s: %s)", p.Name, condition.Message)
			}
		}
	}
	return ""
}

// runningNodes counts the real nodes that were not killed on purpose.
func (l *Lab) runningNodes(c spec.Cluster) int {
	count := 0
	for _, n := range c.NodesOf(spec.Real) {
		if !l.nodeDown(c.Name, n.Name) {
			count++
		}
	}
	return count
}

// components lists the programs of a cluster that should run.
func (l *Lab) components(c spec.Cluster) []string {
	list := []string{c.Name + "/" + binary.Etcd, c.Name + "/" + binary.APIServer}
	for _, name := range optional(c) {
		list = append(list, c.Name+"/"+name)
	}
	for _, n := range c.NodesOf(spec.Real) {
		if l.nodeDown(c.Name, n.Name) {
			continue
		}
		for _, name := range append([]string{programContainerd}, agents(c.CNI)...) {
			list = append(list, c.Name+"/"+n.Name+"/"+name)
		}
	}
	return list
}

// healthy says whether everything declared runs and is ready.
func (l *Lab) healthy(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, shortCheck)
	defer cancel()
	if l.state.Plan != nil && (len(l.state.Faults)+len(l.state.Down) > 0 || !l.state.Plan.Intact(ctx)) {
		return false
	}
	for _, c := range l.state.Lab.Clusters {
		for _, component := range l.components(c) {
			if !l.processes.Alive(component) {
				return false
			}
		}
		client, err := l.client(c.Name)
		if err != nil || l.notReady(ctx, client, c) != "" {
			return false
		}
	}
	return true
}
