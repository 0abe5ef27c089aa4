package slicegrant

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/controller/authentication/resourceplugin"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// basis is what a slice is granted, before it is known what can be had.
type basis struct {
	// named are quantities; of other resources the percentages offer a share.
	named       corev1.ResourceList
	percentages capacity.Percentages
	// decision of the plugin; nil if there is no plugin.
	decision *resourceplugin.Decision
	at       chosen
}

// chosen are the nodes that a slice is for.
type chosen struct {
	// nodes are their labels; empty if it is for all nodes.
	nodes labels.Set
	// have is what they have.
	have corev1.ResourceList
	// among are all nodes of the cluster.
	among []corev1.Node
}

// all tells whether all nodes with some labels are chosen.
func (c chosen) all(some labels.Set) bool { return capacity.Within(c.among, some, c.nodes) }

// possible is what they could give of what is asked for.
func (c chosen) possible(asked corev1.ResourceList) corev1.ResourceList {
	if len(c.nodes) == 0 {
		return asked
	}
	return capacity.Ceiling{Nodes: c.have}.Possible(asked)
}

// chosen reads off a slice which nodes it is for.
func (r *Reconciler) chosen(s *scope, nodes []corev1.Node) (chosen, error) {
	having, err := capacity.ParseNodes(s.slice.Annotations[authv1beta1.NodeSelectorAnnotation])
	if err != nil {
		return chosen{}, reconcile.Refuse(authv1beta1.ReasonInvalidSlice, err)
	}
	rules := reflection.Rules{NodeLabels: r.options.Policy.NodeLabels}
	if s.quota != nil && s.quota.Annotations[authv1beta1.NodeSelectorAnnotation] == having.String() {
		rules.NodeLabels = []string{"*"} // It was granted so, by other rules: limits and cordons still have to reach it.
	}
	for _, key := range slices.Sorted(maps.Keys(having)) {
		if !rules.MaySelect(key) {
			return chosen{}, reconcile.Refuse(authv1beta1.ReasonInvalidSlice, fmt.Errorf(
				"the node selector has label %s, by which this cluster lets nobody choose nodes; "+
					"its administrator can, with the value offloading.consumers.nodeLabels", key))
		}
	}
	return chosen{nodes: having, have: r.options.Supply.NodesHave(nodes, having), among: nodes}, nil
}

// basis is what the consumer asks for, or the plugin decided.
func (r *Reconciler) basis(ctx context.Context, s *scope, of capacity.Owner, ceiling capacity.Ceiling, at chosen) (basis, error) {
	if r.options.Policy.Plugin == nil {
		asked := maps.Clone(r.options.Policy.DefaultResources)
		if asked == nil {
			asked = corev1.ResourceList{}
		}
		maps.Copy(asked, s.slice.Spec.Resources)
		return basis{named: asked, percentages: r.percentages(s), at: at}, nil
	}
	decision := r.options.Policy.Plugin.Decide(ctx, resourceplugin.Question{Slice: client.ObjectKeyFromObject(s.slice), Of: of,
		Class: string(s.slice.Spec.Class), Asked: s.slice.Spec.Resources, Granted: s.held(), Nodes: at.nodes})
	s.plugin = pluginFailed(decision)
	b, err := decided(decision, s.held(), ceiling)
	b.at = at
	return b, err
}

// percentages are what was said of how much of what is free a slice is offered.
func (r *Reconciler) percentages(s *scope) capacity.Percentages {
	said := r.options.Policy.Shares.percentages()
	p := capacity.Percentages{Chart: said.All}
	if percent, named := said.Classes[string(s.slice.Spec.Class)]; named {
		p.Class = &percent
	}
	if own := s.tenant.Spec.Limits; own != nil {
		p.Tenant = own.SharingPercentage
	}
	return p
}

// decided is what a plugin grants, or what was granted before as long as it has not said anything. What it does not name is not granted, with
// the exception of pods, without which there would be none.
func decided(decision resourceplugin.Decision, held corev1.ResourceList, ceiling capacity.Ceiling) (basis, error) {
	b := basis{named: maps.Clone(decision.Grant), percentages: capacity.Percentages{Class: new(int32)}, decision: &decision}
	if b.named == nil {
		b.named = maps.Clone(held)
	}
	switch trouble := decision.Trouble; {
	case b.named == nil && trouble.Reason != "":
		return basis{}, reconcile.Wait(trouble.Reason, trouble.Message, 0)
	case b.named == nil:
		return basis{}, reconcile.Wait(authv1beta1.ReasonWaitingForPlugin, "waiting for the resource plugin of the provider to decide", 0)
	}
	if _, named := b.named[corev1.ResourcePods]; !named {
		b.named[corev1.ResourcePods], _ = ceiling.Of(corev1.ResourcePods)
	}
	return b, nil
}

// pluginFailed is what a slice is told of a plugin that does not decide; nothing if it does, nil if that is not known.
func pluginFailed(decision resourceplugin.Decision) *outcome {
	switch trouble := decision.Trouble; {
	case trouble.Reason != "":
		return &outcome{"True", trouble.Reason, trouble.Message}
	case decision.Grant != nil:
		return &outcome{}
	default:
		return nil
	}
}

// narrow leaves out what a plugin did not name and nothing runs of.
func (b *basis) narrow(offered corev1.ResourceList) corev1.ResourceList {
	for name, quantity := range offered {
		if _, named := b.named[name]; b.decision != nil && !named && quantity.IsZero() {
			delete(offered, name)
		}
	}
	return offered
}

// said is what a slice is told of its grant; empty is what it was told before.
func (b *basis) said(granted corev1.ResourceList) string {
	if len(b.at.have) == 0 && len(b.at.nodes) > 0 {
		return fmt.Sprintf("no node of the provider that takes pods has the labels %s: nothing can be had until one has", b.at.nodes)
	}
	by := "asked for"
	if b.decision != nil {
		by = "the resource plugin of the provider decided"
	}
	if less := capacity.Less(granted, b.named); len(less) > 0 {
		names := make([]string, 0, len(less))
		for _, name := range less {
			names = append(names, string(name))
		}
		return fmt.Sprintf("the resources were granted, but less %s than %s: all slices of this consumer together get what the provider's nodes have, "+
			"or what its administrator set", strings.Join(names, ", "), by)
	}
	for name := range granted {
		if _, named := b.named[name]; !named && b.decision == nil {
			return fmt.Sprintf("the resources were granted: of those that it asks for no quantity of, %d %% of what is free", b.percentages.Closest())
		}
	}
	switch {
	case b.decision == nil:
		return "the resources were granted"
	case b.decision.Grant == nil:
		return ""
	case b.decision.Words == "":
		return "the resources were granted as " + by
	default:
		return "the resources were granted as " + by + ": " + b.decision.Words
	}
}
