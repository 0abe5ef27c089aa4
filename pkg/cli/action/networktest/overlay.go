package networktest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/fabric/agent"
	"liqo.io/liqo/pkg/networking/inputs"
)

// settling is how long nodes may take to learn of a gateway that began to run just now.
const settling = 20 * time.Second

// end is one cluster of a pair, with what became of asking.
type end struct {
	cluster  *target.Cluster
	id, peer string
	port     int32
	// asked are the nodes whose agents could be asked, silent those of them to which the gateway does not answer.
	asked, silent []string
}

// Overlay has each node of two clusters whose gateways are connected ask its own cluster's gateway to the other one, through the overlay: with
// the tunnel, these are all parts of a packet's way. It warns of nodes that get no answer, and fails if none of a cluster's does. Nodes
// whose agents cannot be asked, or not by this user, are left out.
func Overlay(ctx context.Context, pair *target.Pair, streams func(*target.Cluster) Streams, observer progress.Observer) error {
	o := Options{Streams: streams}
	ends := []*end{
		{cluster: pair.Consumer, id: pair.ConsumerID, peer: pair.ProviderID, port: pair.ConsumerHas.Config.Networking.GenevePort},
		{cluster: pair.Provider, id: pair.ProviderID, peer: pair.ConsumerID, port: pair.ProviderHas.Config.Networking.GenevePort},
	}
	return progress.Run(ctx, observer, "", "Asking the nodes whether they reach the gateways", func(ctx context.Context, task progress.Task) (string, error) {
		short, cancel := context.WithTimeout(ctx, settling)
		defer cancel()
		err := await.Until(short, task, "the nodes to reach their gateways", func(ctx context.Context) (bool, string, error) {
			for _, e := range ends {
				if err := e.ask(ctx, o.streams(e.cluster)); err != nil {
					return false, "", err
				}
			}
			silent := sum(ends)
			return silent == "", silent, nil
		})
		if err == nil && len(ends[0].asked)+len(ends[1].asked) == 0 {
			return "No node could be asked whether it reaches its gateway", nil
		}
		if failure.CodeOf(err) != failure.Timeout || ctx.Err() != nil {
			return "The nodes reach the gateways", err
		}
		for _, e := range ends {
			if len(e.silent) > 0 && len(e.silent) == len(e.asked) {
				return "", failure.New(failure.Timeout, openPort(e.port)+", and run the same command again", "%s", e.String())
			}
		}
		return "", progress.Warned(sum(ends))
	})
}

// ask has each node of a cluster ask its gateway.
func (e *end) ask(ctx context.Context, streams Streams) error {
	fabrics := &networkingv1beta1.InternalFabricList{}
	err := e.cluster.List(ctx, fabrics, client.InNamespace(corev1beta1.TenantNamespacePrefix+e.peer))
	fabric := inputs.OfPeer(fabrics.Items, e.peer)
	if apierrors.IsForbidden(err) || err == nil && fabric == nil {
		return nil
	}
	if err != nil {
		return err
	}
	agents, err := agentPods(ctx, e.cluster, e.cluster.LiqoNamespace, client.MatchingLabels{target.ComponentLabel: target.FabricComponent})
	if apierrors.IsForbidden(err) {
		return nil
	}
	if err != nil {
		return err
	}
	agents = slices.DeleteFunc(agents, func(p agentPod) bool { return p.pod.Status.Phase != corev1.PodRunning || p.why != "" })
	address := string(fabric.Spec.Interface.Gateway.IP)
	askAll(agents, func(p *agentPod) {
		out, said, err := p.run(ctx, streams, fabricProgram, reachCommand, address)
		p.deaf = said
		if err == nil && !strings.HasPrefix(out, address+" "+agent.Reached) {
			p.sick = strings.TrimSpace(out)
		}
	})
	e.asked, e.silent = nil, nil
	for i := range agents {
		if node := agents[i].pod.Spec.NodeName; agents[i].deaf == "" {
			e.asked = append(e.asked, node)
			if agents[i].sick != "" {
				e.silent = append(e.silent, node)
			}
		}
	}
	return nil
}

// String says which nodes get no answer; nothing if all do.
func (e *end) String() string {
	if len(e.silent) == 0 {
		return ""
	}
	slices.Sort(e.silent)
	named := strings.Join(e.silent[:min(len(e.silent), atOnce)], ", ")
	return fmt.Sprintf("the gateway to %s does not answer %d of %d nodes of cluster %s through the overlay (UDP %d): %s", e.peer,
		len(e.silent), len(e.asked), e.id, e.port, named)
}

// sum says which nodes of some clusters get no answer.
func sum(ends []*end) string {
	var all []string
	for _, e := range ends {
		if text := e.String(); text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; ")
}
