package main

import (
	"context"
	"slices"
	"sync"

	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// settings combines what the VirtualNode and its VkOptionsTemplate say, and passes it on whenever either changes: nothing of
// it needs a restart. Before both were read nothing is passed on, and nothing may cross: they say what has to stay at home.
type settings struct {
	liqoNamespace string
	// follow calls its function with each version of a template, until the context ends.
	follow func(context.Context, templateKey, func(*offloadingv1beta1.VkOptionsTemplate))
	// changed takes both.
	changed func(context.Context, *offloadingv1beta1.VirtualNode, *offloadingv1beta1.VkOptionsTemplate)
	// known is closed once both were passed on.
	known chan struct{}

	mu   sync.Mutex
	node *offloadingv1beta1.VirtualNode
	// template is the one in force: that of source, or the one before as long as that was not read.
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
	if key := templateOf(vn, s.liqoNamespace); key != s.source {
		if s.stop != nil {
			s.stop()
		}
		s.source = key
		var following context.Context
		following, s.stop = context.WithCancel(ctx)
		go s.follow(following, key, func(t *offloadingv1beta1.VkOptionsTemplate) { s.setTemplate(ctx, key, t) })
	}
	s.pass(ctx)
}

func (s *settings) setTemplate(ctx context.Context, from templateKey, t *offloadingv1beta1.VkOptionsTemplate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from != s.source {
		return
	}
	s.template = t
	s.pass(ctx)
}

// pass passes on what is known. The caller locks.
func (s *settings) pass(ctx context.Context) {
	if s.template == nil {
		klog.FromContext(ctx).Info("Nothing crosses before the VkOptionsTemplate is read", "namespace", s.source.namespace, "name", s.source.name)
		return
	}
	s.changed(ctx, s.node, s.template)
	closeOnce(s.known)
}

// settings are those of the kubelet's VirtualNode.
func (k *kubelet) settings() *settings {
	return &settings{
		liqoNamespace: k.flags.liqoNamespace, changed: k.configure, known: make(chan struct{}),
		follow: func(ctx context.Context, from templateKey, set func(*offloadingv1beta1.VkOptionsTemplate)) {
			watchOne(ctx, k.watching, &offloadingv1beta1.VkOptionsTemplate{}, &offloadingv1beta1.VkOptionsTemplateList{}, from.namespace, from.name, set)
		},
	}
}

// configure tells all parts what the VirtualNode and its template say.
func (k *kubelet) configure(ctx context.Context, vn *offloadingv1beta1.VirtualNode, t *offloadingv1beta1.VkOptionsTemplate) {
	k.peer.Tell(revoked(vn)) // before the node is told anything: a restart is no news
	k.removals.setVirtualNode(vn)
	not := notReflected(vn, t)
	k.mirror.setNotReflected(not)
	for _, kind := range reflection.Kinds() {
		k.mirror.setConfig(kind.Name, k.flags.kind(kind.Name, t))
	}
	k.employStorage(int(k.flags.reflectors.config(claimKind, t).NumWorkers))
	k.events.SetConfig(k.flags.reflectors.config(eventKind, t))
	k.node.setWorkers(workers{
		pods: int(k.flags.reflectors.config(podKind, t).NumWorkers), tokens: int(k.flags.reflectors.config(tokenKind, t).NumWorkers),
	})
	k.setStorage(vn, not)
	k.node.setVirtualNode(ctx, vn, not)
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
