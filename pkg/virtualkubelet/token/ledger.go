package token

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/selection"
	"liqo.io/liqo/pkg/reflection"
)

// published is what a ledger says of token Secrets.
type published struct {
	metav1.ObjectMeta
	version string
	entries map[string]reflection.TokenEntry
	// partial says that it could not list everything.
	partial bool
}

func (p *published) lists(secret string) bool {
	_, there := p.entries[secret]
	return there
}

// ledgers watches the ledgers of those twins that have pods with tokens.
type ledgers struct {
	// changed is called when one was read or changed; nil stands for none.
	changed func(twin string, before, after *published)

	mu    sync.Mutex
	ctx   context.Context
	group sync.WaitGroup
	open  map[string]*ledger
}

type ledger struct {
	epoch  int64
	store  cache.Store
	watch  cache.Controller
	cancel context.CancelFunc
}

func (l *ledgers) run(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ctx, l.open = ctx, map[string]*ledger{}
}

func (l *ledgers) wait() { l.group.Wait() }

// look returns what the ledger of a twin says (nil if there is none), and whether it was read. It is watched from then on.
func (l *ledgers) look(twin string, provider kubernetes.Interface, epoch int64) (says *published, read bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	current := l.open[twin]
	if current != nil && current.epoch < epoch {
		current.cancel()
		current = nil
	}
	if current == nil {
		current = l.start(twin, provider, epoch)
		l.open[twin] = current
	}
	if !current.watch.HasSynced() {
		return nil, false
	}
	object, there, err := current.store.GetByKey(twin + "/" + offloadingv1beta1.SecretLedger)
	if err != nil || !there {
		return nil, true
	}
	says, _ = object.(*published)
	return says, true
}

// close ends the watch of a twin.
func (l *ledgers) close(twin string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if current := l.open[twin]; current != nil {
		current.cancel()
		delete(l.open, twin)
	}
}

func (l *ledgers) start(twin string, provider kubernetes.Interface, epoch int64) *ledger {
	ctx, cancel := context.WithCancel(l.ctx)
	opened := &ledger{epoch: epoch, cancel: cancel}
	configMaps := provider.CoreV1().ConfigMaps(twin)
	changed := func(before, after any) {
		old, _ := before.(*published)
		now, _ := after.(*published)
		l.changed(twin, old, now)
	}
	opened.store, opened.watch = cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: selection.ListerWatcher(selection.Named(offloadingv1beta1.SecretLedger), configMaps.List, configMaps.Watch, provider),
		ObjectType:    &corev1.ConfigMap{},
		Transform:     tokensOnly,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(after any) { changed(nil, after) },
			UpdateFunc: changed,
			// A ledger that vanishes says nothing about any Secret.
		},
	})
	l.group.Go(func() { opened.watch.RunWithContext(ctx) })
	l.group.Go(func() {
		select {
		case <-ctx.Done():
		case <-opened.watch.HasSyncedChecker().Done():
			changed(nil, nil)
		}
	})
	return opened
}

// tokensOnly keeps of a ledger what concerns tokens.
func tokensOnly(object any) (any, error) {
	configMap, ok := object.(*corev1.ConfigMap)
	if !ok {
		return object, nil
	}
	_, partial := configMap.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]
	says := &published{
		ObjectMeta: metav1.ObjectMeta{Namespace: configMap.Namespace, Name: configMap.Name, UID: configMap.UID, ResourceVersion: configMap.ResourceVersion},
		version:    configMap.ResourceVersion, entries: map[string]reflection.TokenEntry{}, partial: partial,
	}
	for name, value := range configMap.Data {
		if entry, ok := reflection.ParseTokenEntry(value); ok {
			says.entries[name] = entry
		}
	}
	return says, nil
}
