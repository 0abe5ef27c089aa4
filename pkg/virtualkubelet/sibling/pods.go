package sibling

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/kubernetes"

	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/reflection"
)

// Options of Pods.
type Options struct {
	// Local is the reflection account's client of this cluster.
	Local kubernetes.Interface
	// Changed is called when the answer about an object may have changed, or, with empty kind and name, the answers about all
	// objects of a namespace. It may call Uses.
	Changed func(namespace, kind, name string)
}

// Pods knows the pods of siblings. Make it with New; all methods may be called at any time from anywhere.
type Pods struct {
	options Options
	// wake says that there may be something to open or to close.
	wake signal.Signal
	// followed is whose pods matter; nil until Follow was called: until then nobody knows the siblings.
	followed atomic.Pointer[followed]

	mu    sync.Mutex
	views map[place]*view
}

// followed are virtual nodes, and the namespaces in which their pods matter.
type followed struct{ nodes, namespaces []string }

// place is where pods are: in a namespace and on a virtual node.
type place struct{ namespace, node string }

// New checks the options. Nothing happens before Run.
func New(o Options) (*Pods, error) {
	if o.Local == nil || o.Changed == nil {
		return nil, errors.New("making what knows the pods of other virtual nodes: the local client and the function to call must be given")
	}
	return &Pods{options: o, wake: signal.New(), views: map[place]*view{}}, nil
}

// Follow says which other virtual nodes the provider has, and the namespaces in which their pods are of interest: none while
// nobody wants to know. It does not block, and calls nobody: whoever changes the nodes knows that all answers may have changed.
func (p *Pods) Follow(nodes, namespaces []string) {
	p.followed.Store(&followed{slices.Clone(nodes), slices.Clone(namespaces)})
	p.wake.Raise()
}

// Run watches until ctx ends, and returns when everything that it started has ended.
func (p *Pods) Run(ctx context.Context) error {
	var group sync.WaitGroup
	defer group.Wait()
	for {
		p.align(ctx, &group)
		select {
		case <-ctx.Done():
			return nil
		case <-p.wake:
		}
	}
}

// align opens the views that are wanted and missing, and closes the others.
func (p *Pods) align(ctx context.Context, group *sync.WaitGroup) {
	wanted := map[place]bool{}
	if now := p.followed.Load(); now != nil {
		for _, namespace := range now.namespaces {
			for _, node := range now.nodes {
				wanted[place{namespace, node}] = true
			}
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for at, v := range p.views {
		if !wanted[at] {
			v.cancel()
			delete(p.views, at)
		}
	}
	for at := range wanted {
		if p.views[at] == nil {
			v := newView(ctx, p.options, at)
			p.views[at] = v
			group.Go(v.run)
		}
	}
}

// Uses tells whether a pod on a sibling uses an object, a ConfigMap or a Secret of the pod's namespace, and whether that is
// known. Without siblings nothing is used.
func (p *Pods) Uses(namespace, kind, name string) (used, known bool) {
	now := p.followed.Load()
	if now == nil {
		return false, false
	}
	known = true
	views := make([]*view, 0, len(now.nodes))
	p.mu.Lock()
	for _, node := range now.nodes {
		v := p.views[place{namespace, node}]
		if v == nil {
			known = false
			continue
		}
		views = append(views, v)
	}
	p.mu.Unlock()
	object := reflection.Reference{Kind: kind, Name: name}
	for _, v := range views {
		if v.uses(object) {
			return true, true
		}
		known = known && v.certain()
	}
	return false, known
}
