package api

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/controller/networking"
	"liqo.io/liqo/test/integration/fixture"
)

// runNetwork runs all controllers of the network module in rome, isolated.
func runNetwork(t *testing.T) {
	t.Helper()
	c := env.Rome
	mgr, err := ctrl.NewManager(c.Config, ctrl.Options{Scheme: target.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
		Client:     client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ServiceAccount{}}}}})
	fixture.Must(t, "preparing the manager", err)
	fixture.Must(t, "registering", networking.Register(t.Context(), mgr, networking.Options{
		ClusterID: fixture.Unique("home"), Namespace: fixture.Namespace, Pods: []netip.Prefix{netip.MustParsePrefix(c.PodCIDR)},
		Services: []netip.Prefix{netip.MustParsePrefix(c.ServiceCIDR)}, Pools: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Isolation: v1alpha1.IsolationOffloaded,
	}))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the manager ended: %v", err)
		}
	})
}

// peerOf makes the tenant namespace of a peer in rome, and its Configuration.
func peerOf(t *testing.T, name string, ranges ...networkingv1beta1.CIDR) *networkingv1beta1.Configuration {
	t.Helper()
	id := fixture.Unique(name)
	for _, o := range fixture.TenantNamespace(id) {
		fixture.Must(t, "creating "+o.GetName(), env.Rome.Client.Create(t.Context(), o))
	}
	configuration := &networkingv1beta1.Configuration{ObjectMeta: ofPeer(id), Spec: networkingv1beta1.ConfigurationSpec{
		Remote: networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: ranges}}}}
	fixture.Must(t, "creating a Configuration", env.Rome.Client.Create(t.Context(), configuration))
	t.Cleanup(func() {
		_ = client.IgnoreNotFound(env.Rome.Client.Delete(context.WithoutCancel(t.Context()), configuration))
	})
	return configuration
}

func ofPeer(id string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: corev1beta1.TenantNamespacePrefix + id, Name: id, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: id}}
}

// verdict says what became of what a Configuration announces; nil if it does not say yet.
func verdict(configuration *networkingv1beta1.Configuration) *metav1.Condition {
	ready := meta.FindStatusCondition(configuration.Status.Conditions, corev1beta1.ConditionReady)
	if ready == nil || ready.ObservedGeneration != configuration.Generation ||
		slices.Contains([]string{networkingv1beta1.ReasonRangesPending, networkingv1beta1.ReasonRangesChanged}, ready.Reason) {
		return nil
	}
	return ready
}

// verdicts are what becomes of the Configuration of a peer, as it changes: to ask again and again takes longer than the answers.
type verdicts struct {
	*testing.T
	watch.Interface
	last networkingv1beta1.Configuration
}

func watchVerdicts(t *testing.T, configuration *networkingv1beta1.Configuration) *verdicts {
	t.Helper()
	w, err := env.Rome.Client.Watch(t.Context(), &networkingv1beta1.ConfigurationList{}, client.InNamespace(configuration.Namespace))
	fixture.Must(t, "watching Configurations", err)
	t.Cleanup(w.Stop)
	return &verdicts{T: t, Interface: w}
}

// of waits until a Configuration says what became of what it announces now, or since: the controllers write the ranges of this cluster, too.
func (v *verdicts) of(configuration *networkingv1beta1.Configuration) *metav1.Condition {
	v.Helper()
	deadline := time.NewTimer(fixture.Patience)
	defer deadline.Stop()
	for v.last.Generation < configuration.Generation || verdict(&v.last) == nil {
		select {
		case event, open := <-v.ResultChan():
			seen, is := event.Object.(*networkingv1beta1.Configuration)
			if !open || !is {
				v.Fatalf("the watch of Configurations ended with %+v", event)
			}
			v.last = *seen
		case <-deadline.C:
			v.Fatalf("waited %s for what becomes of %v; last seen: %+v", fixture.Patience, configuration.Spec.Remote.CIDR, v.last.Status.Conditions)
		}
	}
	return verdict(&v.last)
}

