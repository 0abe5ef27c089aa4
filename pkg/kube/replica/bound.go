package replica

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"

	"liqo.io/liqo/pkg/kube/reconcile"
)

const (
	// pageSize is how many objects a page of a list holds at most.
	pageSize = 100
	// perObject is what an object weighs besides its content, in bytes.
	perObject = 1 << 10
)

// ErrOverLimit: a server shows more than is accepted from it.
var ErrOverLimit = errors.New("there is more than is accepted")

// DefaultBudget is what is held of one peer, in bytes of memory, unless something else is said. With what is decoded at a time, and what
// Go's collector has not collected yet, a peer takes 64 MiB of a process at most.
const DefaultBudget = 32 << 20

// Budget bounds how many bytes the replicas that share it hold together. Make it with NewBudget.
type Budget struct {
	limit, held atomic.Int64
	// backs is the budget that grows with what is held in this one, if any.
	backs *Budget
}

// NewBudget makes a budget of so many bytes.
func NewBudget(bytes int64) *Budget {
	b := &Budget{}
	b.limit.Store(bytes)
	return b
}

// Expect lets the replicas hold so many bytes more, or fewer, because something of this cluster is why there is more at the peer.
func (b *Budget) Expect(bytes int64) { b.limit.Add(bytes) }

// Backing returns a budget without bounds for objects of this cluster that have copies at the peer: this one grows with what is held of
// them.
func (b *Budget) Backing() *Budget {
	backing := NewBudget(math.MaxInt64)
	backing.backs = b
	return backing
}

// Held is how many bytes are held.
func (b *Budget) Held() int64 { return b.held.Load() }

// Limit is how many bytes may be held.
func (b *Budget) Limit() int64 { return b.limit.Load() }

// take accounts for more bytes, or fewer, unless they are too many.
func (b *Budget) take(more int64) bool {
	if b.held.Add(more) > b.limit.Load() && more > 0 {
		b.held.Add(-more)
		return false
	}
	if b.backs != nil {
		b.backs.Expect(more)
	}
	return true
}

// Weighed is an object that knows how many bytes it takes; what others take is found out.
type Weighed interface{ Held() int }

// weight is about how many bytes of memory an object takes.
func weight(object any) int64 {
	if weighed, is := object.(Weighed); is {
		return int64(weighed.Held()) + perObject
	}
	return heap(reflect.ValueOf(object)) + perObject
}

// charge accounts for an object in the place of what was there of its name, if anything, unless there is no room for it. The caller
// locks.
func (r *Replica[T]) charge(before T, there bool, object T) bool {
	if r.options.Limit > 0 && !there && len(r.objects) >= r.options.Limit {
		return false
	}
	if r.options.Budget == nil {
		return true
	}
	more := weight(object)
	if there {
		more -= weight(before)
	}
	return r.take(more)
}

// chargeAll accounts for objects in the place of all that were there. The caller locks.
func (r *Replica[T]) chargeAll(objects map[string]T) bool {
	if r.options.Limit > 0 && len(objects) > r.options.Limit {
		return false
	}
	if r.options.Budget == nil {
		return true
	}
	var all int64
	for _, object := range objects {
		all += weight(object)
	}
	return r.take(all - r.charged)
}

func (r *Replica[T]) take(more int64) bool {
	if !r.options.Budget.take(more) {
		return false
	}
	r.charged += more
	return true
}

// Release gives back to the budget what the replica holds. Run does so at its end; who ends it and wants the room at once calls it.
func (r *Replica[T]) Release() {
	if r.options.Budget == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.options.Budget.take(-r.charged)
	r.charged = 0
}

// Pages reads a list page by page, from the server's storage rather than from a cache that may lag, for a Source. It keeps of each
// page only what the replica holds, asks for fewer objects at a time if an answer is too large, and ends with ErrOverLimit, having called
// Over, once there are more than the replica accepts.
func (r *Replica[T]) Pages(ctx context.Context, o metav1.ListOptions, page func(context.Context, metav1.ListOptions) (runtime.Object, error)) (
	items []runtime.Object, version string, err error) {
	read := 0
	o.ResourceVersion, o.ResourceVersionMatch, o.Limit = "", "", cmp.Or(r.options.PageSize, pageSize)
	var weighs int64
	for {
		list, err := page(ctx, o)
		if errors.Is(err, reconcile.ErrOversized) && o.Limit > 1 {
			o.Limit /= 4
			o.Limit = max(o.Limit, 1)
			continue
		}
		if errors.Is(err, reconcile.ErrOversized) {
			r.options.Over()
			return nil, "", fmt.Errorf("%w: %w", ErrOverLimit, err)
		}
		if err != nil {
			return nil, "", err
		}
		about, err := meta.ListAccessor(list)
		if err != nil {
			return nil, "", fmt.Errorf("reading a page of a list: %w", err)
		}
		more, err := meta.ExtractList(list)
		if err != nil {
			return nil, "", fmt.Errorf("reading a page of a list: %w", err)
		}
		for _, item := range more {
			object, is := r.held(item)
			if !is {
				continue
			}
			if r.options.Budget != nil {
				weighs += weight(object)
			}
			items = append(items, box(object))
		}
		// What is not ours to hold counts, too: a list of it has no end either.
		if read += len(more); !r.room(read, weighs) {
			r.options.Over()
			return nil, "", ErrOverLimit
		}
		version, o.Continue = about.GetResourceVersion(), about.GetContinue()
		if o.Continue == "" {
			return items, version, nil
		}
		if len(more) == 0 {
			return nil, "", errors.New("reading a list: the server sends an empty page and says that there are more")
		}
	}
}

// paged is a Source that is read with Pages.
type paged struct {
	*cache.ListWatch
	streams bool
}

// IsWatchListSemanticsUnSupported tells client-go to list page by page instead of having the server stream the first list: what it
// shows beyond what was asked for would not be bounded, unless the replica counts it.
func (p paged) IsWatchListSemanticsUnSupported() bool { return !p.streams }

func (r *Replica[T]) list(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	items, version, err := r.Pages(ctx, o, r.options.Page)
	if err != nil {
		return nil, err
	}
	list := &metav1.List{ListMeta: metav1.ListMeta{ResourceVersion: version}}
	for _, item := range items {
		list.Items = append(list.Items, runtime.RawExtension{Object: item})
	}
	return list, nil
}

// room tells whether so many objects, that weigh so much, could be held in the place of those that are.
func (r *Replica[T]) room(objects int, weighs int64) bool {
	if r.options.Limit > 0 && objects > r.options.Limit {
		return false
	}
	if r.options.Budget == nil {
		return true
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.options.Budget.Held()-r.charged+weighs <= r.options.Budget.Limit()
}
