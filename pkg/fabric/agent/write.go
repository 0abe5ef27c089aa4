package agent

import (
	"context"
	"time"

	"k8s.io/klog/v2"
)

// writing is how long a write may take, and after how long one is made again that did not show.
const writing = 5 * time.Second

// newest holds one value at most: the one that was put there last, by one goroutine.
type newest[T any] chan T

func (n newest[T]) put(value T) {
	select {
	case <-n:
	default:
	}
	n <- value
}

// Writer writes what is wanted while others work: the newest, however long the one before takes.
type Writer[T any] struct {
	same  func(a, b T) bool
	write func(context.Context, T) error
	// wanted is what is to be written; last is what was last to be, and when, as the one who wants it knows.
	wanted newest[T]
	last   T
	when   time.Time
}

// NewWriter makes one that writes by a function; same tells whether two values say the same.
func NewWriter[T any](same func(a, b T) bool, write func(context.Context, T) error) *Writer[T] {
	return &Writer[T]{same: same, write: write, wanted: make(newest[T], 1)}
}

// Want has something written, but for what was wanted a moment ago, which may not be seen yet. It is to be called by one goroutine, and does not wait.
func (w *Writer[T]) Want(value T, now time.Time) {
	if w.same(value, w.last) && now.Sub(w.when) < writing {
		return
	}
	w.last, w.when = value, now
	w.wanted.put(value)
}

// Run writes until the context ends. What cannot be written is left to the one who still wants it.
func (w *Writer[T]) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case value := <-w.wanted:
			if err := w.once(ctx, value); err != nil && ctx.Err() == nil {
				klog.FromContext(ctx).Error(err, "Telling what is known")
			}
		}
	}
}

func (w *Writer[T]) once(ctx context.Context, value T) error {
	ctx, cancel := context.WithTimeout(ctx, writing)
	defer cancel()
	return w.write(ctx, value)
}
