package network_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
)

type world struct {
	rome, milan *fixture.Cluster
	recorder    *progress.Recorder
}

func newWorld(t *testing.T, change func(rome, milan *fixture.Networks, home, there *fixture.Options)) world {
	t.Helper()
	rome, milan := &fixture.Networks{T: t, Key: 1, PeerKey: 2}, &fixture.Networks{T: t, Key: 2, PeerKey: 1}
	home := fixture.Options{Name: "kind-rome", ClusterID: "rome", Networking: true, React: rome.React, Objects: fixture.OwnNetworks("10.244.0.0/16")}
	there := fixture.Options{Name: "kind-milan", ClusterID: "milan", Networking: true, React: milan.React, Objects: fixture.OwnNetworks("10.10.0.0/16", "10.20.0.0/16")}
	if change != nil {
		change(rome, milan, &home, &there)
	}
	return world{fixture.New(t, home), fixture.New(t, there), &progress.Recorder{}}
}

func (w world) options() network.Options {
	return network.Options{Local: w.rome.Cluster, Remote: w.milan.Cluster, Observer: w.recorder, Timeout: 20 * time.Second}
}

func (w world) writes() []string { return append(w.rome.Writes(), w.milan.Writes()...) }

func get[T client.Object](t *testing.T, cluster *fixture.Cluster, peer string, object T) T {
	t.Helper()
	if err := cluster.Client.Get(t.Context(), types.NamespacedName{Namespace: "liqo-tenant-" + peer, Name: peer}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestConnectingIsToldStepByStep(t *testing.T) {
	w := newWorld(t, nil)
	report, err := network.Connect(t.Context(), w.options())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"done: Preconditions hold",
		"rome: done: Tenant namespace liqo-tenant-milan created",
		"milan: done: Tenant namespace liqo-tenant-rome created",
		"rome: done: Configuration milan created",
		"milan: done: Configuration rome created",
		"rome: done: milan is seen as 10.61.0.0/16, 10.61.0.0/16, 10.71.0.0/16",
		"milan: done: rome is seen as 10.61.0.0/16, 10.71.0.0/16",
		"milan: done: Gateway server rome is at 192.0.2.1:51840",
		"rome: done: Gateway client milan goes to 192.0.2.1:51840",
		"milan: done: PublicKey rome created",
		"rome: done: PublicKey milan created",
		"done: The networks of rome and milan are connected",
	}
	if diff := cmp.Diff(want, w.recorder.Lines()); diff != "" {
		t.Error(diff)
	}
	wanted := &network.Report{Server: "milan", Client: "rome", Endpoint: "192.0.2.1:51840", Connected: true, Changed: true, Ranges: map[string][]network.Range{
		"rome": {{Kind: "pod", CIDR: "10.10.0.0/16", SeenAs: "10.61.0.0/16"}, {Kind: "pod", CIDR: "10.20.0.0/16", SeenAs: "10.61.0.0/16"},
			{Kind: "external", CIDR: "10.70.0.0/16", SeenAs: "10.71.0.0/16"}},
		"milan": {{Kind: "pod", CIDR: "10.244.0.0/16", SeenAs: "10.61.0.0/16"}, {Kind: "external", CIDR: "10.70.0.0/16", SeenAs: "10.71.0.0/16"}},
	}}
	if diff := cmp.Diff(wanted, report); diff != "" {
		t.Error(diff)
	}
	server := get(t, w.milan, "rome", &networkingv1beta1.GatewayServer{})
	wantServer := networkingv1beta1.GatewayServerSpec{
		Endpoint: networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeLoadBalancer},
		ServerTemplateRef: corev1.ObjectReference{APIVersion: "networking.liqo.io/v1beta1", Kind: "WgGatewayServerTemplate",
			Namespace: "liqo", Name: "wireguard-server"},
	}
	if diff := cmp.Diff(wantServer, server.Spec); diff != "" || server.Labels[corev1beta1.RemoteClusterIDLabel] != "rome" {
		t.Error(diff, server.Labels)
	}
}

