package trace

import (
	"context"
	"net"
	"net/netip"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/dataplane"
	"liqo.io/liqo/pkg/networking/inputs"
	way "liqo.io/liqo/pkg/networking/trace"
)

// Options of a trace.
type Options struct {
	// Local is the cluster that the packet is sent in; Remote, if given, is a peer of it.
	Local, Remote *target.Cluster
	// Source is a pod (namespace/name, or its address) or the name of a node. Destination is an address as Local knows it, or a pod of Local
	// (namespace/name), which may be offloaded; with :port.
	Source, Destination string
	// Protocol is tcp, udp or icmp; Size that of the whole packet in bytes.
	Protocol string
	Size     int
}

// Report is the way of a packet and of its answer, a line for each hop.
type Report struct {
	// Arrives tells whether the packet arrives, Answered whether its answer does.
	Arrives  bool `json:"arrives"`
	Answered bool `json:"answered"`
	// There and Back are the hops.
	There []string `json:"there"`
	Back  []string `json:"back,omitempty"`
	// Hint says what would tell more.
	Hint string `json:"hint,omitempty"`
}

// Trace reads what both clusters say and walks a packet through it.
func Trace(ctx context.Context, o Options) (*Report, error) {
	question, err := o.question(ctx)
	if err != nil {
		return nil, err
	}
	var clusters []way.Cluster
	for _, cluster := range []*target.Cluster{o.Local, o.Remote} {
		if cluster == nil {
			continue
		}
		known, err := gather(ctx, cluster)
		if err != nil {
			return nil, err
		}
		clusters = append(clusters, known)
	}
	question.From = clusters[0].ID
	trip, err := way.Trace(clusters, question)
	if err != nil {
		return nil, failure.Misuse("name a pod (namespace/name) or node of this cluster, and an address as 'liqoctl network status' shows its range", "%w", err)
	}
	report := &Report{There: lines(trip.There), Back: lines(trip.Back)}
	_, report.Arrives = dataplane.Arrived(trip.There)
	_, report.Answered = dataplane.Arrived(trip.Back)
	report.Answered = report.Answered && report.Arrives
	switch {
	case report.Answered:
	case o.Remote == nil:
		report.Hint = "the peer is not known: give its kubeconfig or context by --remote-kubeconfig or --remote-context"
	default:
		report.Hint = "the last hop says why; see with 'liqoctl network test' and the same --remote- flags whether the network works"
	}
	return report, nil
}

func lines(hops []dataplane.Hop) []string {
	all := make([]string, 0, len(hops))
	for _, hop := range hops {
		all = append(all, hop.String())
	}
	return all
}

// question reads what is asked for; pods are looked up.
func (o *Options) question(ctx context.Context) (way.Question, error) {
	q := way.Question{Source: o.Source, Protocol: o.Protocol, Size: o.Size}
	switch o.Protocol {
	case dataplane.TCP, dataplane.UDP, dataplane.ICMP:
	default:
		return q, failure.Misuse("use tcp, udp or icmp", "unknown protocol %q", o.Protocol)
	}
	destination := o.Destination
	if host, port, err := net.SplitHostPort(destination); err == nil {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return q, failure.Misuse("give one from 1 to 65535", "%q is no port", port)
		}
		destination, q.Port = host, uint16(number)
	}
	if q.Port == 0 && o.Protocol != dataplane.ICMP {
		return q, failure.Misuse("add one, such as "+destination+":80, or use --protocol icmp", "the destination needs a port")
	}
	var err error
	if q.Source, err = o.address(ctx, o.Source); err != nil {
		return q, err
	}
	if destination, err = o.address(ctx, destination); err != nil {
		return q, err
	}
	if q.Destination, err = netip.ParseAddr(destination); err != nil {
		return q, failure.Misuse("give one of them", "%q is neither an address nor a pod (namespace/name)", destination)
	}
	return q, nil
}

// address replaces namespace/name by the pod's address.
func (o *Options) address(ctx context.Context, text string) (string, error) {
	namespace, name, isPod := strings.Cut(text, "/")
	if !isPod {
		return text, nil
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	switch found, err := o.Local.Get(ctx, pod); {
	case err != nil:
		return "", err
	case !found:
		return "", failure.Misuse("list them with 'kubectl get pods -n "+namespace+"'", "there is no pod %s in %s", text, o.Local.Name)
	case pod.Status.PodIP == "":
		return "", failure.Misuse("wait until it runs, and run the same command again", "pod %s has no address yet", text)
	}
	return pod.Status.PodIP, nil
}

// gather reads what a cluster knows of its network.
func gather(ctx context.Context, cluster *target.Cluster) (way.Cluster, error) {
	installation, err := cluster.RequireInstalled(ctx)
	if err != nil {
		return way.Cluster{}, err
	}
	nodes, ips := &networkingv1beta1.InternalNodeList{}, &ipamv1alpha1.IPList{}
	configurations, fabrics := &networkingv1beta1.ConfigurationList{}, &networkingv1beta1.InternalFabricList{}
	servers, clients := &networkingv1beta1.GatewayServerList{}, &networkingv1beta1.GatewayClientList{}
	for _, list := range []client.ObjectList{nodes, ips, configurations, fabrics, servers, clients} {
		if err := cluster.List(ctx, list); err != nil {
			return way.Cluster{}, err
		}
	}
	known := way.Cluster{ID: installation.ClusterID, Nodes: nodes.Items, IPs: ips.Items}
	inside := map[client.ObjectKey]way.Peering{}
	for i := range servers.Items {
		inside[client.ObjectKeyFromObject(&servers.Items[i])] = way.Peering{Server: true, Node: nodeOf(servers.Items[i].Status.InternalEndpoint)}
	}
	for i := range clients.Items {
		inside[client.ObjectKeyFromObject(&clients.Items[i])] = way.Peering{Node: nodeOf(clients.Items[i].Status.InternalEndpoint)}
	}
	for i := range fabrics.Items {
		fabric := &fabrics.Items[i]
		p, found := inside[client.ObjectKeyFromObject(fabric)]
		p.Fabric, p.Peer = *fabric, fabric.Labels[corev1beta1.RemoteClusterIDLabel]
		if c := inputs.OfPeer(configurations.Items, p.Peer); found && c != nil && c.Namespace == fabric.Namespace && c.Status.Remote != nil {
			p.Configuration = *c
			known.Peerings = append(known.Peerings, p)
		}
	}
	if len(known.Peerings) == 0 {
		return known, failure.New(failure.Problems, "connect the networks with 'liqoctl network connect'", "the network of %s is connected to no peer", cluster.Name)
	}
	return known, nil
}

func nodeOf(endpoint *networkingv1beta1.InternalGatewayEndpoint) string {
	if endpoint == nil || endpoint.Node == nil {
		return ""
	}
	return *endpoint.Node
}
