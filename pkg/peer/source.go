package peer

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	"liqo.io/liqo/pkg/kube/selection"
)

// Source is where the credentials of a peer come from.
type Source interface {
	// Run calls changed with the kubeconfig at first and on each change, one call at a time, until ctx ends. It keeps silent
	// while there is none: what was known stays valid.
	Run(ctx context.Context, changed func(kubeconfig []byte)) error
}

// SecretSource takes the kubeconfig from one Secret, which it watches by name: get, list and watch on that one name are all
// the rights it needs.
type SecretSource struct {
	// Client for the cluster that holds the Secret.
	Client kubernetes.Interface
	// Namespace and Name of the Secret.
	Namespace, Name string
	// Key in the Secret's data; empty means authentication's KubeconfigKey.
	Key string
}

// Run implements Source.
func (s SecretSource) Run(ctx context.Context, changed func([]byte)) error {
	if s.Client == nil || s.Namespace == "" || s.Name == "" {
		return errors.New("watching a kubeconfig Secret: client, namespace and name must be given")
	}
	key := s.Key
	if key == "" {
		key = authv1beta1.KubeconfigKey
	}
	notify := func(object any) {
		if secret, ok := object.(*corev1.Secret); ok && secret.Name == s.Name && len(secret.Data[key]) != 0 {
			changed(secret.Data[key])
		}
	}
	secrets := s.Client.CoreV1().Secrets(s.Namespace)
	_, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: selection.ListerWatcher(selection.Named(s.Name), secrets.List, secrets.Watch, s.Client),
		ObjectType:    &corev1.Secret{},
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    notify,
			UpdateFunc: func(_, object any) { notify(object) },
		},
	})
	informer.RunWithContext(ctx)
	return nil
}

// StaticSource is a kubeconfig that never changes, for tests and for kubeconfigs that a user gave.
type StaticSource []byte

// Run implements Source.
func (s StaticSource) Run(ctx context.Context, changed func([]byte)) error {
	changed(s)
	<-ctx.Done()
	return nil
}

// sourceRetry is how long a source that failed is left alone.
const sourceRetry = 10 * time.Second
