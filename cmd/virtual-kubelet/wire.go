package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/record"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // offers --logging-format=json
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/version"
	"liqo.io/liqo/pkg/virtualkubelet/credential"
	"liqo.io/liqo/pkg/virtualkubelet/event"
	"liqo.io/liqo/pkg/virtualkubelet/flags"
	"liqo.io/liqo/pkg/virtualkubelet/heartbeat"
	"liqo.io/liqo/pkg/virtualkubelet/kubelet"
	"liqo.io/liqo/pkg/virtualkubelet/leader"
	"liqo.io/liqo/pkg/virtualkubelet/mirroring"
	"liqo.io/liqo/pkg/virtualkubelet/network"
	"liqo.io/liqo/pkg/virtualkubelet/removal"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
	"liqo.io/liqo/pkg/virtualkubelet/sibling"
	"liqo.io/liqo/pkg/virtualkubelet/storage"
)

const component = "liqo-virtual-kubelet"

func newCommand() *cobra.Command {
	f := &flags.Flags{}
	logging := logsapi.NewLoggingConfiguration()
	command := &cobra.Command{
		Use:           "virtual-kubelet",
		Short:         "Run one virtual node: a share of another cluster's resources as a Node of this one",
		Version:       version.Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := logsapi.ValidateAndApply(logging, nil); err != nil {
				return fmt.Errorf("applying the logging flags: %w", err)
			}
			log.SetLogger(klog.Background())
			if err := f.Complete(klog.Background(), cmd.Flags()); err != nil {
				return err
			}
			around, err := flags.Environment()
			if err != nil {
				return err
			}
			return run(cmd.Context(), f, around)
		},
	}
	logsapi.AddFlags(logging, command.Flags())
	f.Register(command.Flags())
	command.AddCommand(newCheckCommand())
	return command
}

// newCheckCommand tells the pod's probes whether the process works.
func newCheckCommand() *cobra.Command {
	var file string
	var ready bool
	command := &cobra.Command{
		Use:           "check",
		Short:         "Tell whether the virtual kubelet in this pod works",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(*cobra.Command, []string) error { return heartbeat.Check(file, time.Now(), ready) },
	}
	command.Flags().StringVar(&file, "file", heartbeat.DefaultFile, "the heartbeat file")
	command.Flags().BoolVar(&ready, "ready", false, "ask also whether it has all that it needs to take over the node")
	return command
}

// wiring is everything that runs, put together.
type wiring struct {
	flags  *flags.Flags
	around flags.Surroundings
	home   *rest.Config
	// leases writes who is the active replica, whatever the fence says.
	leases   kubernetes.Interface
	account  kubernetes.Interface
	watching client.WithWatch
	peer     *peer.Peer
	settings *settings.Source
	mirror   *mirroring.Reflection
	events   *event.Carrier
	node     *kubelet.Kubelet
	network  *network.Network
	storage  *storage.Reconciler
	metrics  ctrlmetrics.RegistererGatherer
	fence    leader.Fence
	// budget bounds what is held of the provider, whichever part holds it.
	budget *replica.Budget
	// removals holds back the removal of many copies at once, whichever part is about to make it.
	removals *removal.Held
}

// run puts the virtual kubelet together and runs it until the context ends or a part fails.
func run(ctx context.Context, f *flags.Flags, around flags.Surroundings) error {
	k := &wiring{flags: f, around: around, metrics: ctrlmetrics.Registry, budget: replica.NewBudget(int64(f.RemoteMemory) << 20)}
	logger := klog.FromContext(ctx).WithValues("node", f.Node)
	ctx = klog.NewContext(ctx, logger)
	logger.Info("Starting the virtual kubelet", "version", version.Version, "provider", f.Provider.ID)
	if err := k.connect(ctx); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	ready := make(chan struct{})
	group.Go(func() error { return heartbeat.Beat(ctx, f.Heartbeat, k.node.Alive, ready) })
	// Whoever stands by has its certificates already.
	group.Go(func() error { return k.node.Prepare(ctx, ready) })
	group.Go(func() error {
		if f.Replicas.Enabled {
			return leader.Candidate{
				Client: k.leases, Node: f.Node, Namespace: f.TenantNamespace, Terms: f.Replicas, Replica: around.Pod,
				Owner: k.ownerOfLease, Fence: &k.fence,
			}.Lead(ctx, k.work)
		}
		return k.work(ctx)
	})
	return group.Wait()
}

// connect makes the clients of this cluster with the reflection account.
func (k *wiring) connect(ctx context.Context) error {
	var err error
	if k.home, err = homeConfig(k.flags.HomeKubeconfig); err != nil {
		return err
	}
	k.home.QPS, k.home.UserAgent = -1, component+"/"+version.Version
	if k.leases, err = kubernetes.NewForConfig(peer.Compact(k.home)); err != nil {
		return fmt.Errorf("making the client of this cluster: %w", err)
	}
	k.home.Wrap(k.fence.Wrap)
	if k.account, err = kubernetes.NewForConfig(peer.Compact(k.home)); err != nil {
		return fmt.Errorf("making the client of this cluster: %w", err)
	}
	scheme := newScheme()
	if k.watching, err = client.NewWithWatch(k.home, client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making the client of this cluster: %w", err)
	}
	return k.assemble(ctx, scheme)
}

