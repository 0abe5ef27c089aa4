package settings

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watching"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

// Options of a Source. All fields must be given; functions do not block.
type Options struct {
	// Client of this cluster, with the reflection account.
	Client client.WithWatch
	// TenantNamespace holds the VirtualNode and the NamespaceMap.
	TenantNamespace string
	// Home are the namespaces that are never offloaded; VkOptionsTemplates are in Liqo's if nobody says otherwise.
	Home placement.HomeNamespaces
	// Node is the VirtualNode, Provider its provider, by whose ID the NamespaceMap is called.
	Node, Provider string
	// Reflectors are the flags, which win.
	Reflectors *Reflectors
	// Siblings is called with all VirtualNodes of the namespace, before Changed.
	Siblings func([]*offloadingv1beta1.VirtualNode)
	// Changed is called with what is in force.
	Changed func(context.Context, Settings)
	// Mapped is called with which namespaces are offloaded, once it was said what is in force.
	Mapped func(pod.Mapping)
	// Skipped is called when the annotations of some namespace changed.
	Skipped func()
}

// Source reads what this cluster says. Make it with New.
type Source struct {
	options Options
	// follow calls its function with each version of a template, until the context ends.
	follow func(context.Context, templateKey, func(*offloadingv1beta1.VkOptionsTemplate))
	// known is closed once the settings were passed on.
	known chan struct{}
	first sync.Once
	// mapping is the last one that was read.
	mapping atomic.Pointer[pod.Mapping]

	mu   sync.Mutex
	node *offloadingv1beta1.VirtualNode
	// template is the one in force: that of source, or the one before as long as that was not read.
	template *offloadingv1beta1.VkOptionsTemplate
	source   templateKey
	stop     context.CancelFunc
}

// New takes the options. Nothing is read before Run.
func New(o Options) *Source {
	return &Source{options: o, known: make(chan struct{}),
		follow: func(ctx context.Context, from templateKey, set func(*offloadingv1beta1.VkOptionsTemplate)) {
			watching.One(ctx, o.Client, &offloadingv1beta1.VkOptionsTemplate{}, &offloadingv1beta1.VkOptionsTemplateList{}, from.namespace, from.name, set)
		}}
}

// Run reads, and passes on, until the context ends.
func (s *Source) Run(ctx context.Context) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { s.followMap(ctx) })
	watching.All(ctx, s.options.Client, &offloadingv1beta1.VirtualNode{}, &offloadingv1beta1.VirtualNodeList{},
		s.options.TenantNamespace, func(all []*offloadingv1beta1.VirtualNode) {
			s.options.Siblings(all)
			if i := slices.IndexFunc(all, func(vn *offloadingv1beta1.VirtualNode) bool { return vn.Name == s.options.Node }); i >= 0 {
				s.setNode(ctx, all[i])
			}
		})
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
func (s *Source) setNode(ctx context.Context, vn *offloadingv1beta1.VirtualNode) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node = vn
	if key := templateOf(vn, s.options.Home.Liqo); key != s.source {
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

func (s *Source) setTemplate(ctx context.Context, from templateKey, t *offloadingv1beta1.VkOptionsTemplate) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if from != s.source {
		return
	}
	s.template = t
	s.pass(ctx)
}

// pass passes on what is known. The caller locks.
func (s *Source) pass(ctx context.Context) {
	if s.template == nil {
		klog.FromContext(ctx).Info("Nothing crosses before the VkOptionsTemplate is read", "namespace", s.source.namespace, "name", s.source.name)
		return
	}
	s.options.Changed(ctx, s.options.Reflectors.Settings(s.node, s.template))
	s.first.Do(func() { close(s.known) })
}
