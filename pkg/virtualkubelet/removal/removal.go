// Package removal holds back the removal of many copies at once, whichever part of a virtual kubelet is about to make it. The Node says, and an
// Event about the VirtualNode, which removals are held; an annotation of the VirtualNode confirms them.
package removal

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/massremoval"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/peer"
)

// listed is how long a provider has to answer until all that it holds is taken to be listed.
const listed = 2 * time.Minute

// Options of Held. All must be given.
type Options struct {
	// Share, in percent, of the copies of a kind may go at once.
	Share int
	// Namespace and Node are the VirtualNode's.
	Namespace, Node string
	// Peer is the provider.
	Peer interface{ State() peer.State }
}

// Held are the removals that wait for a confirmation. Make it with New.
type Held struct {
	options Options
	// Guard decides what is held.
	Guard *massremoval.Guard
	// Said is what is said of the removals that are held, with the way to confirm them; empty if there are none.
	Said    latest.Value[string]
	changed signal.Signal
	vn      atomic.Pointer[offloadingv1beta1.VirtualNode]
	// told says that those who look know that something is held.
	told atomic.Bool
}

// New makes the guard. Nothing is told before Run.
func New(o Options) *Held {
	r := &Held{options: o, changed: signal.New()}
	r.Guard = massremoval.New(massremoval.Options{Share: o.Share, Changed: r.changed.Raise})
	return r
}

// Hear takes a version of the VirtualNode. The first tells whether an earlier process held something.
func (r *Held) Hear(vn *offloadingv1beta1.VirtualNode) {
	first := r.vn.Swap(vn) == nil
	if held := conditions.Find(vn.Status.All(), offloadingv1beta1.RemovalsHeldCondition); first && held != nil {
		r.Guard.Resume(held.Message)
		r.told.Store(true)
	}
	r.Guard.Confirm(vn.Annotations[offloadingv1beta1.ConfirmedRemovalsAnnotation])
	r.say()
}

// say says what is held now.
func (r *Held) say() { r.Said.Change(func(said *string) { *said = r.words() }) }

func (r *Held) words() string {
	confirm, held := r.Guard.Held()
	if confirm == "" {
		return held
	}
	return fmt.Sprintf("held back: the removal of %s, whose originals are missing here, as after the restore of an old backup; "+
		"once they are there again this ends by itself; to have the copies removed, run: kubectl annotate virtualnode -n %s %s --overwrite %s=%s",
		held, r.options.Namespace, r.options.Node, offloadingv1beta1.ConfirmedRemovalsAnnotation, confirm)
}

// Run tells of changes until the context ends.
func (r *Held) Run(ctx context.Context, recorder record.EventRecorder) {
	ticker := time.NewTicker(listed / 4)
	defer ticker.Stop()
	resuming := ticker.C
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.changed:
			r.tell(ctx, recorder)
		case <-resuming:
			if state := r.options.Peer.State(); state.Connected && time.Since(state.Since) > listed {
				r.Guard.Resumed()
				ticker.Stop()
				resuming = nil
			}
		}
	}
}

// tell tells what is held now, unless the process ends: what is held then is what the next one goes on with.
func (r *Held) tell(ctx context.Context, recorder record.EventRecorder) {
	if ctx.Err() != nil {
		return
	}
	r.say()
	said, vn := r.Said.Get(), r.vn.Load()
	if told := r.told.Swap(said != ""); told || said == "" || vn == nil {
		return
	}
	klog.FromContext(ctx).Info("The removal of many copies at once is held back", "reason", offloadingv1beta1.ReasonManyAtOnce, "message", said)
	about := vn.DeepCopy()
	about.SetGroupVersionKind(offloadingv1beta1.GroupVersion.WithKind("VirtualNode"))
	recorder.Event(about, corev1.EventTypeWarning, offloadingv1beta1.ReasonManyAtOnce, conditions.Bound(said))
}
