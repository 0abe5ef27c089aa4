package supply

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/signal"
)

const (
	// Period is the least time between two changes of an offer that nobody asked for.
	Period = 10 * time.Second
	// together is how long changes are awaited that come together, as the pods of a Deployment do.
	together = time.Second
	// patience is how long a first count is awaited, so that a first slice need not be told that it waits.
	patience = 2 * time.Second
)

// Options of a Supply.
type Options struct {
	// Exclusive has all offers together be not more than what is free.
	Exclusive bool
	// Tolerated are taints of nodes that do not keep consumers' pods off.
	Tolerated capacity.Tolerated
	// Log of what cannot be believed.
	Log logr.Logger
}

// Supply is what a cluster offers. Make it with New and Register; all methods may be called at any time from anywhere.
type Supply struct {
	options Options
	pool    *capacity.Pool
	dirty   signal.Signal
	changed chan event.GenericEvent
	// asked is closed by the first that needs to know, counted once all is known, late once nobody waits for that any more.
	asked, counted, late chan struct{}
	askOnce, countOnce   sync.Once

	mu     sync.Mutex
	asking map[types.NamespacedName]*asking
	// refused is what is not believed, by node or pod, so that it is said once.
	refused map[string]string
}

// asking is a slice that asks, and what it was told.
type asking struct {
	of   capacity.Owner
	wish capacity.Wish
	told capacity.Offer
}

// New returns a Supply that knows of nothing.
func New(o Options) *Supply {
	return &Supply{options: o, pool: capacity.NewPool(o.Tolerated), dirty: signal.New(), changed: make(chan event.GenericEvent),
		asked: make(chan struct{}), counted: make(chan struct{}), late: make(chan struct{}), asking: map[types.NamespacedName]*asking{}, refused: map[string]string{}}
}

// Known tells whether all nodes and pods were told of.
func (s *Supply) Known() bool {
	select {
	case <-s.counted:
		return true
	default:
		return false
	}
}

// Count tells whether all nodes and pods were told of. It has them be, from its first call on: a cluster that offers nothing to anybody spends
// nothing on it. The count is awaited, for patience after the first call.
func (s *Supply) Count(ctx context.Context) bool {
	s.askOnce.Do(func() {
		close(s.asked)
		time.AfterFunc(patience, func() { close(s.late) })
	})
	select {
	case <-s.counted:
	case <-ctx.Done():
	case <-s.late:
	}
	return s.Known()
}

// Counted tells that all nodes and pods were told of once.
func (s *Supply) Counted() {
	s.countOnce.Do(func() { close(s.counted) })
	s.dirty.Raise()
}

// Node tells of a node as it is now.
func (s *Supply) Node(node *corev1.Node) { s.note("node/"+node.Name, s.pool.Node(node)) }

// ForgetNode tells that a node is gone.
func (s *Supply) ForgetNode(name string) {
	s.pool.ForgetNode(name)
	s.note("node/"+name, nil)
}

// Pod tells of a pod as it is now.
func (s *Supply) Pod(pod *corev1.Pod) {
	s.note("pod/"+pod.Namespace+"/"+pod.Name, s.pool.Pod(pod, ownerOf(pod)))
}

// ForgetPod tells that a pod is gone.
func (s *Supply) ForgetPod(pod types.NamespacedName) {
	s.pool.ForgetPod(pod)
	s.note("pod/"+pod.String(), nil)
}

// Changed has the ResourceSlices whose offers changed.
func (s *Supply) Changed() <-chan event.GenericEvent { return s.changed }

// Offer is what a slice may use that asks so. Its offer stays while it asks for the same, until it is told on Changed. One that asks anew
// keeps what it held if that differs too little. What is returned is the caller's.
func (s *Supply) Offer(slice types.NamespacedName, of capacity.Owner, wish capacity.Wish, held corev1.ResourceList) (capacity.Offer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.asking[slice]
	if before != nil && equality.Semantic.DeepEqual(before.wish, wish) {
		return before.told.DeepCopy(), nil
	}
	if err := s.pool.Ask(of, wish); err != nil {
		return capacity.Offer{}, fmt.Errorf("working out an offer: %w", err)
	}
	next := s.pool.Offers(s.options.Exclusive)[of]
	last := capacity.Offer{Resources: held, Over: next.Over, Running: next.Running, Nodes: next.Nodes}
	settled, _ := capacity.Settled(last, next, s.options.Exclusive)
	s.asking[slice] = &asking{of: of, wish: wish, told: settled}
	s.dirty.Raise()
	return settled.DeepCopy(), nil
}

// Withdraw tells that a slice asks for nothing any more.
func (s *Supply) Withdraw(slice types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.asking[slice]; before != nil {
		delete(s.asking, slice)
		s.pool.Withdraw(before.of)
		s.dirty.Raise()
	}
}

// TakesPods tells whether a node takes pods of consumers.
func (s *Supply) TakesPods(node *corev1.Node) bool { return s.options.Tolerated.TakesPods(node) }

// NodesHave is what nodes have that take pods of consumers and have the labels.
func (s *Supply) NodesHave(nodes []corev1.Node, having labels.Set) corev1.ResourceList {
	return capacity.NodesHave(nodes, s.options.Tolerated, having)
}

// Free is what a consumer could use: what nodes have, less what the pods of others take.
func (s *Supply) Free(consumer string) corev1.ResourceList { return s.pool.Free(consumer) }

// Used is what the pods of a slice take.
func (s *Supply) Used(of capacity.Owner) corev1.ResourceList { return s.pool.Used(of) }

// Room is what is free on nodes with some labels for all slices that ask, what their pods take included: with Options.Exclusive the most of
// all offers together.
func (s *Supply) Room(nodes labels.Set) corev1.ResourceList { return s.pool.Room(nodes) }

// follow tells of offers that changed until ctx ends.
func (s *Supply) follow(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.dirty:
		}
		if !wait(ctx, together) {
			return
		}
		for _, slice := range s.Settle() {
			select {
			case <-ctx.Done():
				return
			case s.changed <- event.GenericEvent{Object: &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: slice.Namespace, Name: slice.Name}}}:
			}
		}
		if !wait(ctx, Period-together) {
			return
		}
	}
}

func wait(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// Settle works out all offers anew, and returns the slices whose offer is another one now.
func (s *Supply) Settle() (changed []types.NamespacedName) {
	if !s.Known() {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	offers := s.pool.Offers(s.options.Exclusive)
	for slice, a := range s.asking {
		settled, differs := capacity.Settled(a.told, offers[a.of], s.options.Exclusive)
		if differs {
			a.told = settled
			changed = append(changed, slice)
		}
	}
	return changed
}

// note takes whether what is known of a node or a pod is believed, and says so once if it is not.
func (s *Supply) note(of string, err error) {
	s.mu.Lock()
	before, text := s.refused[of], ""
	if err != nil {
		text = err.Error()
		s.refused[of] = text
	} else {
		delete(s.refused, of)
	}
	s.mu.Unlock()
	if text != before && text != "" {
		s.options.Log.Info("What is offered to consumers leaves out what cannot be", "reason", text)
	}
	s.dirty.Raise()
}
