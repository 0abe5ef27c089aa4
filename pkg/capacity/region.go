package capacity

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
)

// maxNodeLabels is how many labels a slice may choose nodes by.
const maxNodeLabels = 16

// ParseNodes reads the labels of the nodes that a slice uses, such as kubernetes.io/arch=arm64,pool=spot. Empty are those of all nodes.
func ParseNodes(text string) (labels.Set, error) {
	nodes, err := labels.ConvertSelectorToLabelsMap(text, field.WithPath(field.NewPath("label")))
	if err != nil {
		return nil, fmt.Errorf("the node selector is not like key=value,key=value: %w", err)
	}
	if len(nodes) > maxNodeLabels {
		return nil, fmt.Errorf("the node selector has %d labels, and may have at most %d", len(nodes), maxNodeLabels)
	}
	if nodes.Has(corev1.LabelHostname) {
		return nil, fmt.Errorf("the node selector names a node by %s: a slice takes pools of nodes, by labels that they share", corev1.LabelHostname)
	}
	if len(nodes) == 0 {
		return nil, nil
	}
	return nodes, nil
}

// region is the nodes that a slice may use.
type region struct {
	extents map[corev1.ResourceName]*extent
	platform
	// hosts are known of certain nodes only; inside are the selectors whose nodes are all among these, its own included, set by nest.
	hosts  map[*host]bool
	inside map[string]bool
}

// platform is what nodes have in common, as far as they do.
type platform struct {
	os, arch string
	known    bool
}

func (p *platform) add(h *host) {
	if !p.known {
		p.os, p.arch, p.known = h.os, h.arch, true
	}
	if h.os != p.os {
		p.os = ""
	}
	if h.arch != p.arch {
		p.arch = ""
	}
}

// extent is one resource of a region.
type extent struct {
	// total is allocatable, used is requested by pods, most is left on one node.
	total, used, most int64
	// own is what the pods of each slice take.
	own map[Owner]int64
}

func (e *extent) free() int64 { return e.total - e.used }

// freeFor is what a consumer could use: what is free, and what its pods take already.
func (e *extent) freeFor(consumer string) int64 {
	free := e.free()
	for of, value := range e.own {
		if of.Consumer == consumer {
			free += value
		}
	}
	return free
}

// extent of a resource; an empty one if no node has it.
func (r *region) extent(name corev1.ResourceName) *extent {
	if e := r.extents[name]; e != nil {
		return e
	}
	return &extent{}
}

// everywhere is the region of all nodes that take pods, by the sums that are kept of them.
func (p *Pool) everywhere() *region {
	r := &region{extents: make(map[corev1.ResourceName]*extent, len(p.tallies))}
	for name, t := range p.tallies {
		e := &extent{total: t.total, used: t.used, own: map[Owner]int64{}}
		if len(t.most) > 0 {
			e.most = t.most[0].free()
		}
		r.extents[name] = e
	}
	for of, o := range p.owners {
		for t, value := range o.counted {
			r.extents[t.name].own[of] = value
		}
	}
	for _, h := range p.hosts {
		if h.counts {
			r.add(h)
		}
	}
	return r
}

// regionOf is the region of the nodes with certain labels, added up anew.
func regionOf(hosts map[string]*host, nodes labels.Set) *region {
	r, selector := &region{extents: map[corev1.ResourceName]*extent{}, hosts: map[*host]bool{}}, nodes.AsSelectorPreValidated()
	at := func(name corev1.ResourceName) *extent {
		if r.extents[name] == nil {
			r.extents[name] = &extent{own: map[Owner]int64{}}
		}
		return r.extents[name]
	}
	for _, h := range hosts {
		if !h.counts || !selector.Matches(h.labels) {
			continue
		}
		r.hosts[h] = true
		r.add(h)
		for _, s := range h.stocks {
			e := at(s.of.name)
			e.total, e.used, e.most = e.total+s.has, e.used+s.used, max(e.most, s.free())
		}
		for _, one := range h.owned {
			at(one.of.name).own[one.by.of] += one.value
		}
	}
	return r
}

// nodes says what those of a region are: of each resource, the most that is left on one of them, all pods counted, because a pod that asks
// for more has to wait; and what they have in common.
func (r *region) nodes() authv1beta1.ProviderNodes {
	nodes := authv1beta1.ProviderNodes{LargestPod: corev1.ResourceList{}, OperatingSystem: r.os, Architecture: r.arch}
	for name, e := range r.extents {
		// However many pods a node takes, one is one.
		if e.total > 0 && name != corev1.ResourcePods {
			nodes.LargestPod[name] = amountOf(name, readable(name, max(0, e.most)))
		}
	}
	return nodes
}

// nest finds out which regions of certain nodes lie inside which.
func nest(regions map[string]*region) {
	for all, outer := range regions {
		outer.inside = map[string]bool{}
		for some, inner := range regions {
			outer.inside[some] = all != "" && some != "" && !slices.ContainsFunc(slices.Collect(maps.Keys(inner.hosts)), func(h *host) bool { return !outer.hosts[h] })
		}
	}
}

// Within tells whether all nodes with some labels have others as well.
func Within(nodes []corev1.Node, some, others labels.Set) bool {
	inner, outer := some.AsSelectorPreValidated(), others.AsSelectorPreValidated()
	return !slices.ContainsFunc(nodes, func(n corev1.Node) bool {
		return inner.Matches(labels.Set(n.Labels)) && !outer.Matches(labels.Set(n.Labels))
	})
}
