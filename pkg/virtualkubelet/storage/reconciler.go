package storage

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/kube/slots"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
)

// key names a local claim. One without a name has the twin of its namespace surveyed; one without a namespace is of a volume.
type key = types.NamespacedName

// Reconciler provides the volumes of one virtual node. Make it with New.
type Reconciler struct {
	options Options
	queue   workqueue.TypedRateLimitingInterface[key]
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
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.NewTypedItemExponentialFailureRateLimiter[key](minBackOff, maxBackOff),
			workqueue.TypedRateLimitingQueueConfig[key]{Name: "persistentvolumeclaims"}),
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
	group.Go(func() { slots.Drain(r.queue, r.workers, func(k key) { r.handle(ctx, k) }) })
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

func (r *Reconciler) handle(ctx context.Context, k key) {
	if ctx.Err() != nil {
		return
	}
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "claim", klog.KRef(k.Namespace, k.Name))
	err := r.isolated(klog.NewContext(ctx, logger), k)
	result, retry := reconcile.Result(err)
	switch {
	case err == nil:
		r.queue.Forget(k)
	case result.RequeueAfter > 0:
		r.queue.Forget(k)
		r.queue.AddAfter(k, result.RequeueAfter)
	case retry != nil && reconcile.Classify(err) != reconcile.Terminal:
		r.queue.AddRateLimited(k)
	default:
		r.queue.Forget(k)
	}
	if err != nil && reconcile.Classify(err) != reconcile.Waiting {
		logger.V(1).Info("A claim could not be brought in step", "class", reconcile.Classify(err).String(), "reason", err.Error())
	}
}

// isolated keeps one claim that breaks the program from taking all others down with it.
func (r *Reconciler) isolated(ctx context.Context, k key) (err error) {
	defer func() {
		if broken := recover(); broken != nil {
			err = fmt.Errorf("handling claim %s broke the program: %v\n%s", k, broken, debug.Stack())
		}
	}()
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