func TestConnectingAgainWritesNothing(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options()
	o.Settings = network.Settings{ServiceType: corev1.ServiceTypeNodePort, NodePort: ptr.To[int32](30000), ClientAddress: ptr.To("gateway.milan.example"),
		ClientPort: ptr.To[int32](443), MTU: ptr.To[int32](1300)}
	if _, err := network.Connect(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	before := len(w.writes())
	for sentence, again := range map[string]network.Options{"with the same settings": o, "without settings": w.options()} {
		report, err := network.Connect(t.Context(), again)
		if err != nil || report.Changed || len(w.writes()) != before {
			t.Errorf("%s: %v, %+v, wrote %v", sentence, err, report, w.writes())
		}
	}
	// Asked for the other way round, the server stays where it is.
	o = w.options()
	o.Local, o.Remote = o.Remote, o.Local
	report, err := network.Connect(t.Context(), o)
	if err != nil || report.Changed || report.Server != "milan" || len(w.writes()) != before {
		t.Errorf("the other way round: %v, %+v, wrote %v", err, report, w.writes())
	}
}

// Manifests of users have names of their own: what they made is completed, and nothing is made beside it. One without the label is nobody's.
func TestObjectsOfOtherNamesAreUsed(t *testing.T) {
	named := func(name, peer string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: name, Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: peer}}
	}
	endpoint := networkingv1beta1.Endpoint{Port: 51999, ServiceType: corev1.ServiceTypeNodePort}
	w := newWorld(t, func(_, _ *fixture.Networks, _, there *fixture.Options) {
		there.Objects = append(there.Objects,
			&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-rome"}},
			&networkingv1beta1.Configuration{ObjectMeta: named("rome-net", "rome")}, &networkingv1beta1.Configuration{ObjectMeta: named("other", "")},
			&networkingv1beta1.GatewayServer{ObjectMeta: named("server", "rome"), Spec: networkingv1beta1.GatewayServerSpec{Endpoint: endpoint}},
			&networkingv1beta1.PublicKey{ObjectMeta: named("my-key", "rome")})
	})
	if _, err := network.Connect(t.Context(), w.options()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"milan: done: Configuration rome-net updated", "milan: done: Gateway server server is at 192.0.2.1:51999", "milan: done: PublicKey my-key updated",
	} {
		if !slices.Contains(w.recorder.Lines(), want) {
			t.Errorf("not told: %s, but %q", want, w.recorder.Lines())
		}
	}
	got := map[string]int{}
	for name, list := range map[string]client.ObjectList{
		"Configurations": &networkingv1beta1.ConfigurationList{}, "gateways": &networkingv1beta1.GatewayServerList{}, "keys": &networkingv1beta1.PublicKeyList{},
	} {
		if err := w.milan.Client.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		got[name] = meta.LenList(list)
	}
	server := &networkingv1beta1.GatewayServer{}
	if err := w.milan.Client.Get(t.Context(), types.NamespacedName{Namespace: "liqo-tenant-rome", Name: "server"}, server); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]int{"Configurations": 2, "gateways": 1, "keys": 1}, got); diff != "" || server.Spec.Endpoint != endpoint {
		t.Errorf("%s, the gateway is at %+v", diff, server.Spec.Endpoint)
	}
	before := len(w.writes())
	if report, err := network.Connect(t.Context(), w.options()); err != nil || report.Changed || len(w.writes()) != before {
		t.Errorf("again: %v, %+v, wrote %v", err, report, w.writes())
	}
}

// impatient does something about what is waited for.
type impatient struct {
	progress.Observer
	about func(message string)
}

func (i impatient) Begin(cluster, title string) progress.Task {
	return impatientTask{i.Observer.Begin(cluster, title), i.about}
}

type impatientTask struct {
	progress.Task
	about func(message string)
}

func (i impatientTask) Waiting(message string) {
	i.Task.Waiting(message)
	i.about(message)
}

