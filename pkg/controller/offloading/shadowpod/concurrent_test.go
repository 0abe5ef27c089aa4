package shadowpod

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

const otherUser = "liqo.io:slice:naples-0123456789ab"

// as lets another user ask.
func as(user string, shadow *offloadingv1beta1.ShadowPod) *offloadingv1beta1.ShadowPod {
	shadow.Labels[offloadingv1beta1.CreatorUserLabel] = capacity.UserLabel(user)
	return shadow
}

func grantTo(user, cpu string) *offloadingv1beta1.Quota {
	q := quota(cpu)
	q.Name, q.Spec.User = capacity.UserLabel(user), user
	return q
}

// reading runs something when a Pod is read past the cache, after the answer is known.
func (w *world) reading(name string, then func()) {
	w.reconciler.Live = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, k client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			err := c.Get(ctx, k, o, opts...)
			if _, isPod := o.(*corev1.Pod); isPod && k.Name == name {
				then()
			}
			return err
		}})
}

// An API server that takes its time over one tenant's pod holds up no other tenant.
func TestATenantDoesNotWaitForAnother(t *testing.T) {
	w := enforcing(t, "3", asking("a", "3"), asking("b", "3"), as(otherUser, asking("c", "1")))
	if err := w.Client.Create(t.Context(), grantTo(otherUser, "1")); err != nil {
		t.Fatal(err)
	}
	w.run("a")
	w.removeShadow("a")
	asked, answer := make(chan struct{}), make(chan struct{})
	w.reading("a", func() { close(asked); <-answer })
	pass := func(name string) <-chan error {
		done := make(chan error, 1)
		go func() {
			_, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: key.Namespace, Name: name}})
			done <- err
		}()
		return done
	}
	await := func(what string, done <-chan error) {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatalf("waited in vain for %s", what)
		}
	}
	b := pass("b")
	<-asked
	await("a pass of another tenant", pass("c"))
	close(answer)
	await("the pass that asked", b)
	if diff := cmp.Diff(map[string]string{"b": "runs", "c": "runs"}, w.run("b", "c")); diff != "" {
		t.Error(diff)
	}
}

// V9: while a Pod is being made, the share of its ShadowPod is nobody else's, although the ShadowPod is gone and there is no Pod.
func TestAShareIsKeptWhileThePodIsMade(t *testing.T) {
	w := enforcing(t, "3", asking("a", "3"), asking("b", "3"))
	var meanwhile map[string]string
	w.reconciler.Client = interceptor.NewClient(w.Client.(client.WithWatch), interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			if o.GetName() == "a" {
				w.leaveBehind("a")
				meanwhile = w.run("b")
			}
			return c.Create(ctx, o, opts...)
		}})
	w.run("a")
	if diff := cmp.Diff(map[string]string{"b": "QuotaExceeded"}, meanwhile); diff != "" {
		t.Errorf("while the pod is made: %s", diff)
	}
	if diff := cmp.Diff(map[string]string{"b": "QuotaExceeded"}, w.run("b")); diff != "" {
		t.Errorf("when it is made: %s", diff)
	}
	w.change("a", func(pod *corev1.Pod) { pod.Status.Phase = corev1.PodFailed })
	if diff := cmp.Diff(map[string]string{"b": "runs"}, w.run("b")); diff != "" {
		t.Errorf("when it has finished: %s", diff)
	}
}

// V9: a claim does not end for something that was seen before it was made.
func TestAClaimThatWasMadeAgainStays(t *testing.T) {
	a := asking("a", "3")
	w := enforcing(t, "3", a.DeepCopy(), asking("b", "3"))
	w.run("a")
	w.removeShadow("a")
	w.reading("a", func() {
		if err := w.reconciler.claim(t.Context(), a, nil); err != nil {
			t.Error(err)
		}
		w.reconciler.claims.made(a, "")
	})
	if diff := cmp.Diff(map[string]string{"b": "QuotaExceeded"}, w.run("b")); diff != "" {
		t.Error(diff)
	}
}

// V9: whatever passes there are at a time, what runs is what was granted.
func TestConcurrentPassesStayWithinTheGrants(t *testing.T) {
	users, names := []string{sliceUser, otherUser}, []string{}
	objects := []client.Object{grantTo(sliceUser, "3"), grantTo(otherUser, "3")}
	for i := range 16 {
		shadow := as(users[i%2], asking(fmt.Sprintf("web-%d", i), "1"))
		objects, names = append(objects, shadow), append(names, shadow.Name)
	}
	w := newWorld(t)
	w.reconciler.Enforce = true
	w.reconciler.Client = fake.NewClientBuilder().WithScheme(w.Scheme()).WithObjects(objects...).WithStatusSubresource(&offloadingv1beta1.ShadowPod{}).Build()
	w.reconciler.Live = w.reconciler.Client
	var passes sync.WaitGroup
	for _, name := range names {
		passes.Go(func() {
			k := types.NamespacedName{Namespace: key.Namespace, Name: name}
			for range 4 {
				if _, err := w.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: k}); err != nil && !apierrors.IsConflict(err) {
					t.Error(err)
				}
			}
		})
	}
	passes.Wait()
	var pods corev1.PodList
	if err := w.reconciler.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	run := map[string]int{}
	for i := range pods.Items {
		run[pods.Items[i].Annotations[offloadingv1beta1.CreatorUserAnnotation]]++
	}
	if diff := cmp.Diff(map[string]int{capacity.UserLabel(sliceUser): 3, capacity.UserLabel(otherUser): 3}, run); diff != "" {
		t.Error(diff)
	}
}
