package pod

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
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
		for _, s := range r.memory.pods {
			s.made = nil
		}
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

// marks select what was made for pods of this virtual node.
func (r *Reconciler) marks() string {
	return labels.Set{offloadingv1beta1.OriginLabel: r.options.Home, offloadingv1beta1.NodeNameLabel: r.options.Node}.String()
}

// demand has the twin of a pod watched, if it is not. It stays so in later periods of connection: the provider may still work on
// what it was sent in an earlier one.
func (r *Reconciler) demand(pod *corev1.Pod) {
	r.mu.Lock()
	r.used[pod.Namespace] = true
	wanted := r.link != nil && r.options.Wanted.Get().Mapping.Effective[pod.Namespace] != "" && r.link.twins[pod.Namespace] == nil
	r.mu.Unlock()
	if wanted {
		r.reconnect.Raise()
	}
}

// survey looks whether a twin holds ShadowPods of this virtual node although no pod is bound to it, as when the last one went
// while nobody watched. If so the twin is watched. It tries until the twin is known, watched, or no longer wanted.
func (r *Reconciler) survey(l *link, local, remote string) {
	pause := wait.Backoff{Duration: minBackOff, Factor: 2, Jitter: 0.1, Steps: 100, Cap: maxBackOff}
	for l.ctx.Err() == nil {
		found, err := r.holds(l, remote)
		r.mu.Lock()
		over := l.surveyed[local] != remote || l.twins[local] != nil
		if err == nil && found && !over {
			l.held[local] = true
		}
		r.mu.Unlock()
		switch {
		case over, err == nil && !found:
			return
		case err == nil:
			r.reconnect.Raise()
			return
		}
		klog.FromContext(l.ctx).V(1).Info("A twin could not be surveyed", "namespace", local, "twin", remote, "err", err)
		timer := r.options.Clock.NewTimer(pause.Step())
		select {
		case <-l.ctx.Done():
			timer.Stop()
		case <-timer.C():
		}
	}
}

func (r *Reconciler) holds(l *link, remote string) (bool, error) {
	ctx, cancel := context.WithTimeout(l.ctx, surveyTimeout)
	defer cancel()
	list, err := shadowpods.In(l.clients, remote).List(ctx, metav1.ListOptions{LabelSelector: r.marks(), Limit: 1})
	if err != nil {
		return false, fmt.Errorf("listing the ShadowPods in namespace %q of cluster %q: %w", remote, r.options.Remote, err)
	}
	return len(list.Items) > 0, nil
}

// overLimit gives up the watches of a twin that holds more than is accepted, and opens them again later. Until then nothing is made there,
// and nothing is concluded from what is there. The caches of the twin call it, also late: once the link is closed, nobody waits any more for
// what it would start.
func (r *Reconciler) overLimit(l *link, t *twin) {
	t.cancel()
	t.over.Do(func() {
		r.mu.Lock()
		current := r.link == l && l.twins[t.local] == t
		if current {
			delete(l.twins, t.local)
			l.shut[t.local] = true
			timer := r.options.Clock.NewTimer(reconcile.RefusedRetry)
			l.group.Go(func() { r.reopen(l, t, timer) })
		}
		r.mu.Unlock()
		if !current {
			return
		}
		klog.FromContext(l.ctx).Info("What a provider shows is not followed for a while", "provider", r.options.Remote, "namespace", t.local,
			"reason", offloadingv1beta1.ReasonRemoteOverLimit)
		r.enqueueLocals(t.local, false)
	})
}

// reopen has a twin watched again after a while.
func (r *Reconciler) reopen(l *link, t *twin, timer clock.Timer) {
	defer timer.Stop()
	select {
	case <-l.ctx.Done():
		return
	case <-timer.C():
	}
	r.mu.Lock()
	delete(l.shut, t.local)
	r.mu.Unlock()
	r.reconnect.Raise()
}
