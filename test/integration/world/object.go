package world

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

const (
	// Healing is how long it may take until everything is in step again.
	Healing = 4 * time.Minute
	// atOnce is how many requests of a test are under way at a time.
	atOnce = 16
)

// AwaitThere waits until an object exists.
func AwaitThere(t *testing.T, c *fixture.Cluster, object client.Object) {
	t.Helper()
	fixture.Await(t, fixture.Patience, fmt.Sprintf("%T %s at %s", object, object.GetName(), c.ID), func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return err == nil, fmt.Sprint(err)
	})
}

// WordMap is a ConfigMap that holds a word.
func WordMap(namespace, name, word string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string]string{"word": word}}
}

// Each does the same for numbers from 0 on, several at a time.
func Each(t *testing.T, doing string, count int, do func(ctx context.Context, i int) error) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	for i := range count {
		group.Go(func() error { return do(ctx, i) })
	}
	fixture.Must(t, doing, group.Wait())
}

// words is what the ConfigMaps of a namespace that the test made hold.
func words(ctx context.Context, c *fixture.Cluster, namespace string) (map[string]string, error) {
	list := &corev1.ConfigMapList{}
	if err := c.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for i := range list.Items {
		if word, ours := list.Items[i].Data["word"]; ours {
			all[list.Items[i].Name] = word
		}
	}
	return all, nil
}

// differences counts what two maps do not have in common, and names one.
func differences(a, b map[string]string) (count int, example string) {
	for key := range a {
		if other, there := b[key]; !there || other != a[key] {
			count, example = count+1, fmt.Sprintf("%s is %q and %q", key, a[key], other)
		}
	}
	for key := range b {
		if _, there := a[key]; !there {
			count, example = count+1, key+" is there too much"
		}
	}
	return count, example
}

// AwaitWords waits until both sides hold the same ConfigMaps, so many.
func (s *Shared) AwaitWords(t *testing.T, namespace string, count int) {
	t.Helper()
	fixture.Await(t, Healing, "the ConfigMaps of both sides to be the same", func(ctx context.Context) (bool, string) {
		local, err := words(ctx, s.Rome, namespace)
		if err != nil {
			return false, err.Error()
		}
		remote, err := words(ctx, s.Milan, namespace)
		if err != nil {
			return false, err.Error()
		}
		differ, example := differences(local, remote)
		return differ == 0 && len(local) == count, fmt.Sprintf("%d at home, %d differ: %s", len(local), differ, example)
	})
}

// Lie writes a status at milan as its administrator.
func (s *Shared) Lie(t *testing.T, object client.Object, status any) {
	t.Helper()
	patch, err := json.Marshal(map[string]any{"status": status})
	fixture.Must(t, "encoding a status", err)
	fixture.Must(t, "writing a status as the provider", s.Milan.Client.Status().Patch(t.Context(), object, client.RawPatch(types.MergePatchType, patch)))
}

// Provide makes objects at milan as its administrator, which go when the test ends.
func (s *Shared) Provide(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		fixture.Must(t, fmt.Sprintf("creating %T at milan", object), s.Milan.Client.Create(t.Context(), object))
		t.Cleanup(func() {
			err := s.Milan.Client.Delete(context.WithoutCancel(t.Context()), object)
			fixture.Must(t, fmt.Sprintf("deleting %T at milan", object), client.IgnoreNotFound(err))
		})
	}
}

// AwaitGone waits until an object is gone.
func AwaitGone(t *testing.T, c *fixture.Cluster, object client.Object) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, fmt.Sprintf("%T %s to go from %s", object, object.GetName(), c.ID), func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(object), object)
		return apierrors.IsNotFound(err), fmt.Sprintf("finalizers %v, deleted %v, error %v", object.GetFinalizers(), object.GetDeletionTimestamp(), err)
	})
}
