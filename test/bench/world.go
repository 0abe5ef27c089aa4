package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/action/peer"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/test/integration/fixture"
)

const (
	peeringTimeout  = 4 * time.Minute
	tenantNamespace = corev1beta1.TenantNamespacePrefix + "milan"
	// mainNode is the virtual node of the peering itself, and the name of its process.
	mainNode = "milan"
)

// bench is the run: the clusters, our processes, and what was found out.
type bench struct {
	env     fixture.Environment
	w       *witness
	options options
	out     io.Writer
	report  Report
	// own are our processes, and the floor's, by name.
	own map[string]*fixture.Process
	// kubelets by virtual node.
	kubelets map[string]*kubelet
	systems  []*system
	// lifted says whether the clusters' own controllers are without limits.
	lifted bool
	// offloaded is how many namespaces are.
	offloaded int
	meter     meter
	// begun and before are when the scenarios began, and the machine's load then.
	begun  time.Time
	before load
}

// system is one way of running pods.
type system struct {
	name, namespace string
	// home is where pods are created, away where they run if that is elsewhere.
	home, away *fixture.Cluster
	// shadows says that there are ShadowPods in between.
	shadows bool
	// node that pods are bound to; empty for those that the namespace's offloading chooses, and for the provider's own.
	node string
}

// Names of the systems.
const (
	vanilla   = "vanilla"
	floorName = "floor"
	liqo      = "liqo"
)

// lifted and capped are the limits of the clusters' own controllers.
var (
	liftedManager   = map[string]string{"kube-api-qps": "1000", "kube-api-burst": "2000", "concurrent-replicaset-syncs": "20", "concurrent-gc-syncs": "20"}
	liftedScheduler = map[string]string{"kube-api-qps": "1000", "kube-api-burst": "2000"}
	// The defaults of Kubernetes.
	cappedManager   = map[string]string{"kube-api-qps": "20", "kube-api-burst": "30", "concurrent-replicaset-syncs": "5", "concurrent-gc-syncs": "20"}
	cappedScheduler = map[string]string{"kube-api-qps": "50", "kube-api-burst": "100"}
)

// build starts the lab and everything of ours.
func (b *bench) build() {
	b.own, b.kubelets = map[string]*fixture.Process{}, map[string]*kubelet{}
	b.w.Logf("Starting two clusters with %d simulated nodes each", b.options.nodes)
	fixture.Must(b.w, "starting the lab", b.env.Open(fixture.Options{Nodes: b.options.nodes, AuditPolicy: auditPolicy, APIServer: auditFlags}))
	for _, c := range b.clusters() {
		// The lab trades durability for speed, a measurement does not.
		fixture.Must(b.w, "restarting etcd", b.env.Lab.RestartWith(b.w.ctx, c.ID+"/etcd", map[string]string{"unsafe-no-fsync": "false"}))
	}
	for _, c := range b.clusters() {
		b.removeProbes(c)
	}
	b.limits(true)
	b.w.Logf("Starting and peering Liqo")
	for _, c := range b.clusters() {
		b.own[c.ID+" liqo-controller-manager"] = b.env.StartManager(b.w, c).Process
	}
	b.peer()
	b.startFloor()
	b.systems = []*system{
		{name: vanilla, home: b.env.Milan, namespace: fixture.Unique(vanilla)},
		{name: floorName, home: b.env.Rome, away: b.env.Milan, namespace: fixture.Unique(floorName), node: "floor"},
		{name: liqo, home: b.env.Rome, away: b.env.Milan, namespace: fixture.Unique(liqo), shadows: true},
	}
	for _, s := range b.systems {
		b.createNamespace(s.home, s.namespace)
		if s.name == floorName {
			b.createNamespace(s.away, s.namespace)
		}
	}
	b.offload(b.systems[2].namespace)
	b.offloaded = 1
	b.settle(20)
}

// removeProbes takes away what the fixture needed to find out that the admission policies are effective.
func (b *bench) removeProbes(c *fixture.Cluster) {
	fixture.Await(b.w, fixture.Patience, "the API server of "+c.ID, func(ctx context.Context) (bool, string) {
		list := &corev1.NamespaceList{}
		if err := c.Client.List(ctx, list, client.HasLabels{corev1beta1.RemoteClusterIDLabel}); err != nil {
			return false, err.Error()
		}
		for i := range list.Items {
			if err := c.Client.Delete(ctx, &list.Items[i]); client.IgnoreNotFound(err) != nil {
				return false, err.Error()
			}
		}
		return len(list.Items) == 0, fmt.Sprintf("%d namespaces are left", len(list.Items))
	})
}

