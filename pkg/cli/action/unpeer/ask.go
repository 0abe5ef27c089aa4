package unpeer

import (
	"context"
	"fmt"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/authenticate"
	"liqo.io/liqo/pkg/cli/action/network"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/residue"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/cli/volume"
)

// requireRights checks that the user may do, in both clusters, everything that is going to be done there. Whatever is found to be
// missing later leaves a peering that is half undone.
func requireRights(ctx context.Context, o Options, pair *target.Pair, mutual bool) error {
	if err := pair.Consumer.RequireRights(ctx, offloaded.Rights(pair.ProviderID, "")); err != nil {
		return err
	}
	if !mutual {
		if err := network.RequirePartRights(ctx, pair.Consumer, pair.ProviderID); err != nil {
			return err
		}
		if err := network.RequirePartRights(ctx, pair.Provider, pair.ConsumerID); err != nil {
			return err
		}
	}
	volumes, err := volume.At(ctx, pair.Consumer, pair.ProviderID, "")
	if err != nil {
		return err
	}
	if len(volumes) > 0 && !o.DeleteVolumes {
		return volume.Refuse(volumes, "unpeering from "+pair.ProviderID)
	}
	consumer := leaveRights(pair)
	if len(volumes) > 0 {
		consumer = append(consumer, target.Rights(offloadingv1beta1.GroupVersion.Group, "virtualnodes", pair.ConsumerNamespace(), "patch")...)
	}
	for _, v := range volumes {
		consumer = append(consumer, target.Rights("", "persistentvolumeclaims", v.Claim.Namespace, "get", "delete")...)
	}
	var provider []target.Right
	if o.DeleteNamespaces {
		consumer = append(consumer, target.Rights("", "namespaces", "", "get", "delete")...)
		provider = append(provider, target.Rights("", "namespaces", "", "get", "delete")...)
	}
	if !o.NoWait && !mutual {
		for _, side := range []struct {
			cluster *target.Cluster
			rights  *[]target.Right
		}{{pair.Consumer, &consumer}, {pair.Provider, &provider}} {
			reading, err := residue.PeerRights(side.cluster)
			if err != nil {
				return err
			}
			*side.rights = append(*side.rights, reading...)
		}
	}
	return authenticate.RequireSeparateRights(ctx, pair, consumer, provider)
}

// leaveRights are what leaveProvider needs.
func leaveRights(pair *target.Pair) []target.Right {
	namespace, auth := pair.ConsumerNamespace(), authv1beta1.GroupVersion.Group
	rights := target.Rights(auth, "resourceslices", namespace, "list", "get", "patch", "delete")
	for _, kind := range []struct{ group, resource string }{
		{offloadingv1beta1.GroupVersion.Group, "virtualnodes"}, {offloadingv1beta1.GroupVersion.Group, "namespacemaps"},
		{auth, "renews"}, {auth, "identities"},
	} {
		rights = append(rights, target.Rights(kind.group, kind.resource, namespace, "list", "get", "delete")...)
	}
	return rights
}

// ask says what goes with the peering, and asks whether to go on.
func ask(ctx context.Context, o Options, pair *target.Pair) error {
	if o.Confirm == nil {
		return nil
	}
	holdings, err := offloaded.At(ctx, pair.Consumer, pair.ProviderID, "")
	if err != nil {
		return err
	}
	return o.Confirm(ctx, Question(pair, holdings))
}

// Question says what goes with a peering.
func Question(pair *target.Pair, holdings *offloaded.Holdings) string {
	var goes []string
	if len(holdings.Pods) > 0 {
		goes = append(goes, "evicts "+offloaded.Counted("pod", holdings.Pods))
	}
	if len(holdings.Namespaces) > 0 {
		goes = append(goes, "deletes "+holdings.Twins()+" at "+pair.ProviderID+" with everything in "+holdings.Them())
	}
	if claims := holdings.Claims(); len(claims) > 0 {
		goes = append(goes, "deletes the data of "+offloaded.Counted("volume", claims))
	}
	if len(holdings.Nodes) > 0 {
		goes = append(goes, "removes "+offloaded.Counted("virtual node", holdings.Nodes))
	}
	what := fmt.Sprintf("Ending the peering of %s with %s", pair.ConsumerID, pair.ProviderID)
	if len(goes) == 0 {
		return what + " takes nothing with it: nothing of " + pair.ConsumerID + " runs there."
	}
	return what + " " + offloaded.Enumerate(goes) + "."
}