// What is being deleted is waited for, whatever its name; then the next one counts.
func TestWhatIsBeingDeletedIsWaitedFor(t *testing.T) {
	named := func(name string, age time.Duration) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age)),
			Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}}
	}
	going := &networkingv1beta1.Configuration{ObjectMeta: named("milan-net", time.Hour)}
	going.Finalizers = []string{"example.com/a"}
	w := newWorld(t, func(_, _ *fixture.Networks, home, _ *fixture.Options) {
		home.Objects = append(home.Objects, going, &networkingv1beta1.Configuration{ObjectMeta: named("next", time.Minute)})
	})
	if err := w.rome.Client.Delete(t.Context(), going); err != nil {
		t.Fatal(err)
	}
	o := w.options()
	o.Observer = impatient{w.recorder, func(message string) {
		if message != "Configuration liqo-tenant-milan/milan-net (cluster rome) is being deleted" {
			return
		}
		gone := &networkingv1beta1.Configuration{ObjectMeta: named("milan-net", time.Hour)}
		if err := w.rome.Client.Get(t.Context(), client.ObjectKeyFromObject(gone), gone); err != nil {
			t.Error(err)
		}
		gone.Finalizers = nil
		if err := w.rome.Client.Update(t.Context(), gone); err != nil {
			t.Error(err)
		}
	}}
	if _, err := network.Init(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if lines := w.recorder.Lines(); !slices.Contains(lines, "rome: done: Configuration next updated") {
		t.Errorf("told %q", lines)
	}
}

func TestSettingsChangeWhatIsThere(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options()
	o.Settings = network.Settings{ServerHere: true, LoadBalancerIP: ptr.To("192.0.2.7"), ServerTemplate: types.NamespacedName{Namespace: "liqo", Name: "wireguard-server"}}
	if _, err := network.Connect(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Settings = network.Settings{ServerHere: true, ServiceType: corev1.ServiceTypeClusterIP, Port: 5000, ClientAddress: ptr.To("198.51.100.1")}
	if report, err := network.Connect(t.Context(), o); err != nil || !report.Changed || report.Server != "rome" {
		t.Fatal(report, err)
	}
	want := networkingv1beta1.Endpoint{Port: 5000, ServiceType: corev1.ServiceTypeClusterIP}
	if diff := cmp.Diff(want, get(t, w.rome, "milan", &networkingv1beta1.GatewayServer{}).Spec.Endpoint); diff != "" {
		t.Error(diff)
	}
	if got := get(t, w.milan, "rome", &networkingv1beta1.GatewayClient{}).Spec.Endpoint.Addresses; !cmp.Equal(got, []networkingv1beta1.Host{"198.51.100.1"}) {
		t.Error(got)
	}
}

// A gateway server that a user's manifest made, without a template, stays exposed as it is, but for what settings say.
func TestAGatewayServerOfAManifestStays(t *testing.T) {
	is := networkingv1beta1.Endpoint{Port: 51820, ServiceType: corev1.ServiceTypeNodePort, NodePort: 30123}
	other := is
	other.NodePort = 30124
	for sentence, tc := range map[string]struct {
		settings network.Settings
		want     networkingv1beta1.Endpoint
	}{
		"without settings":  {network.Settings{}, is},
		"another node port": {network.Settings{NodePort: ptr.To[int32](30124)}, other},
	} {
		w := newWorld(t, func(_, _ *fixture.Networks, _, there *fixture.Options) {
			there.Objects = append(there.Objects, &networkingv1beta1.GatewayServer{
				ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "rome", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "rome"}},
				Spec:       networkingv1beta1.GatewayServerSpec{Endpoint: is},
			})
		})
		o := w.options()
		o.Settings = tc.settings
		if _, err := network.Connect(t.Context(), o); err != nil {
			t.Fatalf("%s: %v", sentence, err)
		}
		if diff := cmp.Diff(tc.want, get(t, w.milan, "rome", &networkingv1beta1.GatewayServer{}).Spec.Endpoint); diff != "" {
			t.Errorf("%s: %s", sentence, diff)
		}
	}
}

