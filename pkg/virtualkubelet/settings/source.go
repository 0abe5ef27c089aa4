package settings

import (
	"context"
	"slices"
	"sync"

	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/watching"
	"liqo.io/liqo/pkg/placement"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
)

// Options of a Source. All fields must be given.
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
}

// View is what this cluster says, as of now.
type View struct {
	// Settings are those in force: of the flags alone before VirtualNode and template were read.
	Settings
	// VirtualNodes are all of the tenant namespace; none before the own one was read.
	VirtualNodes []*offloadingv1beta1.VirtualNode
	// Mapping says which namespaces are offloaded. It is not known before the settings are.
	Mapping pod.Mapping
	// Skipped is another one whenever the annotations of some namespace are. A right to watch namespaces would be one to watch all of them, so the
	// controller manager says on the NamespaceMap that something changed, and what changed is read one by one.
	Skipped string
}

// Source reads what this cluster says. Make it with New.
type Source struct {
	// View is what was read.
	View    *latest.Value[View]
	options Options
	// follow calls its function with each version of a template, until the context ends.
	follow func(context.Context, templateKey, func(*offloadingv1beta1.VkOptionsTemplate))

	// Only who changes the View uses these: node is the last VirtualNode, template the one in force: that of source, or the one before as long as
	// that was not read.
	node     *offloadingv1beta1.VirtualNode
	template *offloadingv1beta1.VkOptionsTemplate
	source   templateKey
	stop     context.CancelFunc
}

// New takes the options. Nothing is read before Run.
func New(o Options) *Source {
	return &Source{options: o, View: latest.New(View{Settings: o.Reflectors.Settings(nil, nil)}),
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
			if i := slices.IndexFunc(all, func(vn *offloadingv1beta1.VirtualNode) bool { return vn.Name == s.options.Node }); i >= 0 {
				s.View.Change(func(v *View) {
					v.VirtualNodes = all
					s.readNode(ctx, v, all[i])
				})
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

// readNode takes a new version of the VirtualNode, and follows the template that it names.
func (s *Source) readNode(ctx context.Context, v *View, vn *offloadingv1beta1.VirtualNode) {
	s.node = vn
	if key := templateOf(vn, s.options.Home.Liqo); key != s.source {
		if s.stop != nil {
			s.stop()
		}
		s.source = key
		var following context.Context
		following, s.stop = context.WithCancel(ctx)
		go s.follow(following, key, func(t *offloadingv1beta1.VkOptionsTemplate) {
			s.View.Change(func(v *View) { s.readTemplate(ctx, v, key, t) })
		})
	}
	s.settle(ctx, v)
}

func (s *Source) readTemplate(ctx context.Context, v *View, from templateKey, t *offloadingv1beta1.VkOptionsTemplate) {
	if from != s.source {
		return
	}
	s.template = t
	s.settle(ctx, v)
}

// settle puts in force what is known.
func (s *Source) settle(ctx context.Context, v *View) {
	if s.template == nil {
		klog.FromContext(ctx).Info("Nothing crosses before the VkOptionsTemplate is read", "namespace", s.source.namespace, "name", s.source.name)
		return
	}
	v.Settings = s.options.Reflectors.Settings(s.node, s.template)
}
