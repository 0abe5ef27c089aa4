package pod

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

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
	list, err := l.clients.Dynamic.Resource(shadowPods).Namespace(remote).List(ctx, metav1.ListOptions{LabelSelector: r.marks(), Limit: 1})
	if err != nil {
		return false, fmt.Errorf("listing the ShadowPods in namespace %q of cluster %q: %w", remote, r.options.Remote, err)
	}
	return len(list.Items) > 0, nil
}