// What the controller adds for clusters behind a peer is left alone; taking no part in transit any more takes it away.
func TestTransitIsTurnedOnAndOff(t *testing.T) {
	w := newWorld(t, nil)
	on := w.options()
	on.Settings.Transit = ptr.To(true)
	if _, err := network.Connect(t.Context(), on); err != nil {
		t.Fatal(err)
	}
	for _, side := range []struct {
		cluster *fixture.Cluster
		peer    string
	}{{w.rome, "milan"}, {w.milan, "rome"}} {
		if c := get(t, side.cluster, side.peer, &networkingv1beta1.Configuration{}); !c.Spec.Transit {
			t.Errorf("%s of %s has no transit", c.Name, side.cluster.Name)
		}
	}
	behind := get(t, w.rome, "milan", &networkingv1beta1.Configuration{})
	behind.Spec.Remote.CIDR.External = append(behind.Spec.Remote.CIDR.External, "10.52.0.0/16")
	if err := w.rome.Client.Update(t.Context(), behind); err != nil {
		t.Fatal(err)
	}
	behind = get(t, w.rome, "milan", behind)
	behind.Status.Remote.CIDR.External = append(behind.Status.Remote.CIDR.External[:1], "10.53.0.0/16")
	if err := w.rome.Client.Status().Update(t.Context(), behind); err != nil {
		t.Fatal(err)
	}
	before := len(w.writes())
	if report, err := network.Connect(t.Context(), w.options()); err != nil || report.Changed || len(w.writes()) != before {
		t.Errorf("again, without settings: %v, %+v, wrote %v", err, report, w.writes()[before:])
	}
	off := w.options()
	off.Settings.Transit = ptr.To(false)
	if _, err := network.Connect(t.Context(), off); err != nil {
		t.Fatal(err)
	}
	if c := get(t, w.rome, "milan", &networkingv1beta1.Configuration{}); c.Spec.Transit || len(c.Spec.Remote.CIDR.External) != 1 {
		t.Errorf("without transit there is %+v", c.Spec)
	}
}

