package token

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/slots"
	"liqo.io/liqo/pkg/kube/work"
)

// key names a local pod.
type key = types.NamespacedName

// Keeper keeps the tokens of a virtual node's pods in step. Make it with New.
type Keeper struct {
	options Options
	queue   work.Queue
	metrics *metrics
	ledgers ledgers

	// workers bounds how many pods are handled at a time.
	workers *slots.Slots

	mu     sync.Mutex
	states map[key]*state
}

// New checks the options. Nothing happens before Run.
func New(o Options) (*Keeper, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	m, err := newMetrics(o)
	if err != nil {
		return nil, err
	}
	k := &Keeper{options: o, metrics: m, states: map[key]*state{}, workers: slots.New(0)}
	k.ledgers.changed = k.ledgerChanged
	k.queue = work.NewQueue("podtokens", minBackOff, maxBackOff)
	return k, nil
}

// Enqueue has a pod looked at: it came, changed, went, or its ShadowPod did. It does not block.
func (k *Keeper) Enqueue(pod types.NamespacedName) { k.queue.Add(pod) }

// Run keeps the tokens in step until the context ends and everything that it started has ended.
func (k *Keeper) Run(ctx context.Context) error {
	k.ledgers.run(ctx)
	defer k.options.Workers.Follow(func(_, now int) { k.workers.Resize(now) })()
	var group sync.WaitGroup
	defer k.ledgers.wait()
	defer group.Wait()
	defer k.queue.ShutDown()
	group.Go(func() {
		slots.Drain(k.queue, k.workers, func(pod key) {
			if ctx.Err() == nil {
				k.handle(ctx, pod)
			}
		})
	})
	<-ctx.Done()
	k.workers.Close()
	return nil
}

func (k *Keeper) handle(ctx context.Context, pod key) {
	logger := klog.LoggerWithValues(klog.FromContext(ctx), "pod", klog.KRef(pod.Namespace, pod.Name))
	ctx, cancel := context.WithTimeout(klog.NewContext(ctx, logger), timeout)
	defer cancel()
	next, err := k.reconcile(ctx, pod)
	if err == nil {
		k.queue.Forget(pod)
		if next > 0 {
			k.queue.AddAfter(pod, next)
		}
		return
	}
	if result, _ := reconcile.Result(err); reconcile.Classify(err) != reconcile.Refused && result.RequeueAfter > 0 {
		k.queue.AddAfter(pod, result.RequeueAfter)
	} else {
		// Nobody tells when rules change that forbid it. Often they are about to: a provider that gives rights back does so one by one.
		k.queue.AddRateLimited(pod)
	}
	logger.V(1).Info("A pod's tokens could not be brought in step", "class", reconcile.Classify(err).String(), "reason", err.Error())
	k.tell(pod, err)
}

// known returns what is known of a pod's tokens; an earlier pod of the same name is forgotten.
func (k *Keeper) known(pod key, uid types.UID) *state {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.states[pod] == nil || k.states[pod].pod != uid {
		k.states[pod] = &state{pod: uid}
	}
	return k.states[pod]
}

// forget drops what is known of a pod that has no tokens, and the ledger that nobody needs any more.
func (k *Keeper) forget(pod key) {
	k.mu.Lock()
	defer k.mu.Unlock()
	dropped := k.states[pod]
	delete(k.states, pod)
	if dropped == nil || dropped.twin == "" {
		return
	}
	for _, s := range k.states {
		if s.twin == dropped.twin {
			return
		}
	}
	k.ledgers.close(dropped.twin)
}

// settle notes in which ledger a pod's tokens stand, under which name.
func (k *Keeper) settle(s *state, twin, secret string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s.twin, s.secret = twin, secret
}

// ledgerChanged queues the pods of a twin whose entries changed.
func (k *Keeper) ledgerChanged(twin string, before, after *published) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for pod, s := range k.states {
		if s.twin == twin && (before == nil || after == nil || before.entries[s.secret] != after.entries[s.secret]) {
			k.queue.Add(pod)
		}
	}
}

// until is the time from now to then, at least one second: timers may fire early.
func (k *Keeper) until(then time.Time) time.Duration {
	return max(then.Sub(k.options.Clock.Now()), time.Second)
}