// A gateway is told which pods its peer reaches: of a namespace as long as that is offloaded to the peer, of the peer's twins, and of no others.
func TestIsolationFollowsPodsAndNamespaces(t *testing.T) {
	runNetwork(t)
	configuration := peerOf(t, "iso", "10.200.0.0/16")
	id := configuration.Labels[corev1beta1.RemoteClusterIDLabel]
	pods := map[string]*corev1.Pod{}
	for _, name := range []string{"offloaded", "twin", "private"} {
		namespace := fixture.Unique(name)
		objects := []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}}
		if name == "twin" {
			objects = fixture.TwinNamespace(namespace, id)[:1]
		}
		fixture.Must(t, "creating a namespace", env.Rome.Client.Create(t.Context(), objects[0]))
		env.Rome.AwaitServiceAccount(t, namespace)
		pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web"}}}}
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pods[name]))
		fixture.Await(t, fixture.Patience, "an address of pod "+name, func(ctx context.Context) (bool, string) {
			if err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(pods[name]), pods[name]); err != nil {
				return false, err.Error()
			}
			return pods[name].Status.PodIP != "", string(pods[name].Status.Phase)
		})
	}
	shared := func(when string, names ...string) {
		t.Helper()
		var want []networkingv1beta1.PodIP
		for _, name := range names {
			want = append(want, networkingv1beta1.PodIP(pods[name].Status.PodIP))
		}
		slices.Sort(want)
		fixture.Await(t, fixture.Patience, "what is shared "+when, func(ctx context.Context) (bool, string) {
			if err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(configuration), configuration); err != nil {
				return false, err.Error()
			}
			diff := cmp.Diff(want, configuration.Status.SharedPods)
			return diff == "", diff
		})
	}
	shared("with a twin alone", "twin")
	offloaded := &offloadingv1beta1.NamespaceMap{ObjectMeta: ofPeer(id)}
	offloaded.Labels[corev1beta1.ReplicationLabel], offloaded.Labels[corev1beta1.RemoteIDLabel] = "true", id
	offloaded.Spec.DesiredMapping = map[string]string{pods["offloaded"].Namespace: pods["offloaded"].Namespace}
	fixture.Must(t, "offloading a namespace", env.Rome.Client.Create(t.Context(), offloaded))
	shared("once a namespace is offloaded", "offloaded", "twin")
	fixture.Must(t, "deleting a pod", env.Rome.Client.Delete(t.Context(), pods["twin"], client.GracePeriodSeconds(0)))
	shared("once a pod is gone", "offloaded")
	fixture.Must(t, "taking the offloading back", env.Rome.Client.Delete(t.Context(), offloaded))
	shared("once nothing is offloaded")
}

// nasty makes ranges and keys as a peer would that knows what hurts.
type nasty struct{ *rand.Rand }

func (n nasty) cidr() networkingv1beta1.CIDR {
	special := []networkingv1beta1.CIDR{
		"0.0.0.0/0", "10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "10.201.0.0/16", "10.1.2.3/16", "10.0.0.0/33", "::/0", "fd00::/8", "ten", "",
		networkingv1beta1.CIDR(env.Rome.PodCIDR), networkingv1beta1.CIDR(env.Rome.ServiceCIDR), networkingv1beta1.CIDR(strings.Repeat("1", 5000)),
	}
	switch n.IntN(3) {
	case 0:
		return special[n.IntN(len(special))]
	case 1:
		return networkingv1beta1.CIDR(fmt.Sprintf("10.%d.0.0/16", n.IntN(256)))
	default:
		address := netip.AddrFrom4([4]byte{byte(n.IntN(256)), byte(n.IntN(256)), byte(n.IntN(256)), 0})
		return networkingv1beta1.CIDR(netip.PrefixFrom(address, n.IntN(33)).Masked().String())
	}
}

func (n nasty) cidrs(most int) (all []networkingv1beta1.CIDR) {
	for range n.IntN(most + 1) {
		all = append(all, n.cidr())
	}
	return all
}

func (n nasty) key() []byte {
	key := make([]byte, []int{0, 1, 31, 32, 32, 33, 4000}[n.IntN(7)])
	for i := range key {
		key[i] = byte(n.IntN(256))
	}
	return key
}

func (n nasty) hosts() (all []networkingv1beta1.Host) {
	some := []networkingv1beta1.Host{"127.0.0.1", "localhost", "169.254.169.254", "::1", "gw.example.com", "a b", "../etc", "", "{{ .Name }}", "192.0.2.7",
		networkingv1beta1.Host(strings.Repeat("x", 300))}
	for range n.IntN(4) {
		all = append(all, some[n.IntN(len(some))])
	}
	return all
}

// taken is what the API server says to an object: whether it takes it. Anything but a refusal of what is in it is a mistake.
func taken(t *testing.T, err error) bool {
	t.Helper()
	if err != nil && !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
		t.Fatalf("the API server says neither yes nor no: %v", err)
	}
	return err == nil
}

