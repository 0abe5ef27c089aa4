package pod

import (
	"context"
	"errors"
	"maps"
	"sync"

	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/peer"
)

// link is one period of connection to the provider, an epoch of the peer. With the next all caches are filled afresh: what an old one says
// may be long past.
type link struct {
	epoch   int64
	clients peer.Clients
	ctx     context.Context
	cancel  context.CancelFunc
	group   *sync.WaitGroup
	// twins that are watched, by local namespace.
	twins map[string]*twin
	// surveyed are the twins that were looked at for ShadowPods, or are being looked at, by local namespace; held are those that
	// had some.
	surveyed map[string]string
	held     map[string]bool
	// shut are the local namespaces whose twins are not watched for a while, because they held more than is accepted.
	shut map[string]bool
}

// keepLink opens and closes the link and its twins as the state of the peer and the mapping say.
func (r *Reconciler) keepLink(ctx context.Context) {
	defer r.closeLink()
	for {
		r.alignLink(ctx)
		select {
		case <-ctx.Done():
			return
		case <-r.reconnect:
		}
	}
}

func (r *Reconciler) alignLink(ctx context.Context) {
	state := r.options.Peer.State()
	r.mu.Lock()
	current := r.link
	r.mu.Unlock()
	if current != nil && (!state.Connected || current.epoch != state.Epoch) {
		r.closeLink()
		current = nil
	}
	if !state.Connected {
		return
	}
	if current == nil {
		clients, err := r.options.Peer.Clients()
		if err != nil {
			if !errors.Is(err, peer.ErrNotConnected) {
				klog.FromContext(ctx).Error(err, "The provider's clients cannot be had")
			}
			return
		}
		current = &link{epoch: state.Epoch, clients: clients, group: &sync.WaitGroup{},
			twins: map[string]*twin{}, shut: map[string]bool{}, surveyed: map[string]string{}, held: map[string]bool{}}
		current.ctx, current.cancel = context.WithCancel(ctx)
		r.mu.Lock()
		r.link = current
		// The caches are filled after this, so they hold whatever was made before.
		clear(r.memory.created)
		clear(r.memory.removed)
		r.mu.Unlock()
	}
	r.alignTwins(current)
}

func (r *Reconciler) closeLink() {
	r.mu.Lock()
	current := r.link
	r.link = nil
	r.mu.Unlock()
	if current != nil {
		current.cancel()
		current.group.Wait()
	}
}

// alignTwins watches those twins of the effective mapping that pods were bound to the node for, or that hold ShadowPods from
// before, and no others. One that is watched stays so, also while the provider removes it: how its pods end is seen there.
func (r *Reconciler) alignTwins(l *link) {
	r.mu.Lock()
	mapping := r.options.Wanted.Get().Mapping
	wanted := mapping.Effective
	ended := endTwins(l, mapping)
	for namespace, remote := range l.surveyed {
		if wanted[namespace] != remote {
			delete(l.surveyed, namespace)
			delete(l.held, namespace)
		}
	}
	maps.DeleteFunc(l.shut, func(namespace string, _ bool) bool { return wanted[namespace] == "" })
	var opened []*twin
	for namespace, remote := range wanted {
		switch {
		case l.twins[namespace] != nil, l.shut[namespace]:
		case r.used[namespace] || l.held[namespace]:
			t := newTwin(l, namespace, remote, r)
			l.twins[namespace] = t
			opened = append(opened, t)
		case l.surveyed[namespace] != remote:
			l.surveyed[namespace] = remote
			l.group.Go(func() { r.survey(l, namespace, remote) })
		}
	}
	r.mu.Unlock()
	for _, t := range ended {
		t.cancel()
	}
	for _, t := range opened {
		l.group.Go(func() { t.run() })
	}
}

// endTwins takes away those twins that are not wanted any more, and returns them. The caller holds the lock.
func endTwins(l *link, mapping Mapping) []*twin {
	var ended []*twin
	for namespace, t := range l.twins {
		wanted := mapping.Effective[namespace]
		leaving := wanted == "" && mapping.Leaving[namespace]
		if !leaving && (wanted != t.remote || t.leaving) {
			ended = append(ended, t)
			delete(l.twins, namespace)
		}
		t.leaving = t.leaving || leaving
	}
	return ended
}
