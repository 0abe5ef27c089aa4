package servingcert

import (
	"context"
	"sync"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/selection"
)

// follow notes until ctx ends that one of the objects that we keep was made, changed or deleted. They are asked for by name, and only
// their metadata: what they hold is read when it is needed.
func (m *Manager) follow(ctx context.Context, group *sync.WaitGroup) {
	secret := client.ObjectKey{Namespace: m.options.Namespace, Name: m.options.SecretName}
	kinds := map[schema.GroupVersionKind][]client.ObjectKey{corev1.SchemeGroupVersion.WithKind("Secret"): {secret}}
	for _, config := range configurations() {
		kind := admissionregistrationv1.SchemeGroupVersion.WithKind(config.kind)
		for _, name := range m.options.WebhookConfigurations {
			kinds[kind] = append(kinds[kind], client.ObjectKey{Name: name})
		}
	}
	for kind, keys := range kinds {
		for _, key := range keys {
			reflector := cache.NewReflectorWithOptions(m.source(kind, key), nil, m.changed, cache.ReflectorOptions{Name: "serving-certificate"})
			group.Go(func() { reflector.RunWithContext(ctx) })
		}
	}
}

func (m *Manager) source(kind schema.GroupVersionKind, key client.ObjectKey) cache.ListerWatcher {
	list := func() *metav1.PartialObjectMetadataList {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return list
	}
	return selection.ListerWatcher(selection.Named(key.Name),
		func(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
			found := list()
			return found, m.options.Client.List(ctx, found, &client.ListOptions{Namespace: key.Namespace, Raw: &o, Limit: o.Limit, Continue: o.Continue})
		},
		func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return m.options.Client.Watch(ctx, list(), &client.ListOptions{Namespace: key.Namespace, Raw: &o})
		}, m.options.Client)
}

// signal is where it is noted that something changed, once however much did. It keeps nothing.
type signal chan struct{}

func (s signal) note() error {
	select {
	case s <- struct{}{}:
	default:
	}
	return nil
}

// Add implements cache.ReflectorStore.
func (s signal) Add(any) error { return s.note() }

// Update implements cache.ReflectorStore.
func (s signal) Update(any) error { return s.note() }

// Delete implements cache.ReflectorStore.
func (s signal) Delete(any) error { return s.note() }

// Replace implements cache.ReflectorStore.
func (s signal) Replace([]any, string) error { return s.note() }

// Resync implements cache.ReflectorStore.
func (s signal) Resync() error { return nil }
