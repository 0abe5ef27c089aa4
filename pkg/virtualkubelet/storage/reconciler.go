package storage

import (
	"context"
	"maps"
	"reflect"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/kube/slots"
	"liqo.io/liqo/pkg/kube/work"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
)

// key names a local claim. One without a name has the twin of its namespace surveyed; one without a namespace is of a volume.
type key = types.NamespacedName

// Reconciler provides the volumes of one virtual node. Make it with New.
type Reconciler struct {
	options Options
	queue   work.Queue
	// workers bounds how many claims are handled at a time.
	workers *slots.Slots
	// budget bounds what is held of all twins.
	budget *replica.Budget
	// wake has the watches brought in step with mapping and connection.
	wake signal.Signal
	// told is the last thing that was told about a claim that is there, with its UID: texts by key.
	told sync.Map

	mu    sync.Mutex
	areas map[string]*area
	// kept are the volumes, by name, that were deleted and stay because of their data, by their former claims.
	kept map[key]map[string]reflection.VolumeHandle
}

// New checks the options. Nothing happens before Run.
func New(o Options) (*Reconciler, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Reconciler{
		options: o,
		queue:   work.NewQueue("persistentvolumeclaims", minBackOff, maxBackOff),
		workers: slots.New(0), budget: o.Budget, wake: signal.New(), areas: map[string]*area{},
		kept: map[key]map[string]reflection.VolumeHandle{},
	}, nil
}

// follow takes up what is wanted.
func (r *Reconciler) follow(before, now Wanted) {
	r.workers.Resize(now.Workers)
	if !maps.Equal(before.Mapping, now.Mapping) {
		r.wake.Raise()
	}
	if !reflect.DeepEqual(before.Settings, now.Settings) {
		r.enqueueAreas()
	}
}

// lead has everything looked at when this virtual node begins to look after all volumes.
func (r *Reconciler) lead(before, now bool) {
	if now && !before {
		r.enqueueAreas()
	}
}

// enqueueAreas has all claims looked at, and the volumes that wait.
func (r *Reconciler) enqueueAreas() {
	r.mu.Lock()
	areas := maps.Clone(r.areas)
	r.mu.Unlock()
	for _, a := range areas {
		r.enqueueAll(a)
	}
	r.enqueueWaiting()
}

// Run provides volumes until the context ends and everything it started has ended.
func (r *Reconciler) Run(ctx context.Context) error {
	cancel := r.options.Peer.Subscribe(func(peer.State) { r.wake.Raise() })
	defer cancel()
	defer r.options.Wanted.Follow(r.follow)()
	defer r.options.Leads.Follow(r.lead)()
	var group sync.WaitGroup
	defer group.Wait()
	defer r.queue.ShutDown()
	defer r.workers.Close()
	group.Go(func() { work.Loop{Queue: r.queue, Workers: r.workers, What: "claim", Handle: r.handle}.Run(ctx) })
	defer r.closeAll()
	for {
		r.align(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-r.wake:
		}
	}
}

func (r *Reconciler) handle(ctx context.Context, k key) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if k.Namespace == "" {
		return r.settle(ctx, k.Name)
	}
	return r.reconcile(ctx, k)
}

// reconcile brings one claim in step with the provider.
func (r *Reconciler) reconcile(ctx context.Context, k key) error {
	a := r.areaOf(k.Namespace)
	if a == nil || !a.locals.Synced() {
		return nil
	}
	claim := a.local(k.Name)
	if claim == nil {
		r.content(k)
	}
	view := r.viewOf(a)
	if k.Name == "" {
		return r.survey(ctx, a, view)
	}
	if claim != nil && reflection.OwnClaim(claim) && view == nil {
		return r.begin(a, claim)
	}
	if view == nil || !view.ready() {
		return nil
	}
	p := place{area: a, view: view, settings: r.options.Wanted.Get().Settings, leads: r.options.Leads.Get()}
	// What an earlier claim of the name left comes first: it stands in the way of this one.
	err := r.release(ctx, p, k, claim)
	if claim == nil || !reflection.OwnClaim(claim) || err != nil && claim.Spec.VolumeName == "" {
		return err
	}
	if err := r.keep(ctx, p, claim); err != nil {
		r.tell(claim, err)
		return err
	}
	r.content(k)
	return err
}

// begin watches the twin of a claim's namespace, which has everything looked at, unless it held too much lately.
func (r *Reconciler) begin(a *area, claim *corev1.PersistentVolumeClaim) error {
	if err := r.tooMuch(a); err != nil {
		r.tell(claim, err)
		return err
	}
	r.open(a)
	return nil
}

// tell writes what keeps a claim from its volume, once.
func (r *Reconciler) tell(claim *corev1.PersistentVolumeClaim, err error) {
	class, message := reconcile.Classify(err), reconcile.MessageOf(err)
	reason := reconcile.ReasonOf(err)
	switch class {
	case reconcile.Refused, reconcile.Terminal:
		switch reason {
		case offloadingv1beta1.ReasonVolumeLost, offloadingv1beta1.ReasonClaimConflict, offloadingv1beta1.ReasonVolumeNotAtProvider,
			offloadingv1beta1.ReasonRemoteOverLimit:
		default:
			reason = offloadingv1beta1.ReasonVolumeRefused
		}
	case reconcile.Waiting:
		if reason != offloadingv1beta1.ReasonVolumePending {
			return
		}
	default:
		return
	}
	text := string(claim.UID) + reason + message
	if before, _ := r.told.Swap(keyOf(claim), text); before != text && r.options.Recorder != nil {
		r.options.Recorder.Event(claim, corev1.EventTypeWarning, reason, message)
	}
}

// content forgets what was told about a claim: it is well, or gone.
func (r *Reconciler) content(k key) { r.told.Delete(k) }

func keyOf(claim *corev1.PersistentVolumeClaim) key {
	return key{Namespace: claim.Namespace, Name: claim.Name}
}
