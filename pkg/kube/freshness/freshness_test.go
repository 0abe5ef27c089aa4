package freshness

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"
)

func TestTheFirstListIsOfNow(t *testing.T) {
	for asked, want := range map[string]string{"0": "", "": "", "17": "17"} {
		var got []metav1.ListOptions
		list := ListerWatcher(&cache.ListWatch{ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			got = append(got, o)
			return &corev1.PodList{}, nil
		}})
		o := metav1.ListOptions{ResourceVersion: asked, LabelSelector: "a=b", Limit: 5}
		if _, err := cache.ToListerWatcherWithContext(list).ListWithContext(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		for _, o := range got {
			if o.ResourceVersion != want || o.LabelSelector != "a=b" || o.Limit != 5 {
				t.Errorf("of version %q: %+v", asked, o)
			}
		}
		if len(got) != 1 {
			t.Errorf("listed %d times", len(got))
		}
	}
}

// An informer comes to know what there is, and follows it.
func TestNewInformer(t *testing.T) {
	var versions []string
	events := watch.NewFake()
	source := &cache.ListWatch{
		ListWithContextFunc: func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
			versions = append(versions, o.ResourceVersion)
			return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "a"}}}}, nil
		},
		WatchFuncWithContext: func(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
			if o.ResourceVersion != "7" {
				t.Errorf("watched from version %q", o.ResourceVersion)
			}
			return events, nil
		},
	}
	added := make(chan string, 2)
	informer := NewInformer(cache.ToListWatcherWithWatchListSemantics(source, fake.NewClientset()), &corev1.Pod{}, 0, cache.Indexers{})
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) { added <- o.(*corev1.Pod).Name }}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { informer.RunWithContext(ctx); close(done) }()
	if first := <-added; first != "a" {
		t.Errorf("first came %s", first)
	}
	events.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
	if second := <-added; second != "b" {
		t.Errorf("then came %s", second)
	}
	cancel()
	<-done
	if len(versions) != 1 || versions[0] != "" {
		t.Errorf("listed with versions %q", versions)
	}
}

// What the client says of streamed lists is what the reflector hears.
func TestStreamedLists(t *testing.T) {
	for name, tc := range map[string]struct {
		source cache.ListerWatcher
		want   bool
	}{
		"a client that cannot stream":   {cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{}, fake.NewClientset()), true},
		"a client that says nothing":    {&cache.ListWatch{}, false},
		"one that is wrapped once more": {ListerWatcher(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{}, fake.NewClientset())), true},
	} {
		if got := watchlist.DoesClientNotSupportWatchListSemantics(ListerWatcher(tc.source)); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