// A tunnel is up before its gateway's pod is ready, and before anybody is told so: whoever waited looks at the peering next.
func TestConnectedIsWhatInfoShows(t *testing.T) {
	milan := &corev1beta1.ForeignCluster{ObjectMeta: metav1.ObjectMeta{Name: "milan"}, Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}}
	behind := corev1beta1.Condition{Type: corev1beta1.NetworkGatewayClientStatus, Status: corev1beta1.StatusNotReady, Reason: "GatewayPodPending", Message: "no pod is ready"}
	for sentence, test := range map[string]struct {
		change func(rome, milan *fixture.Networks, home, there *fixture.Options)
		want   string
	}{
		"a gateway that is not ready yet": {func(rome, _ *fixture.Networks, _, _ *fixture.Options) {
			rome.Gateway = networkingv1beta1.ReasonGatewayPodPending
		},
			"rome: its gateway: GatewayPodPending: not yet"},
		"a ForeignCluster that is behind": {func(_, _ *fixture.Networks, home, _ *fixture.Options) {
			known := milan.DeepCopy()
			known.Status.Modules.Networking.Conditions = []corev1beta1.Condition{{Type: corev1beta1.NetworkConnectionStatus, Status: corev1beta1.StatusEstablished}, behind}
			home.Objects = append(home.Objects, known)
		}, "rome: GatewayPodPending: no pod is ready"},
		// Which nodes come into the tunnel is asked afterwards, by a packet of each.
		"a node that does not come in": {func(_, _ *fixture.Networks, home, _ *fixture.Options) {
			known := milan.DeepCopy()
			known.Status.Modules.Networking.Conditions = []corev1beta1.Condition{{Type: corev1beta1.NetworkConnectionStatus, Status: corev1beta1.StatusSomeNotReady,
				Reason: networkingv1beta1.ReasonOverlaySilent, Message: "InternalNode a says OverlaySilent"}}
			home.Objects = append(home.Objects, known)
		}, ""},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.change)
			o := w.options()
			o.Timeout = 10 * time.Second
			_, err := network.Connect(t.Context(), o)
			if test.want == "" {
				if err != nil {
					t.Errorf("got %v, want it to be connected", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "to be connected: "+test.want) || failure.CodeOf(err) != failure.Timeout {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestOnlyTheRangesAreExchanged(t *testing.T) {
	w := newWorld(t, nil)
	for _, changed := range []bool{true, false} {
		report, err := network.Init(t.Context(), w.options())
		if err != nil || report.Changed != changed || len(report.Ranges["rome"]) != 3 {
			t.Fatal(report, err)
		}
	}
	for _, write := range w.writes() {
		if !strings.Contains(write, "Configuration") && !strings.Contains(write, "Namespace") {
			t.Error(write)
		}
	}
}

func TestWhatConnectingFailsWith(t *testing.T) {
	cases := map[string]struct {
		change func(rome, milan *fixture.Networks, home, there *fixture.Options)
		alter  func(o *network.Options)
		code   failure.Code
		want   string
	}{
		"the module is off there": {
			change: func(_, _ *fixture.Networks, _, there *fixture.Options) { there.Networking = false },
			code:   failure.Precondition,
			want:   "the network module is off in cluster milan: turn it on with 'liqoctl install --set networking.enabled=true --context kind-milan'",
		},
		"this one revoked the other": {
			change: func(_, _ *fixture.Networks, home, _ *fixture.Options) {
				home.Objects = append(home.Objects, &corev1beta1.ForeignCluster{Spec: corev1beta1.ForeignClusterSpec{ClusterID: "milan"}, ObjectMeta: metav1.ObjectMeta{Name: "milan",
					Annotations: map[string]string{corev1beta1.CutOffAnnotation: "true", corev1beta1.CutOffByAnnotation: "alice at noon"}}})
			},
			code: failure.Precondition,
			want: "milan is cut off from cluster rome: milan was revoked by alice at noon and is not talked to: this is taken back with 'liqoctl peer', " +
				"or for the network alone with 'kubectl annotate foreigncluster milan liqo.io/foreign-cluster-cut-off-'",
		},
		"the other one revoked this": {
			change: func(_, _ *fixture.Networks, _, there *fixture.Options) {
				there.Objects = append(there.Objects, &corev1beta1.ForeignCluster{Spec: corev1beta1.ForeignClusterSpec{ClusterID: "rome"}, ObjectMeta: metav1.ObjectMeta{Name: "rome"},
					Status: corev1beta1.ForeignClusterStatus{Summary: []corev1beta1.Condition{{Type: corev1beta1.CutOffCondition, Message: "rome was revoked in milan; peer again"}}}})
			},
			code: failure.Precondition,
			want: "rome is cut off from cluster milan: rome was revoked in milan: peer again",
		},
		"a right is missing": {
			change: func(_, _ *fixture.Networks, home, _ *fixture.Options) {
				home.Missing = []string{"create gatewayclients.networking.liqo.io in namespace liqo-tenant-milan"}
			},
			code: failure.Precondition,
			want: "you are not allowed to: create gatewayclients.networking.liqo.io in namespace liqo-tenant-milan (cluster rome): ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs",
		},
		"the controller manager there has made no Networks": {
			change: func(_, _ *fixture.Networks, _, there *fixture.Options) { there.Objects = there.Objects[:2] },
			code:   failure.Timeout,
			want:   "timed out waiting for the ranges of cluster milan: it has no range of pods yet (Network pod-cidr): see whether liqo-controller-manager runs there: liqoctl info --context kind-milan",
		},
		"no place for the ranges": {
			change: func(rome, _ *fixture.Networks, _, _ *fixture.Options) {
				rome.Configuration = networkingv1beta1.ReasonPoolExhausted
			},
			alter: func(o *network.Options) { o.Timeout = time.Minute },
			code:  failure.Failed,
			want: "Configuration liqo-tenant-milan/milan (cluster rome) was refused: PoolExhausted: not yet: " +
				"give this cluster more room with 'liqoctl install --set ipam.pools={RANGE,...}', and run the same command again",
		},
		"ranges that are waited for": {
			change: func(rome, _ *fixture.Networks, _, _ *fixture.Options) {
				rome.Configuration = networkingv1beta1.ReasonRangesPending
			},
			code: failure.Timeout,
			want: "timed out waiting for Configuration liqo-tenant-milan/milan (cluster rome) to be configured: RangesPending: not yet: " +
				"look the reason up in docs/troubleshooting.md, and run the same command again",
		},
		"no load balancer": {
			change: func(_, milan *fixture.Networks, _, _ *fixture.Options) { milan.Gateway = "EndpointPending" },
			code:   failure.Timeout,
			want:   "timed out waiting for GatewayServer liqo-tenant-rome/rome (cluster milan) to have an address: EndpointPending: not yet: if the cluster has no load balancers, add --gw-server-service-type NodePort",
		},
		"a template that makes no gateway": {
			change: func(_, milan *fixture.Networks, _, _ *fixture.Options) {
				milan.Gateway = networkingv1beta1.ReasonTemplateInvalid
			},
			alter: func(o *network.Options) { o.Timeout = time.Minute },
			code:  failure.Failed,
			want:  "GatewayServer liqo-tenant-rome/rome (cluster milan) was refused: TemplateInvalid: not yet: correct the template, or name another one by the --gw- flags, and run the same command again",
		},
		"no handshake": {
			change: func(rome, milan *fixture.Networks, _, _ *fixture.Options) {
				rome.Connection, milan.Connection = "NoHandshake", "NoHandshake"
			},
			code: failure.Timeout,
			want: "timed out waiting for the networks of rome and milan to be connected: milan (server): Connecting: NoHandshake: not yet; rome (client): Connecting: NoHandshake: not yet: " +
				"see whether 192.0.2.1:51840 can be reached by UDP from the nodes of cluster rome, and what 'liqoctl network status' says in both clusters",
		},
		"one side only": {
			change: func(rome, _ *fixture.Networks, _, _ *fixture.Options) { rome.Connection = "EndpointUnresolved" },
			code:   failure.Timeout,
			want: "timed out waiting for the networks of rome and milan to be connected: rome (client): Connecting: EndpointUnresolved: not yet: " +
				"see whether 192.0.2.1:51840 can be reached by UDP from the nodes of cluster rome, and what 'liqoctl network status' says in both clusters",
		},
		"a template that is not there": {
			alter: func(o *network.Options) { o.Settings.ServerTemplate.Name = "other" },
			code:  failure.Precondition,
			want:  "applying GatewayServer liqo-tenant-rome/rome (cluster milan): there is no template WgGatewayServerTemplate liqo/other (cluster milan): name one that is there by the --gw- flags, or bring back that of the chart: liqoctl install --context kind-milan",
		},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.change)
			o := w.options()
			if test.code == failure.Timeout {
				o.Timeout = 10 * time.Second
			}
			if test.alter != nil {
				test.alter(&o)
			}
			_, err := network.Connect(t.Context(), o)
			if err == nil {
				t.Fatal("connected")
			}
			if diff := cmp.Diff(test.want, err.Error()); diff != "" || failure.CodeOf(err) != test.code {
				t.Errorf("code %d, want %d\n%s", failure.CodeOf(err), test.code, diff)
			}
			if hinted := strings.Contains(strings.Join(w.recorder.Lines(), "\n"), "run it again with --gw-server-service-type NodePort"); hinted != (sentence == "no load balancer") {
				t.Errorf("told the way out while it waited: %t, in %v", hinted, w.recorder.Lines())
			}
			if strings.Contains(err.Error(), "cut off") && len(w.writes()) > 0 {
				t.Errorf("refused, and wrote %v", w.writes())
			}
		})
	}
}

