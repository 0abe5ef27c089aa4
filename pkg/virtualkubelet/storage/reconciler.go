package storage

import (
	"context"
	"maps"
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

	mu       sync.Mutex
	mapping  map[string]string
	settings Settings
	// leads says that this virtual node looks after all volumes at the provider.
	leads bool
	areas map[string]*area
	// kept are the volumes, by name, that were deleted and stay because of their data, by their former claims.
	kept map[key]map[string]reflection.VolumeHandle
	// told is the last thing that was told about a claim that is there, with its UID.
	told map[key]string
}

// New checks the options. Nothing happens before Run.
func New(o Options) (*Reconciler, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	return &Reconciler{
		options: o,
		queue:   work.NewQueue("persistentvolumeclaims", minBackOff, maxBackOff),
		workers: slots.New(o.Workers), budget: o.Budget, wake: signal.New(), areas: map[string]*area{}, told: map[key]string{},
		kept: map[key]map[string]reflection.VolumeHandle{},
	}, nil
}

// SetMapping tells which namespaces are offloaded, and to which twins.
func (r *Reconciler) SetMapping(effective map[string]string) {
	r.mu.Lock()
	same := maps.Equal(r.mapping, effective)
	r.mapping = maps.Clone(effective)
	r.mu.Unlock()
	if !same {
		r.wake.Raise()
	}
}

// SetSettings takes what the VirtualNode says.
func (r *Reconciler) SetSettings(s Settings) {
	r.mu.Lock()
	r.settings = s
	areas := maps.Clone(r.areas)
	r.mu.Unlock()
	for _, a := range areas {
		r.enqueueAll(a)
	}
	r.enqueueWaiting()
}

// SetLeads tells whether this is the virtual node, of all those of the provider, that looks after volumes once they are made: also
// after those whose virtual node is gone. Only the node that was selected for a claim makes its volume. It does not block.
func (r *Reconciler) SetLeads(leads bool) {
	r.mu.Lock()
	news := leads && !r.leads
	r.leads = leads
	areas := maps.Clone(r.areas)
	r.mu.Unlock()
	if !news {
		return
	}
	for _, a := range areas {
		r.enqueueAll(a)
	}
	r.enqueueWaiting()
}

// Run provides volumes until the context ends and everything it started has ended.
func (r *Reconciler) Run(ctx context.Context) error {
	cancel := r.options.Peer.Subscribe(func(peer.State) { r.wake.Raise() })
	defer cancel()
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

// SetWorkers changes how many claims are handled at a time. With zero everything stays as it is.
func (r *Reconciler) SetWorkers(n int) { r.workers.Resize(n) }

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
	r.mu.Lock()
	a, settings, leads := r.areas[k.Namespace], r.settings, r.leads
	r.mu.Unlock()
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
	p := place{area: a, view: view, settings: settings, leads: leads}
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
	r.mu.Lock()
	k, text := keyOf(claim), string(claim.UID)+reason+message
	news := r.told[k] != text
	r.told[k] = text
	r.mu.Unlock()
	if news && r.options.Recorder != nil {
		r.options.Recorder.Event(claim, corev1.EventTypeWarning, reason, message)
	}
}

// content forgets what was told about a claim: it is well, or gone.
func (r *Reconciler) content(k key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.told, k)
}

func keyOf(claim *corev1.PersistentVolumeClaim) key {
	return key{Namespace: claim.Namespace, Name: claim.Name}
}
