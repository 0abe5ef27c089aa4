// Package freshness has caches begin with what is stored now. By default an informer asks any API server for its first list, and takes what
// that has in its own cache, however old: of several servers one may lag. To a controller that starts so, what was made since is not there
// and what was deleted still is.
package freshness

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// anyVersion is the resource version with which a list may be as old as the server's cache: see "The resourceVersion parameter" in
// Kubernetes' API concepts.
const anyVersion = "0"

// NewInformer makes a shared informer whose first list is of now, with the signature that controller-runtime's caches want.
func NewInformer(source cache.ListerWatcher, example runtime.Object, resync time.Duration, indexers cache.Indexers) cache.SharedIndexInformer {
	return cache.NewSharedIndexInformer(ListerWatcher(source), example, resync, indexers)
}

// ListerWatcher lists what is stored now where the source would list what was stored at any time. A first list that is streamed by a
// watch is of now anyway.
func ListerWatcher(source cache.ListerWatcher) cache.ListerWatcher {
	from := cache.ToListerWatcherWithContext(source)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == anyVersion {
				o.ResourceVersion = ""
			}
			return from.ListWithContext(ctx, o)
		},
		WatchFuncWithContext: from.WatchWithContext,
	}, source)
}