func TestWithoutWaitingForTheTunnel(t *testing.T) {
	w := newWorld(t, func(rome, _ *fixture.Networks, _, _ *fixture.Options) { rome.Connection = "NoHandshake" })
	o := w.options()
	o.NoWait, o.Settings.NoKeys = true, true
	report, err := network.Connect(t.Context(), o)
	if err != nil || report.Connected {
		t.Fatal(report, err)
	}
	for _, write := range w.writes() {
		if strings.Contains(write, "PublicKey") {
			t.Error(write)
		}
	}
}

// collect plays garbage collection: with a gateway goes its Connection.
func collect(t *testing.T, clusters ...*fixture.Cluster) {
	t.Helper()
	for _, cluster := range clusters {
		if err := cluster.Client.DeleteAllOf(t.Context(), &networkingv1beta1.Connection{}, client.InNamespace("liqo-tenant-rome")); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Client.DeleteAllOf(t.Context(), &networkingv1beta1.Connection{}, client.InNamespace("liqo-tenant-milan")); err != nil {
			t.Fatal(err)
		}
	}
}

func TestDisconnectingKeepsTheRanges(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := network.Connect(t.Context(), w.options()); err != nil {
		t.Fatal(err)
	}
	w.recorder = &progress.Recorder{}
	collect(t, w.rome, w.milan)
	o, asked := w.options(), ""
	o.Confirm = func(_ context.Context, question string) error { asked = question; return nil }
	for _, changed := range []bool{true, false} {
		report, err := network.Disconnect(t.Context(), o)
		if err != nil || report.Changed != changed {
			t.Fatal(report, err)
		}
	}
	want := []string{
		"done: Preconditions hold",
		"rome: done: Deleted GatewayClient liqo-tenant-milan/milan",
		"rome: done: Deleted PublicKey liqo-tenant-milan/milan",
		"milan: done: Deleted GatewayServer liqo-tenant-rome/rome",
		"milan: done: Deleted PublicKey liqo-tenant-rome/rome",
		"done: Preconditions hold",
	}
	if diff := cmp.Diff(want, w.recorder.Lines()); diff != "" {
		t.Error(diff)
	}
	if asked != "Disconnecting rome and milan cuts off their pods from each other." {
		t.Error(asked)
	}
	get(t, w.rome, "milan", &networkingv1beta1.Configuration{})
	for _, changed := range []bool{true, false} {
		if report, err := network.Reset(t.Context(), w.options()); err != nil || report.Changed != changed {
			t.Fatal(report, err)
		}
	}
	left, err := network.Peers(t.Context(), w.rome.Cluster)
	if err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

func TestWhatKeepsAGatewayIsTold(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := network.Connect(t.Context(), w.options()); err != nil {
		t.Fatal(err)
	}
	o := w.options()
	o.Timeout = 5 * time.Second
	_, err := network.Disconnect(t.Context(), o)
	want := "timed out waiting for what the controllers made for the network to milan to be gone: Connection liqo-tenant-milan/milan (cluster rome) is still there: see why with 'kubectl get ... -o yaml', and run the same command again"
	if failure.CodeOf(err) != failure.Timeout || err.Error() != want {
		t.Error(err)
	}
	o.NoWait = true
	if _, err := network.Disconnect(t.Context(), o); err != nil {
		t.Error(err)
	}
}

func TestStatus(t *testing.T) {
	w := newWorld(t, func(_, milan *fixture.Networks, _, _ *fixture.Options) { milan.Connection = "NoHandshake" })
	o := w.options()
	o.NoWait = true
	if _, err := network.Connect(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	second := get(t, w.milan, "rome", &networkingv1beta1.Configuration{})
	second = &networkingv1beta1.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: second.Namespace, Name: "rome-net", Labels: second.Labels}, Spec: second.Spec}
	if err := w.milan.Client.Create(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	foreign := &networkingv1beta1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "x", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "paris"}}}
	if err := w.milan.Client.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	ranges := []network.Range{{Kind: "pod", CIDR: "10.244.0.0/16", SeenAs: "10.61.0.0/16"}, {Kind: "external", CIDR: "10.70.0.0/16", SeenAs: "10.71.0.0/16"}}
	endpoint := network.Endpoint{Addresses: []string{"192.0.2.1"}, Port: 51840}
	want := &network.Status{ClusterID: "milan", Enabled: true, Peers: []network.Peer{{ClusterID: "rome", State: "Connecting", Role: "Server", Endpoint: endpoint,
		Latency: "12ms", MTU: 1440, Ranges: ranges, Alerts: []string{
			"Configuration rome-net: it does not count, because rome is older", "Connection rome: Connecting: NoHandshake: not yet"}}}}
	got, err := network.ReadStatus(t.Context(), w.milan.Cluster)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	got, err = network.ReadStatus(t.Context(), w.rome.Cluster)
	if err != nil || len(got.Peers) != 1 || got.Peers[0].State != "Connected" || got.Peers[0].Role != "Client" || len(got.Peers[0].Alerts) > 0 {
		t.Errorf("%+v, %v", got, err)
	}
	// The tunnel answers still, and will not come up again: that is no network that is connected.
	connection := get(t, w.rome, "milan", &networkingv1beta1.Connection{})
	meta.SetStatusCondition(&connection.Status.Conditions, metav1.Condition{Type: corev1beta1.ConditionReady, Status: metav1.ConditionFalse,
		Reason: networkingv1beta1.ReasonKeyMissing, Message: "there is no PublicKey"})
	if err := w.rome.Client.Status().Update(t.Context(), connection); err != nil {
		t.Fatal(err)
	}
	got, err = network.ReadStatus(t.Context(), w.rome.Cluster)
	if err != nil || got.Peers[0].State != "Error" || strings.Join(got.Peers[0].Alerts, "") != "Connection milan: Error: KeyMissing: there is no PublicKey" ||
		got.Peers[0].Cure != "run 'liqoctl network connect' again" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A node port that the cluster with the gateway server cannot give is refused before anything is written.
