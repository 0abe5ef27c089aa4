package replica

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"liqo.io/liqo/pkg/kube/reconcile"
)

// bounded makes a replica with bounds, which counts how often they were passed.
func bounded(limit int, budget *Budget, over *int) *Replica[*corev1.ConfigMap] {
	return New(Options[*corev1.ConfigMap]{
		Namespace: "here", Limit: limit, Budget: budget, Over: func() { *over++ }, Synced: func() {},
		Event: func(_, _ *corev1.ConfigMap, _ bool) {}, Slim: func(c *corev1.ConfigMap) { c.ManagedFields = nil },
	})
}

func large(name string, bytes int) *corev1.ConfigMap {
	o := object(name, strings.Repeat("x", bytes))
	return &o
}

// add is what the watch does.
func add(t *testing.T, r *Replica[*corev1.ConfigMap], o *corev1.ConfigMap) {
	t.Helper()
	if err := (*sink[*corev1.ConfigMap])(r).Add(o); err != nil {
		t.Fatal(err)
	}
}

// Replicas that share a budget hold together what it allows: what comes beyond is not held and told of, and room is there again when
// objects get smaller or go, when a list without them comes, or when a replica is given up.
func TestBudget(t *testing.T) {
	budget, over := NewBudget(10<<10), 0
	a, b := bounded(0, budget, &over), bounded(0, budget, &over)
	sinkA, sinkB := (*sink[*corev1.ConfigMap])(a), (*sink[*corev1.ConfigMap])(b)
	full := func(what string, want int, held int) {
		t.Helper()
		if over != want || a.Len()+b.Len() != held || budget.Held() > budget.Limit() {
			t.Errorf("%s: passed %d times, want %d; %d objects are held, want %d; %d bytes", what, over, want, a.Len()+b.Len(), held, budget.Held())
		}
	}
	add(t, a, large("1", 4<<10))
	add(t, b, large("1", 3<<10))
	full("within", 0, 2)
	add(t, b, large("2", 1<<10))
	full("one more", 1, 2)
	add(t, a, large("1", 1))
	add(t, b, large("2", 1<<10))
	full("after one got smaller", 1, 3)
	add(t, b, large("2", 5<<10))
	full("after one got larger", 2, 3)
	if err := sinkB.Replace([]any{large("1", 9<<10)}, ""); !errors.Is(err, ErrOverLimit) || b.Synced() {
		t.Errorf("a list that is too large: %v, in step: %v", err, b.Synced())
	}
	full("a list that is too large", 3, 3)
	if err := sinkB.Replace([]any{large("3", 1)}, ""); err != nil || !b.Synced() {
		t.Errorf("a list: %v", err)
	}
	full("a list", 3, 2)
	if err := sinkA.Delete(large("1", 1)); err != nil {
		t.Error(err)
	}
	full("one is gone", 3, 1)
	b.Release()
	b.Release()
	if held := budget.Held(); held != 0 {
		t.Errorf("%d bytes are held by nobody", held)
	}
}

func TestLimit(t *testing.T) {
	over := 0
	r := bounded(2, nil, &over)
	for _, name := range []string{"a", "b", "b", "c", "a"} {
		add(t, r, large(name, 1))
	}
	if r.Len() != 2 || over != 1 {
		t.Errorf("%d are held, passed %d times", r.Len(), over)
	}
	if err := (*sink[*corev1.ConfigMap])(r).Replace([]any{large("a", 1), large("b", 1), large("c", 1)}, ""); !errors.Is(err, ErrOverLimit) || r.Len() != 2 {
		t.Errorf("a list of three: %v, %d are held", err, r.Len())
	}
}

