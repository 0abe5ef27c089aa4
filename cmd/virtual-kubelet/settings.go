package main

import (
	"context"
	"slices"
	"sync"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// settings combines what the VirtualNode and its VkOptionsTemplate say, and passes it on whenever either changes: nothing of
// it needs a restart. Until both were read, what the flags say is in force.
type settings struct {
	k *kubelet

	mu       sync.Mutex
	node     *offloadingv1beta1.VirtualNode
	template *offloadingv1beta1.VkOptionsTemplate
	source   templateKey
	stop     context.CancelFunc
}

// templateKey is a VkOptionsTemplate's namespace and name.
type templateKey struct{ namespace, name string }

// templateOf is the VkOptionsTemplate that a VirtualNode names, or the default one.
func templateOf(vn *offloadingv1beta1.VirtualNode, liqoNamespace string) templateKey {
	key := templateKey{namespace: liqoNamespace, name: offloadingv1beta1.DefaultVkOptionsTemplate}
	if ref := vn.Spec.VkOptionsTemplateRef; ref != nil && ref.Name != "" {
		key.name = ref.Name
		if ref.Namespace != "" {
			key.namespace = ref.Namespace
		}
	}
	return key
}

// setNode takes a new version of the VirtualNode, and follows the template that it names.
func (s *settings) setNode(ctx context.Context, vn *offloadingv1beta1.VirtualNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = vn
	if key := templateOf(vn, s.k.flags.liqoNamespace); key != s.source {
		if s.stop != nil {
			s.stop()
		}
		s.source, s.template = key, nil
		var following context.Context
		following, s.stop = context.WithCancel(ctx)
		go watchOne(following, s.k.watching, &offloadingv1beta1.VkOptionsTemplate{}, &offloadingv1beta1.VkOptionsTemplateList{},
			key.namespace, key.name, func(t *offloadingv1beta1.VkOptionsTemplate) { s.setTemplate(following, key, t) })
	}
	s.apply(ctx)
}

func (s *settings) setTemplate(ctx context.Context, from templateKey, t *offloadingv1beta1.VkOptionsTemplate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from != s.source {
		return
	}
	s.template = t
	s.apply(ctx)
}

// apply passes on what is known. The caller locks.
func (s *settings) apply(ctx context.Context) {
	not := notReflected(s.node, s.template)
	s.k.mirror.setNotReflected(not)
	if s.template != nil {
		for _, kind := range reflection.Kinds() {
			s.k.mirror.setConfig(kind.Name, s.k.flags.kind(kind.Name, s.template))
		}
		s.k.employStorage(int(s.k.flags.reflectors.config(claimKind, s.template).NumWorkers))
		s.k.events.SetConfig(s.k.flags.reflectors.config(eventKind, s.template))
		s.k.node.setWorkers(workers{
			pods: int(s.k.flags.reflectors.config(podKind, s.template).NumWorkers), tokens: int(s.k.flags.reflectors.config(tokenKind, s.template).NumWorkers),
		})
	}
	s.k.setStorage(s.node, not)
	s.k.node.setVirtualNode(ctx, s.node, not)
}

// notReflected are the keys that stay at home: what the VirtualNode's patch names, and what the template names.
func notReflected(vn *offloadingv1beta1.VirtualNode, t *offloadingv1beta1.VkOptionsTemplate) reflection.NotReflected {
	var not reflection.NotReflected
	if patch := vn.Spec.OffloadingPatch; patch != nil {
		not.Labels, not.Annotations = patch.LabelsNotReflected, patch.AnnotationsNotReflected
	}
	if t != nil {
		not.Labels = union(not.Labels, t.Spec.LabelsNotReflected)
		not.Annotations = union(not.Annotations, t.Spec.AnnotationsNotReflected)
	}
	return not
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