func TestANodePortOutOfRangeIsRefusedFirst(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options()
	o.Settings = network.Settings{ServiceType: corev1.ServiceTypeNodePort, NodePort: ptr.To[int32](80)}
	_, err := network.Connect(t.Context(), o)
	want := "cluster milan cannot give node port 80: Invalid value: 80: provided port is not in the valid range. The range of valid ports is 30000-32767: " +
		"give another one, or leave it out and the cluster chooses one"
	if err == nil || err.Error() != want || failure.CodeOf(err) != failure.Precondition {
		t.Errorf("%v, want %s", err, want)
	}
	if writes := w.writes(); len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
}

// A node port that only this cluster has is tried by a Service that is gone at once.
func TestANodePortOfAnotherRangeIsTried(t *testing.T) {
	w := newWorld(t, func(_, _ *fixture.Networks, _, there *fixture.Options) { there.AnyNodePort = true })
	o := w.options()
	o.Settings = network.Settings{ServiceType: corev1.ServiceTypeNodePort, NodePort: ptr.To[int32](20000)}
	if _, err := network.Connect(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	services := &corev1.ServiceList{}
	if err := w.milan.Client.List(t.Context(), services, client.InNamespace("liqo")); err != nil || len(services.Items) > 0 {
		t.Errorf("services %v are left (%v)", services.Items, err)
	}
	if writes := w.milan.Writes(); !slices.ContainsFunc(writes, func(write string) bool { return strings.HasPrefix(write, "delete Service") }) {
		t.Errorf("nothing was tried: %v", writes)
	}
}

// What was asked for earlier is taken back by a zero that is asked for, and by nothing else.
func TestSettingsAreTakenBack(t *testing.T) {
	w := newWorld(t, nil)
	o := w.options()
	o.Settings = network.Settings{
		ServiceType: corev1.ServiceTypeLoadBalancer, NodePort: ptr.To[int32](30000), LoadBalancerIP: ptr.To("192.0.2.7"),
		ClientAddress: ptr.To("gateway.milan.example"), ClientPort: ptr.To[int32](443), MTU: ptr.To[int32](1300),
	}
	if _, err := network.Connect(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Settings = network.Settings{
		NodePort: ptr.To[int32](0), LoadBalancerIP: ptr.To(""), ClientAddress: ptr.To(""), ClientPort: ptr.To[int32](0), MTU: ptr.To[int32](0),
	}
	if _, err := network.Connect(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	server, dialed := get(t, w.milan, "rome", &networkingv1beta1.GatewayServer{}).Spec, get(t, w.rome, "milan", &networkingv1beta1.GatewayClient{}).Spec
	if diff := cmp.Diff(networkingv1beta1.Endpoint{Port: 51840, ServiceType: corev1.ServiceTypeLoadBalancer}, server.Endpoint); diff != "" {
		t.Error(diff)
	}
	want := networkingv1beta1.ClientEndpoint{Addresses: []networkingv1beta1.Host{"192.0.2.1"}, Port: 51840, Protocol: corev1.ProtocolUDP}
	if diff := cmp.Diff(want, dialed.Endpoint); diff != "" {
		t.Error(diff)
	}
	if server.MTU != 0 || dialed.MTU != 0 {
		t.Errorf("MTU %d of the server, %d of the client", server.MTU, dialed.MTU)
	}
}