// A thousand objects of what a peer can bring liqoctl to write: the API server refuses them, or a condition says what is wrong with them, or they
// work. Nothing of another peer changes, nothing grows without bounds, and no controller panics.
func TestAThousandObjectsOfAHostilePeer(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	n := nasty{rand.New(rand.NewPCG(seed, seed))}
	runNetwork(t)
	honest := peerOf(t, "honest", "10.201.0.0/16")
	fixture.Await(t, fixture.Patience, "the honest peer's Configuration to be ready, and its gateway told", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(honest), honest)
		told := honest.Status
		return err == nil && told.Isolation != "" && meta.IsStatusConditionTrue(told.Conditions, corev1beta1.ConditionReady), fmt.Sprint(told, err)
	})
	before := objectsOf(t, honest.Namespace)

	hostile := peerOf(t, "hostile", "10.202.0.0/16")
	id := hostile.Labels[corev1beta1.RemoteClusterIDLabel]
	key, dialled := &networkingv1beta1.PublicKey{ObjectMeta: ofPeer(id)}, &networkingv1beta1.GatewayClient{ObjectMeta: ofPeer(id)}
	key.Spec.PublicKey = bytes.Repeat([]byte{1}, 32)
	dialled.Spec.Endpoint = networkingv1beta1.ClientEndpoint{Addresses: []networkingv1beta1.Host{"192.0.2.7"}, Port: 51840}
	for _, o := range []client.Object{key, dialled} {
		fixture.Must(t, "creating what a peer begins with", env.Rome.Client.Create(t.Context(), o))
	}
	patch := func(o client.Object, change func()) bool {
		original := o.DeepCopyObject().(client.Object)
		change()
		if taken(t, env.Rome.Client.Patch(t.Context(), o, client.MergeFrom(original))) {
			return true
		}
		fixture.Must(t, "reading what is there", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		return false
	}
	told := watchVerdicts(t, hostile)
	count := map[string]int{}
	for i := range 1000 {
		switch i % 4 {
		case 0:
			if patch(key, func() { key.Spec.PublicKey = n.key() }) {
				count["keys"]++
			}
		case 1:
			if patch(dialled, func() {
				dialled.Spec.Endpoint.Addresses, dialled.Spec.Endpoint.Port = n.hosts(), networkingv1beta1.Port(n.IntN(1<<17)-1000)
			}) {
				count["endpoints"]++
			}
		default:
			if patch(hostile, func() {
				hostile.Spec.Remote.CIDR = networkingv1beta1.ClusterConfigCIDR{Pod: n.cidrs([]int{1, 3, 40}[n.IntN(3)]), External: n.cidrs(2)}
			}) {
				count["Configurations"]++
				if ready := told.of(hostile); ready.Status != metav1.ConditionTrue {
					count[ready.Reason]++
				} else {
					count["peers"]++
				}
			}
		}
	}
	t.Logf("of 1000 are taken: %v", count)
	for _, kind := range []string{"keys", "endpoints", "Configurations", "peers", networkingv1beta1.ReasonRangeRefused} {
		if count[kind] == 0 {
			t.Errorf("no %s are among what is tried", kind)
		}
	}
	if diff := cmp.Diff(before, objectsOf(t, honest.Namespace)); diff != "" {
		t.Errorf("the honest peer's objects changed (-before +after)\n%s", diff)
	}
	networks := &ipamv1alpha1.NetworkList{}
	fixture.Must(t, "listing Networks", env.Rome.Client.List(t.Context(), networks, client.InNamespace(hostile.Namespace)))
	if len(networks.Items) > 64 {
		t.Errorf("the hostile peer has %d Networks", len(networks.Items))
	}
	noPanics(t)
}

// objectsOf are the Configuration and the Networks in a namespace, as they are.
func objectsOf(t *testing.T, namespace string) (all []string) {
	t.Helper()
	configurations, networks := &networkingv1beta1.ConfigurationList{}, &ipamv1alpha1.NetworkList{}
	for _, list := range []client.ObjectList{configurations, networks} {
		fixture.Must(t, "listing what a peer has", env.Rome.Client.List(t.Context(), list, client.InNamespace(namespace)))
		fixture.Must(t, "reading what a peer has", meta.EachListItem(list, func(item runtime.Object) error {
			o := item.(client.Object)
			all = append(all, fmt.Sprintf("%T %s at %s", o, o.GetName(), o.GetResourceVersion()))
			return nil
		}))
	}
	return all
}

// noPanics checks that no controller of this process has panicked: they are caught, and counted.
func noPanics(t *testing.T) {
	t.Helper()
	families, err := ctrlmetrics.Registry.Gather()
	fixture.Must(t, "reading the metrics", err)
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_panics_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			if metric.GetCounter().GetValue() > 0 {
				t.Errorf("a controller panicked: %v", metric)
			}
		}
	}
}
