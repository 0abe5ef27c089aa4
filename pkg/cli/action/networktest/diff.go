package networktest

import (
	"context"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
)

// Difference is how the kernel for one agent differs from what that wants.
type Difference struct {
	// Cluster, Pod and Node of the agent.
	Cluster string `json:"cluster"`
	Pod     string `json:"pod"`
	Node    string `json:"node"`
	// Lines are what is wanted and not there (-), and what is there and not wanted (+).
	Lines string `json:"lines,omitempty"`
	// Unknown says why it is not known.
	Unknown string `json:"unknown,omitempty"`
}

// again is after how long agents that were told to repair are asked once more, times how often.
const (
	again = time.Second
	times = 10
)

// Diff asks all agents of a cluster, and of others, how the kernel differs from what they want. What does not differ is left out.
func Diff(ctx context.Context, o Options) ([]Difference, error) {
	ctx, cancel := o.limited(ctx)
	defer cancel()
	var all []Difference
	for _, c := range append([]*target.Cluster{o.Local}, o.Remotes...) {
		installation, err := c.RequireInstalled(ctx)
		if err != nil {
			return nil, err
		}
		nodes, err := agentPods(ctx, c, c.LiqoNamespace, client.MatchingLabels{target.ComponentLabel: target.FabricComponent})
		if err != nil {
			return nil, err
		}
		gateways, err := agentPods(ctx, c, "", client.MatchingLabels{networkingv1beta1.GatewayComponentLabel: gatewayComponent})
		if err != nil {
			return nil, err
		}
		// A consumer's pod may have this label, too. In tenant namespaces, of whose names there are no others, it has none.
		gateways = slices.DeleteFunc(gateways, func(p agentPod) bool { return !strings.HasPrefix(p.pod.Namespace, corev1beta1.TenantNamespacePrefix) })
		for _, group := range []struct {
			pods    []agentPod
			program string
		}{{nodes, fabricProgram}, {gateways, gatewayProgram}} {
			askAll(group.pods, func(p *agentPod) { p.differ(ctx, o.streams(c), group.program, o.Repair) })
			for _, p := range group.pods {
				if p.diff != "" || p.deaf != "" {
					all = append(all, Difference{installation.ClusterID, p.pod.Namespace + "/" + p.pod.Name, p.pod.Spec.NodeName, p.diff, p.deaf})
				}
			}
		}
	}
	return slices.Clip(all), nil
}

// differ asks one agent, and has it repair what differs.
func (p *agentPod) differ(ctx context.Context, streams Streams, program string, repair bool) {
	p.ask(ctx, streams, program)
	if p.why != "" && p.deaf == "" && p.sick == "" && p.diff == "" {
		p.deaf = "it is not ready: " + p.why
	}
	if !repair || p.diff == "" {
		return
	}
	if _, said, err := p.run(ctx, streams, program, "repair"); err != nil {
		p.deaf = said
		return
	}
	for range times {
		select {
		case <-ctx.Done():
			return
		case <-time.After(again):
		}
		p.diff = ""
		if p.ask(ctx, streams, program); p.diff == "" {
			return
		}
	}
}