// limits restarts the clusters' own controllers with other limits, and returns when they work.
func (b *bench) limits(lift bool) {
	b.gauge()
	b.lifted = false
	manager, scheduler := cappedManager, cappedScheduler
	if lift {
		manager, scheduler = liftedManager, liftedScheduler
	}
	for _, c := range b.clusters() {
		fixture.Await(b.w, fixture.Patience, "the API server of "+c.ID, func(ctx context.Context) (bool, string) {
			err := c.Client.List(ctx, &corev1.NamespaceList{})
			return err == nil, fmt.Sprint(err)
		})
		fixture.Must(b.w, "restarting a controller manager", b.env.Lab.RestartWith(b.w.ctx, c.ID+"/kube-controller-manager", manager))
		fixture.Must(b.w, "restarting a scheduler", b.env.Lab.RestartWith(b.w.ctx, c.ID+"/kube-scheduler", scheduler))
	}
	for _, c := range b.clusters() {
		namespace := fixture.Unique("warm")
		b.createNamespace(c, namespace)
		s := &system{name: "warm", home: c, namespace: namespace}
		t := b.watchPods(s)
		deployment := b.deployment(s, 1)
		fixture.Must(b.w, "creating a Deployment", c.Client.Create(b.w.ctx, deployment))
		b.await(t, ready, 1, "ready", 2*time.Minute)
		fixture.Must(b.w, "deleting a Deployment", c.Client.Delete(b.w.ctx, deployment, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		b.await(t, gone, 1, "gone", 2*time.Minute)
		t.close()
	}
	b.lifted = lift
}

func (b *bench) createNamespace(c *fixture.Cluster, name string) {
	fixture.Must(b.w, "creating a namespace", c.Client.Create(b.w.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	// Pods are refused until the namespace has its ServiceAccount.
	fixture.Await(b.w, fixture.Patience, "the ServiceAccount of namespace "+name, func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKey{Namespace: name, Name: "default"}, &corev1.ServiceAccount{})
		return err == nil, fmt.Sprint(err)
	})
}

// offload offloads namespaces of rome; all their pods go to milan.
func (b *bench) offload(namespaces ...string) {
	rome, err := target.FromKubeconfig(b.env.Rome.Kubeconfig, "")
	fixture.Must(b.w, "opening the kubeconfig of rome", err)
	_, err = offload.Namespace(b.w.ctx, offload.Options{Cluster: rome, Namespaces: namespaces, Timeout: fixture.Patience,
		Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: offloadingv1beta1.EnforceSameNameMappingStrategyType,
			PodOffloadingStrategy:    offloadingv1beta1.RemotePodOffloadingStrategyType,
		}})
	fixture.Must(b.w, "offloading namespaces", err)
}

// peer peers rome with milan as liqoctl does, with the virtual kubelet as a process.
func (b *bench) peer() {
	consumer, err := target.FromKubeconfig(b.env.Rome.Kubeconfig, "")
	fixture.Must(b.w, "opening the kubeconfig of rome", err)
	provider, err := target.FromKubeconfig(b.env.Milan.Kubeconfig, "")
	fixture.Must(b.w, "opening the kubeconfig of milan", err)
	done := make(chan error, 1)
	go func() {
		_, err := peer.Run(b.w.ctx, peer.Options{Consumer: consumer, Provider: provider, SkipValidation: true, Timeout: peeringTimeout, Resources: resources()})
		done <- err
	}()
	b.startKubelet(mainNode, done)
	fixture.Must(b.w, "peering rome with milan", <-done)
	b.env.Milan.AwaitCounted(b.w, fixture.ProviderNamespace)
}

func resources() corev1.ResourceList {
	return corev1.ResourceList{"cpu": resource.MustParse("1000"), "memory": resource.MustParse("1000Gi"), "pods": resource.MustParse("20000")}
}

// raise has the provider grant rome what all virtual nodes ask for together.
func (b *bench) raise(nodes int) {
	list := &authv1beta1.TenantList{}
	fixture.Must(b.w, "listing Tenants", b.env.Milan.Client.List(b.w.ctx, list))
	for i := range list.Items {
		tenant := &list.Items[i]
		limits := authv1beta1.TenantLimits{Resources: corev1.ResourceList{}, ResourceSlices: ptr.To(int32(nodes + 1))} //nolint:gosec // a number of processes
		for name, quantity := range resources() {
			quantity.Mul(int64(nodes + 1))
			limits.Resources[name] = quantity
		}
		changed := tenant.DeepCopy()
		changed.Spec.Limits = &limits
		fixture.Must(b.w, "raising the limits of a Tenant", b.env.Milan.Client.Patch(b.w.ctx, changed, client.MergeFrom(tenant)))
	}
}

// addNode makes one more virtual node of the same provider.
func (b *bench) addNode(name string) {
	slice := &authv1beta1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: tenantNamespace, Name: name,
			Labels:      map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan", corev1beta1.RemoteClusterIDLabel: "milan"},
			Annotations: map[string]string{authv1beta1.CreateVirtualNodeAnnotation: "true"}},
		Spec: authv1beta1.ResourceSliceSpec{ConsumerClusterID: ptr.To(corev1beta1.ClusterID("rome")), ProviderClusterID: ptr.To(corev1beta1.ClusterID("milan")),
			Resources: resources()},
	}
	fixture.Must(b.w, "creating a ResourceSlice", b.env.Rome.Client.Create(b.w.ctx, slice))
	b.startKubelet(name, nil)
}

