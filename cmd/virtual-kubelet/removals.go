package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/massremoval"
)

// listed is how long a provider has to answer until all that it holds is taken to be listed.
const listed = 2 * time.Minute

// removals tells the Node, and by an Event the VirtualNode, which removals are held, and hears from the VirtualNode what was confirmed.
type removals struct {
	k        *kubelet
	guard    *massremoval.Guard
	recorder record.EventRecorder
	changed  chan struct{}

	mu sync.Mutex
	vn *offloadingv1beta1.VirtualNode
	// told says that those who look know that something is held.
	told bool
}

func newRemovals(k *kubelet) *removals {
	r := &removals{k: k, changed: make(chan struct{}, 1)}
	r.guard = massremoval.New(massremoval.Options{Share: k.flags.Limits.Removals, Changed: func() {
		select {
		case r.changed <- struct{}{}:
		default:
		}
	}})
	return r
}

// setVirtualNode takes a version of the VirtualNode. The first tells whether an earlier process held something.
func (r *removals) setVirtualNode(vn *offloadingv1beta1.VirtualNode) {
	r.mu.Lock()
	first := r.vn == nil
	r.vn = vn
	if held := conditions.Find(vn.Status.All(), offloadingv1beta1.RemovalsHeldCondition); first && held != nil {
		r.guard.Resume(held.Message)
		r.told = true
	}
	r.mu.Unlock()
	r.guard.Confirm(vn.Annotations[offloadingv1beta1.ConfirmedRemovalsAnnotation])
}

// said is what is said of the removals that are held, with the way to confirm them; empty if there are none.
func (r *removals) said() string {
	confirm, held := r.guard.Held()
	if confirm == "" {
		return held
	}
	return fmt.Sprintf("held back: the removal of %s, whose originals are missing here, as after the restore of an old backup; once they are there again this ends by itself; "+
		"to have the copies removed, run: kubectl annotate virtualnode -n %s %s --overwrite %s=%s",
		held, r.k.flags.TenantNamespace, r.k.flags.Node, offloadingv1beta1.ConfirmedRemovalsAnnotation, confirm)
}

// run tells of changes until the context ends.
func (r *removals) run(ctx context.Context) {
	ticker := time.NewTicker(listed / 4)
	defer ticker.Stop()
	resuming := ticker.C
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			r.tell(ctx)
		case <-resuming:
			if state := r.k.peer.State(); state.Connected && time.Since(state.Since) > listed {
				r.guard.Resumed()
				ticker.Stop()
				resuming = nil
			}
		}
	}
}

// tell tells what is held now, unless the process ends: what is held then is what the next one goes on with.
func (r *removals) tell(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	said := r.said()
	r.k.node.setHeld(said)
	r.mu.Lock()
	news, vn := said != "" && !r.told, r.vn
	r.told = said != ""
	r.mu.Unlock()
	if !news || vn == nil {
		return
	}
	klog.FromContext(ctx).Info("The removal of many copies at once is held back", "reason", offloadingv1beta1.ReasonManyAtOnce, "message", said)
	about := vn.DeepCopy()
	about.SetGroupVersionKind(offloadingv1beta1.GroupVersion.WithKind("VirtualNode"))
	r.recorder.Event(about, corev1.EventTypeWarning, offloadingv1beta1.ReasonManyAtOnce, conditions.Bound(said))
}

// setHeld takes what is said of removals that are held.
func (n *nodeSide) setHeld(said string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.reporter != nil {
		n.reporter.SetHeld(said)
	}
}