// pages answers as a server with so many objects of a size; an answer above the maximum cannot be read.
func pages(count, size, maximum int, asked *[]int64) func(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
		*asked = append(*asked, o.Limit)
		first, _ := strconv.Atoi(o.Continue)
		last := min(first+int(o.Limit), count)
		if (last-first)*size > maximum {
			return nil, fmt.Errorf("reading: %w", reconcile.ErrOversized)
		}
		list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
		for i := first; i < last; i++ {
			list.Items = append(list.Items, *large(strconv.Itoa(i), size))
		}
		if last < count {
			list.Continue = strconv.Itoa(last)
		}
		return list, nil
	}
}

func TestPages(t *testing.T) {
	for name, tc := range map[string]struct {
		count, size int
		limit       int
		budget      int64
		asked       []int64
		over        bool
	}{
		"few":                             {count: 3, size: 1, asked: []int64{100}},
		"several pages":                   {count: 250, size: 1, asked: []int64{100, 100, 100}},
		"pages of large objects":          {count: 60, size: 1 << 10, asked: []int64{100, 25, 25, 25}},
		"objects that hardly fit":         {count: 3, size: 32 << 10, asked: []int64{100, 25, 6, 1, 1, 1}},
		"more than the limit":             {count: 250, size: 1, limit: 150, asked: []int64{100, 100}, over: true},
		"more than the budget":            {count: 1000, size: 256, budget: 256 << 10, asked: []int64{100, 100}, over: true},
		"as many as the limit, and small": {count: 150, size: 1, limit: 150, budget: 256 << 10, asked: []int64{100, 100}},
	} {
		t.Run(name, func(t *testing.T) {
			over := 0
			var budget *Budget
			if tc.budget > 0 {
				budget = NewBudget(tc.budget)
			}
			var asked []int64
			items, version, err := bounded(tc.limit, budget, &over).Pages(t.Context(), metav1.ListOptions{ResourceVersion: "0"},
				pages(tc.count, tc.size, 32<<10, &asked))
			if diff := cmp.Diff(tc.asked, asked); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
			if tc.over != errors.Is(err, ErrOverLimit) || tc.over != (over == 1) {
				t.Errorf("passed %d times, error %v", over, err)
			}
			if !tc.over && (err != nil || len(items) != tc.count || version != "7") {
				t.Errorf("%d items of version %s, error %v", len(items), version, err)
			}
		})
	}
}

// A server that sends nothing and always says that there is more is not asked for ever, nor is one whose single objects are too large.
func TestPagesWithoutEnd(t *testing.T) {
	over := 0
	r := bounded(10, nil, &over)
	_, _, err := r.Pages(t.Context(), metav1.ListOptions{}, func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return &corev1.ConfigMapList{ListMeta: metav1.ListMeta{Continue: "more"}}, nil
	})
	if err == nil || over != 0 {
		t.Errorf("got %v", err)
	}
	_, _, err = r.Pages(t.Context(), metav1.ListOptions{}, func(context.Context, metav1.ListOptions) (runtime.Object, error) {
		return nil, reconcile.ErrOversized
	})
	if !errors.Is(err, reconcile.ErrOversized) {
		t.Errorf("got %v", err)
	}
}

// A first list that is streamed ends where it passes a bound, before it takes the place of what is held; each stream is counted anew.
func TestStreamsAreBounded(t *testing.T) {
	over := 0
	byNumber, byBytes := bounded(2, nil, &over), bounded(0, NewBudget(10<<10), &over)
	for name, tc := range map[string]struct {
		replica *Replica[*corev1.ConfigMap]
		bytes   int
	}{"by number": {byNumber, 1}, "by bytes": {byBytes, 3 << 10}} {
		for range 2 {
			over = 0
			take := (*sink[*corev1.ConfigMap])(tc.replica).Transformer()
			for i := range 3 {
				_, err := take(large(strconv.Itoa(i), tc.bytes))
				if want := i == 2; errors.Is(err, ErrOverLimit) != want || (over > 0) != want {
					t.Errorf("%s: object %d: %v, passed %d times", name, i, err, over)
				}
			}
		}
	}
}