// assemble makes what is there before it is this replica's turn.
func (k *wiring) assemble(ctx context.Context, scheme *runtime.Scheme) error {
	k.settings = settings.New(settings.Options{
		Client: k.watching, TenantNamespace: k.flags.TenantNamespace, Home: placement.HomeNamespaces{Liqo: k.flags.LiqoNamespace},
		Node: k.flags.Node, Provider: k.flags.Provider.ID, Reflectors: &k.flags.Reflectors,
	})
	k.network = network.New(network.Options{
		Enabled: k.flags.Networking, Client: k.watching, Own: k.flags.PodRanges,
		Provider: k.flags.Provider.ID, TenantNamespace: k.flags.TenantNamespace, LiqoNamespace: k.flags.LiqoNamespace,
	})
	meter, err := kubelet.NewMeter(k.metrics, k.flags.Node)
	if err != nil {
		return err
	}
	k.peer, err = peer.New(peer.Options{
		ClusterID:     k.flags.Provider.ID,
		Kubeconfig:    peer.SecretSource{Client: k.account, Namespace: k.flags.TenantNamespace, Name: k.flags.Provider.KubeconfigSecret},
		Scheme:        scheme,
		Rights:        k.settings.Rights,
		Wrap:          k.fence.Wrap,
		Endpoints:     identity.EndpointPolicy{Deny: k.flags.PodRanges, AllowLoopback: k.flags.Provider.AllowLoopback},
		ProbeInterval: k.flags.Provider.PingInterval, ProbeTimeout: k.flags.Provider.PingTimeout,
		UserAgent: component + "/" + version.Version, Log: klog.FromContext(ctx), Meter: meter,
	})
	if err != nil {
		return err
	}
	k.removals = removal.New(removal.Options{
		Share: k.flags.MaxRemovals, Namespace: k.flags.TenantNamespace, Node: k.flags.Node, Peer: k.peer,
	})
	k.settings.View.Follow(k.follow)
	if !k.flags.CreateNode {
		return nil
	}
	who, err := credential.NewIdentity(ctx, k.flags.Identity.Kind, credential.Options{
		Node: k.flags.Node, Directory: k.flags.Identity.Directory, Address: k.around.Address, Bootstrap: k.home, Wrap: k.fence.Wrap,
	})
	if err != nil {
		return err
	}
	k.node = kubelet.New(kubelet.Options{
		Flags: k.flags, Address: k.around.Address, Identity: who, Account: k.account, CAFile: k.home.CAFile, Peer: k.peer, Network: k.network.View,
		Settings: k.settings.View, Offloaded: k.settings.Offloaded, Budget: k.budget, Removals: k.removals, Recorder: recorder, Metrics: k.metrics,
	})
	return nil
}

func homeConfig(kubeconfig string) (config *rest.Config, err error) {
	if kubeconfig == "" {
		if config, err = rest.InClusterConfig(); err != nil {
			return nil, fmt.Errorf("connecting to this cluster with the pod's ServiceAccount: %w", err)
		}
		return config, nil
	}
	if config, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		return nil, fmt.Errorf("reading the kubeconfig of this cluster: %w", err)
	}
	return config, nil
}

// newScheme knows the groups of the kinds that are reflected, and our own: others only take memory.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	builder := runtime.NewSchemeBuilder(corev1.AddToScheme, discoveryv1.AddToScheme, networkingv1.AddToScheme,
		offloadingv1beta1.AddToScheme, networkingv1beta1.AddToScheme, ipamv1alpha1.AddToScheme)
	// Registering compiled-in types cannot fail at run time.
	utilruntime.Must(builder.AddToScheme(scheme))
	return scheme
}