// askForce checks that the user may do all of it, says what goes with a peer that is left from this side alone, and asks whether to go on.
func (s *side) askForce(ctx context.Context, o ForceOptions, home string) error {
	rights, err := s.forceRights(o.DeleteVolumes)
	if err != nil {
		return err
	}
	if err := s.cluster.RequireRights(ctx, rights); err != nil {
		return err
	}
	if err := network.RequirePartRights(ctx, s.cluster, s.peerID); err != nil {
		return err
	}
	if err := s.requireTraces(ctx); err != nil {
		return err
	}
	hosted, err := offloaded.Hosts(ctx, s.cluster, s.peerID)
	if err != nil {
		return err
	}
	if len(hosted.Claims) > 0 && !o.DeleteVolumes {
		return failure.Unmet("copy what you need from there, or add --delete-volumes to lose it",
			"unpeering from %s would delete the data of %s in its namespaces here", s.peerID, offloaded.Counted("volume", hosted.Claims))
	}
	if o.Confirm == nil {
		return nil
	}
	holdings, err := offloaded.At(ctx, s.cluster, s.peerID, "")
	if err != nil {
		return err
	}
	return o.Confirm(ctx, ForceQuestion(home, s.peerID, holdings, hosted, o.DeleteVolumes))
}

// requireTraces refuses the ID of a cluster of which there is nothing here, such as one that is misspelt.
func (s *side) requireTraces(ctx context.Context) error {
	peer, err := s.cluster.ForeignCluster(ctx, s.peerID)
	if err != nil || peer != nil {
		return err
	}
	items, err := residue.OfPeer(ctx, s.cluster, s.peerID, true)
	if err != nil || len(items) > 0 {
		return err
	}
	twins, err := offloaded.Twins(ctx, s.cluster, s.peerID)
	if err != nil || len(twins) > 0 {
		return err
	}
	return s.cluster.NoPeer(ctx, s.peerID)
}

// ForceQuestion says what goes at home if everything of a peer is removed there. Whether the peer works is not known yet; what is in its
// reach only goes if it does.
func ForceQuestion(home, peer string, holdings *offloaded.Holdings, hosted *offloaded.Hosted, deleteVolumes bool) string {
	var goes []string
	if len(holdings.Pods) > 0 {
		goes = append(goes, "removes "+offloaded.Counted("pod", holdings.Pods)+" from its virtual nodes")
	}
	if len(holdings.Namespaces) > 0 {
		goes = append(goes, "gives up "+holdings.Twins()+" there with everything in "+holdings.Them())
	}
	if claims := holdings.Claims(); len(claims) > 0 {
		fate := " (if " + peer + " works, that is refused without --delete-volumes)"
		if deleteVolumes {
			fate = " (if " + peer + " works, it is deleted)"
		}
		goes = append(goes, "gives up the data of "+offloaded.Counted("volume", claims)+fate)
	}
	if len(holdings.Nodes) > 0 {
		goes = append(goes, "removes "+offloaded.Counted("virtual node", holdings.Nodes))
	}
	if len(hosted.Namespaces) > 0 {
		here := "deletes its " + offloaded.Counted("namespace", hosted.Namespaces) + " here"
		if within := hosted.Counted(); within != "" {
			here += " with " + within
		}
		goes = append(goes, here)
	}
	what := fmt.Sprintf("Ending the peering of %s with %s from this side alone", home, peer)
	if len(goes) == 0 {
		return what + " removes all that the two know of each other here; neither runs anything of the other."
	}
	return what + " " + offloaded.Enumerate(goes) + "."
}

// forceRights are what Force needs. What goes is known only later, and so is what is left.
func (s *side) forceRights(deleteVolumes bool) ([]target.Right, error) {
	auth, offloading := authv1beta1.GroupVersion.Group, offloadingv1beta1.GroupVersion.Group
	rights := append(offloaded.Rights(s.peerID, ""), offloaded.HostedRights()...)
	rights = append(rights, target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list", "patch")...)
	for _, kind := range []struct{ group, resource string }{
		{offloading, "virtualnodes"}, {offloading, "namespacemaps"}, {auth, "resourceslices"}, {auth, "renews"}, {auth, "identities"}, {auth, "tenants"},
	} {
		rights = append(rights, target.Rights(kind.group, kind.resource, s.namespace, "list", "get", "patch", "delete")...)
	}
	rights = append(rights, target.Rights("", "namespaces", "", "get", "delete")...)
	rights = append(rights, target.Rights("", "pods", "", "patch")...)
	if deleteVolumes {
		rights = append(rights, target.Rights("", "persistentvolumeclaims", "", "get", "delete")...)
	}
	reading, err := residue.PeerRights(s.cluster)
	return append(rights, reading...), err
}
