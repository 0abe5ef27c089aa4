package capacity

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	upstream "k8s.io/component-helpers/resource"
)

// watches is a set of those by which a pool is told of pods.
type watches uint8

const (
	watched watches = 1 << iota
	second
)

// Pod tells of a pod as it is now, and whose it is. It counts from when it is bound until it has finished: as taken of what is free on nodes that
// take pods, as what runs for its slice on all.
func (p *Pool) Pod(pod *corev1.Pod, of Owner) error { return Watch{p, watched}.Pod(pod, of) }

// Watch tells a pool of pods, beside another one that tells of others.
type Watch struct {
	pool *Pool
	as   watches
}

// Second is the watch beside that which Pool.Pod and Pool.ForgetPod are for.
func Second(of *Pool) Watch { return Watch{of, second} }

// Pod tells of a pod as it is now, as Pool.Pod does.
func (w Watch) Pod(pod *corev1.Pod, of Owner) error {
	p, key := w.pool, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
	if pod.Spec.NodeName == "" || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		Watch{p, watched | second}.ForgetPod(key)
		return nil
	}
	if refusal := checkSigns(&pod.Spec); refusal != nil {
		return fmt.Errorf("pod %s: %w; what it took before still counts", key, refusal)
	}
	requests := upstream.PodRequests(pod, upstream.PodResourcesOptions{UseStatusResources: true})
	takes, err := measure(requests, true)
	if err != nil {
		return fmt.Errorf("pod %s: %w; what it took before still counts", key, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	takes = append(takes, measured{corev1.ResourcePods, 1})
	if err := p.room(takes); err != nil {
		return fmt.Errorf("pod %s: %w; what it took before still counts", key, err)
	}
	old, known := p.pods[key]
	now := holding{of: old.of | w.as, on: p.host(pod.Spec.NodeName), owner: of, by: p.owner(of), amounts: make([]amount, len(takes))}
	for i, one := range takes {
		now.amounts[i] = amount{p.tally(one.name), one.value}
	}
	p.hold(now, 1)
	if known {
		p.release(old)
	}
	p.pods[key] = now
	return nil
}

// ForgetPod tells that a pod is gone.
func (p *Pool) ForgetPod(key types.NamespacedName) { Watch{p, watched}.ForgetPod(key) }

// ForgetPod tells that the watch has a pod no more.
func (w Watch) ForgetPod(key types.NamespacedName) {
	p := w.pool
	p.mu.Lock()
	defer p.mu.Unlock()
	old, known := p.pods[key]
	if old.of &^= w.as; old.of != 0 {
		p.pods[key] = old
	} else if known {
		delete(p.pods, key)
		p.release(old)
	}
}

// PodsWithout are the pods that Pod told of, and that are not among those.
func (p *Pool) PodsWithout(there map[types.NamespacedName]bool) (others []types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, held := range p.pods {
		if held.of&watched != 0 && !there[key] {
			others = append(others, key)
		}
	}
	return others
}