// work is what only the active replica does.
func (k *wiring) work(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	others, err := sibling.New(sibling.Options{Local: k.account, Changed: func(namespace, kind, name string) { k.mirror.UsesChanged(namespace, kind, name) }})
	if err != nil {
		return err
	}
	held := recorder(ctx, k.account)
	group.Go(func() error { k.removals.Run(ctx, held); return nil })
	k.reflect(ctx, others)
	// Turned off, what was provided before stays as it is.
	if k.flags.Reflectors.Settings(nil, nil).Workers(settings.Claims) > 0 {
		k.storage, err = storage.New(storage.Options{
			Home: k.flags.Home, Remote: k.flags.Provider.ID, Node: k.flags.Node,
			Local: k.account, Peer: k.peer, Recorder: recorder(ctx, k.account), Budget: k.budget, Removals: k.removals.Guard,
			Wanted: latest.Of(k.settings.View, settings.View.OfClaims), Leads: &k.mirror.Leads,
		})
		if err != nil {
			return err
		}
	}
	k.events, err = event.New(event.Options{
		Home: k.flags.Home, Remote: k.flags.Provider.ID, NodeName: k.flags.Node,
		Events: k.account.CoreV1(), Peer: k.peer, Locals: locals{k}, Registerer: k.metrics,
		Wanted: latest.Of(k.settings.View, func(s settings.View) event.Wanted {
			return event.Wanted{Config: s.Kinds[settings.Events], Mapping: s.Mapping.Effective}
		}),
	})
	if err != nil {
		return err
	}
	group.Go(func() error { return k.peer.Run(ctx) })
	group.Go(func() error { return k.mirror.Run(ctx) })
	group.Go(func() error { return others.Run(ctx) })
	group.Go(func() error { return k.events.Run(ctx) })
	beside := kubelet.Beside{UsesChanged: k.mirror.UsesChanged, Crossed: k.events.Crossed}
	if k.storage != nil {
		beside.Claims = k.storage.Resolve
		group.Go(func() error { return k.storage.Run(ctx) })
	}
	if k.node != nil {
		group.Go(func() error { return k.node.Run(ctx, beside) })
	}
	group.Go(func() error { k.network.Run(ctx); return nil })
	group.Go(func() error { k.settings.Run(ctx); return nil })
	return group.Wait()
}

// reflect prepares the reflection of what pods on this node use, and those on other virtual nodes of the provider.
func (k *wiring) reflect(ctx context.Context, others *sibling.Pods) {
	wanted := latest.Join(k.settings.View, k.network.View, func(s settings.View, n network.View) mirror.Wanted {
		return mirroring.Wanted(k.flags.Node, k.flags.Provider.ID, s, n)
	})
	options := mirror.Options{
		Home: k.flags.Home, Remote: k.flags.Provider.ID, NodeName: k.flags.Node,
		Wanted: wanted, Local: k.watching, Peer: mirroring.Peer{Peer: k.peer},
		Recorder: recorder(ctx, k.account), Registerer: k.metrics, Budget: k.budget, Removals: k.removals.Guard,
	}
	k.mirror = mirroring.New(mirroring.Options{
		Build: func() (mirroring.Engine, error) {
			options.References = k.mirror
			return mirror.New(options)
		},
		Wanted: wanted, Pods: k.uses, Siblings: others, Nodeless: k.node == nil, Client: k.account,
		Namespace: k.flags.TenantNamespace, Node: k.flags.Node, Provider: k.flags.Provider.ID, Network: k.network.View,
	})
}

// uses knows what the pods of the own Node use, once there is who runs them.
func (k *wiring) uses() mirroring.Uses {
	if pods := k.node.Pods(); pods != nil {
		return pods
	}
	return nil
}

// locals knows what is at the provider: the node side its pods, the storage fabric its claims, the reflection engine all else.
type locals struct{ k *wiring }

func (l locals) Find(remoteKind string, target corev1.ObjectReference) (reflection.Object, bool) {
	switch target.Kind {
	case "Pod":
	case "PersistentVolumeClaim":
		if l.k.storage == nil {
			return nil, false
		}
		return l.k.storage.Reflected(target.Namespace, target.Name)
	default:
		return l.k.mirror.Reflected(target.Kind, target.Namespace, target.Name)
	}
	pods := l.k.node.Pods()
	if pods == nil {
		return nil, false
	}
	return pods.Reflected(target.Namespace, target.Name, remoteKind == "ShadowPod")
}

func (l locals) Crossed(namespace string) bool {
	pods := l.k.node.Pods()
	return pods != nil && pods.Occupied(namespace) || l.k.mirror.Crossed(namespace) || l.k.storage != nil && l.k.storage.Crossed(namespace)
}

// follow tells who looks after the connection and after removals what this cluster says, before anybody else hears of it: a restart is no news.
func (k *wiring) follow(_, now settings.View) {
	if now.Node != nil {
		k.peer.Tell(now.Revoked())
		k.removals.Hear(now.Node)
	}
	if now.Mapping.Known {
		k.removals.Guard.Follow(now.Mapping.Desired)
	}
}

// ownerOfLease is the VirtualNode.
func (k *wiring) ownerOfLease(ctx context.Context) (metav1.OwnerReference, error) {
	vn := &offloadingv1beta1.VirtualNode{}
	if err := k.watching.Get(ctx, client.ObjectKey{Namespace: k.flags.TenantNamespace, Name: k.flags.Node}, vn); err != nil {
		return metav1.OwnerReference{}, fmt.Errorf("reading VirtualNode %s/%s: %w", k.flags.TenantNamespace, k.flags.Node, err)
	}
	return metav1.OwnerReference{APIVersion: offloadingv1beta1.GroupVersion.String(), Kind: "VirtualNode", Name: vn.Name, UID: vn.UID}, nil
}

// recorder writes Events with the given client until the context ends.
func recorder(ctx context.Context, c kubernetes.Interface) record.EventRecorder {
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.CoreV1().Events(corev1.NamespaceAll)})
	return broadcaster.NewRecorder(clientgoscheme.Scheme, corev1.EventSource{Component: component})
}