// kubelet is a virtual kubelet in the place of its simulated pod.
type kubelet struct {
	node string
	env  map[string]string
	args []string
}

// startKubelet waits for the simulated pod of a VirtualNode and runs the virtual kubelet with that pod's arguments.
func (b *bench) startKubelet(node string, early <-chan error) {
	var pod *corev1.Pod
	fixture.Await(b.w, peeringTimeout, "the simulated pod of virtual kubelet "+node, func(ctx context.Context) (bool, string) {
		select {
		case err := <-early:
			b.w.Fatalf("peering ended before there was a virtual kubelet: %v", err)
		default:
		}
		pods := &corev1.PodList{}
		err := b.env.Rome.Client.List(ctx, pods, client.InNamespace(tenantNamespace), client.MatchingLabels{offloadingv1beta1.VirtualNodeLabel: node})
		if err != nil || len(pods.Items) == 0 {
			return false, fmt.Sprintf("%d pods, error %v", len(pods.Items), err)
		}
		pod = &pods.Items[0]
		return pod.Status.PodIP != "", "pod " + pod.Name + " is " + string(pod.Status.Phase)
	})
	folder := filepath.Join(b.env.Dir, node)
	fixture.Must(b.w, "making a folder", os.MkdirAll(folder, 0o700))
	k := &kubelet{node: node,
		env: map[string]string{"POD_IP": pod.Status.PodIP, "POD_NAME": pod.Name, "POD_NAMESPACE": pod.Namespace},
		args: append(slices.Clone(pod.Spec.Containers[0].Args),
			"--home-kubeconfig="+b.env.AccountKubeconfig(b.w, b.env.Rome, tenantNamespace, pod.Spec.ServiceAccountName),
			fmt.Sprintf("--listen-port=%d", fixture.FreePort(b.w)), "--allow-loopback-provider",
			"--certificate-dir="+filepath.Join(folder, "pki"), "--heartbeat-file="+filepath.Join(folder, "heartbeat"))}
	b.kubelets[node] = k
	b.launch(k)
	fixture.Await(b.w, 2*fixture.Patience, "Node "+node+" to be Ready", func(ctx context.Context) (bool, string) {
		if !b.own[k.process()].Running() {
			b.w.Fatalf("the virtual kubelet ended:\n%s", b.own[k.process()].Tail(30))
		}
		live := &corev1.Node{}
		if err := b.env.Rome.Client.Get(ctx, client.ObjectKey{Name: node}, live); err != nil {
			return false, err.Error()
		}
		return slices.ContainsFunc(live.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		}), fmt.Sprint(live.Status.Conditions)
	})
}

func (k *kubelet) process() string {
	if k.node == mainNode {
		return kubeletName
	}
	return kubeletName + " " + k.node
}

// launch starts the process (again).
func (b *bench) launch(k *kubelet) {
	b.own[k.process()] = b.env.Start(b.w, kubeletName, kubeletName, k.env, k.args...)
}
