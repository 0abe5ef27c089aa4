package token

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/replica"
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

const (
	// maxLedgers bounds what a provider may answer when it is asked for one ledger.
	maxLedgers = 10
	// maxEntries are read of a ledger: more than fit into a ConfigMap. Of one that has more the rest is not known.
	maxEntries = 50000
)

type ledger struct {
	epoch  int64
	copy   *replica.Replica[*published]
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
	if !current.copy.Synced() {
		return nil, false
	}
	says, _ = current.copy.Get(offloadingv1beta1.SecretLedger)
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
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, offloadingv1beta1.SecretLedger).String()
	opened.copy = replica.New(replica.Options[*published]{
		Name: "tokens", Namespace: twin, Hold: tokensOnly, Limit: maxLedgers,
		Over: func() {
			klog.FromContext(ctx).Info("A provider shows more than the one ledger that it was asked for", "namespace", twin)
		},
		Example: func() runtime.Object { return &corev1.ConfigMap{} },
		Page: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			list, err := configMaps.List(ctx, o)
			if err != nil {
				return nil, fmt.Errorf("reading ConfigMap %s/%s of the provider: %w", twin, offloadingv1beta1.SecretLedger, err)
			}
			return list, nil
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return configMaps.Watch(ctx, o)
		},
		Event: func(before, after *published, deleted bool) {
			if !deleted { // A ledger that vanishes says nothing about any Secret.
				l.changed(twin, before, after)
			}
		},
		Synced: func() { l.changed(twin, nil, nil) },
	})
	l.group.Go(func() { opened.copy.Run(ctx) })
	return opened
}

// tokensOnly keeps of a ledger what concerns tokens.
func tokensOnly(object any) (*published, bool) {
	configMap, is := object.(*corev1.ConfigMap)
	if !is || configMap.Name != offloadingv1beta1.SecretLedger {
		return nil, false
	}
	_, partial := configMap.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]
	says := &published{
		ObjectMeta: metav1.ObjectMeta{Namespace: configMap.Namespace, Name: configMap.Name, UID: configMap.UID, ResourceVersion: configMap.ResourceVersion},
		version:    configMap.ResourceVersion, entries: map[string]reflection.TokenEntry{}, partial: partial,
	}
	for name, value := range configMap.Data {
		entry, ok := reflection.ParseTokenEntry(value)
		switch {
		case !ok || len(name) > validation.DNS1123SubdomainMaxLength:
		case len(says.entries) == maxEntries:
			says.partial = true
		default:
			// Not as a part of what the provider wrote around it.
			entry.PodUID, entry.Shape = strings.Clone(entry.PodUID), strings.Clone(entry.Shape)
			says.entries[name] = entry
		}
	}
	return says, true
}
