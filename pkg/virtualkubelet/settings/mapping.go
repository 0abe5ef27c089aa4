package settings

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watching"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

// mappingOf is what a NamespaceMap says: the local intent, and the part of it that the provider acknowledged. Namespaces that are never
// offloaded are not intended, whoever wrote them into the map.
func mappingOf(m *offloadingv1beta1.NamespaceMap, home placement.HomeNamespaces) pod.Mapping {
	if placement.IsPeersMap(m) {
		return pod.Mapping{} // What the peer wants here says nothing of what is wanted there.
	}
	desired := maps.Clone(m.Spec.DesiredMapping)
	maps.DeleteFunc(desired, func(namespace, _ string) bool { return home.WhyNeverOffloaded(namespace, nil) != "" })
	return pod.Mapping{
		Known: true, Desired: desired,
		Effective: placement.EffectiveMapping(desired, m.Status.CurrentMapping),
		Leaving:   placement.LeavingTwins(desired, m.Status.CurrentMapping),
	}
}

// followMap tells which namespaces are offloaded, once the settings are known, until the context ends.
func (s *Source) followMap(ctx context.Context) {
	if !s.View.Until(ctx, func(v View) bool { return v.Node != nil }) {
		return
	}
	watching.One(ctx, s.options.Client, &offloadingv1beta1.NamespaceMap{}, &offloadingv1beta1.NamespaceMapList{},
		s.options.TenantNamespace, s.options.Provider, func(m *offloadingv1beta1.NamespaceMap) {
			mapping := mappingOf(m, s.options.Home)
			if !mapping.Known {
				return
			}
			s.View.Change(func(v *View) {
				v.Mapping, v.Skipped = mapping, m.Annotations[offloadingv1beta1.SkippedNamespacesAnnotation]
			})
		})
}

// Offloaded reads the NamespaceMap past the cache. Without one nothing is concluded.
func (s *Source) Offloaded(ctx context.Context, namespace string) (bool, error) {
	name := client.ObjectKey{Namespace: s.options.TenantNamespace, Name: s.options.Provider}
	m := &offloadingv1beta1.NamespaceMap{}
	if err := s.options.Client.Get(ctx, name, m); err != nil {
		return false, fmt.Errorf("reading NamespaceMap %s: %w", name, err)
	}
	mapping := mappingOf(m, s.options.Home)
	if !mapping.Known {
		return false, fmt.Errorf("reading NamespaceMap %s: it is the peer's, for the other direction", name)
	}
	return mapping.Desired[namespace] != "", nil
}

// Rights are those that the provider grants the virtual kubelet as long as it has twins there.
func (s *Source) Rights() []peer.Right {
	var rights []peer.Right
	for _, twin := range slices.Sorted(maps.Values(s.View.Get().Mapping.Effective)) {
		rights = append(rights, peer.Right{Namespace: twin, Verb: "list", Group: offloadingv1beta1.GroupVersion.Group, Resource: "shadowpods"})
	}
	return rights
}
