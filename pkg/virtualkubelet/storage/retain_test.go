package storage

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/fakeapi"
)

// A volume with policy Retain that the user deletes stays, and with it what names its data and keeps the twin from going. It goes
// once the claim at the provider is deleted, or the user changes the policy.
func TestDeletedVolumeStaysWithItsData(t *testing.T) {
	for name, decide := range map[string]func(*testing.T, *world){
		"the claim at the provider is deleted": func(t *testing.T, w *world) {
			if err := w.remote.CoreV1().PersistentVolumeClaims("shop-rome").Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"the user gives the data up": func(t *testing.T, w *world) {
			volume, err := w.home.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
			if _, err := w.home.CoreV1().PersistentVolumes().Update(t.Context(), volume, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			w.reconciler.queue.Add(key{Namespace: "shop", Name: "data"}) // as it does every minute
		},
	} {
		t.Run(name, func(t *testing.T) {
			remote, volume := provided(local("data", "u1", "pvc-u1"), "r1")
			volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
			remote.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] = string(corev1.PersistentVolumeReclaimRetain)
			volume.Status.Phase = corev1.VolumeReleased
			now := metav1.Now()
			volume.DeletionTimestamp = &now
			w := start(t, []runtime.Object{volume}, []runtime.Object{remote})
			w.settled(t)
			if got := w.writes(); len(got) > 0 {
				t.Fatalf("wrote %v", got)
			}
			decide(t, w)
			await(t, "the volume to go", func(ctx context.Context) bool {
				_, err := w.home.CoreV1().PersistentVolumes().Get(ctx, "pvc-u1", metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
			w.remoteGone(t, "data")
		})
	}
}

// That the watch shows a claim no more, and the provider refuses to say whether it is gone, says nothing about its data.
func TestDeletedVolumeStaysWhileTheProviderRefusesToTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		remote, volume := provided(local("data", "u1", "pvc-u1"), "r1")
		volume.Spec.PersistentVolumeReclaimPolicy, volume.Status.Phase = corev1.PersistentVolumeReclaimRetain, corev1.VolumeReleased
		remote.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] = string(corev1.PersistentVolumeReclaimRetain)
		volume.DeletionTimestamp = new(metav1.Now())
		var asked atomic.Int32
		w := startWith(t, []runtime.Object{volume}, []runtime.Object{remote}, func(w *world, _ *Options) {
			fakeapi.React(&w.remote.Fake, "get", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
				asked.Add(1)
				return forbidden(action)
			})
		})
		synctest.Wait()
		if err := w.remote.CoreV1().PersistentVolumeClaims("shop-rome").Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := asked.Load(); n < 2 {
			t.Errorf("the provider was asked %d times", n)
		}
		if _, err := w.home.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{}); err != nil {
			t.Errorf("the volume went: %v", err)
		}
	})
}

// A claim that was marked as retained is nobody's to give up any more.
func TestRetainedClaimIsLeftAlone(t *testing.T) {
	remote, volume := provided(local("data", "u1", "pvc-u1"), "r1")
	remote.Labels[offloadingv1beta1.RetainedLabel] = "true"
	volume.Status.Phase = corev1.VolumeReleased
	w := start(t, []runtime.Object{volume}, []runtime.Object{remote})
	w.settled(t)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// A volume that was given back and then is to be retained is taken away by force: its data stays, because the provider's record of the
// policy was brought up to date before.
func TestRetainedDataOutlivesItsVolume(t *testing.T) {
	remote, volume := provided(local("data", "u1", "pvc-u1"), "r1")
	volume.Spec.PersistentVolumeReclaimPolicy, volume.Status.Phase = corev1.PersistentVolumeReclaimRetain, corev1.VolumeReleased
	w := start(t, []runtime.Object{volume}, []runtime.Object{remote})
	claims := w.remote.CoreV1().PersistentVolumeClaims("shop-rome")
	await(t, "the policy to be recorded", func(ctx context.Context) bool {
		live, err := claims.Get(ctx, "data", metav1.GetOptions{})
		return err == nil && live.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] == string(corev1.PersistentVolumeReclaimRetain)
	})
	if err := w.home.CoreV1().PersistentVolumes().Delete(t.Context(), "pvc-u1", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.reconciler.queue.Add(key{Namespace: "shop", Name: "data"}) // as it does every minute
	w.settled(t)
	if _, err := claims.Get(t.Context(), "data", metav1.GetOptions{}); err != nil {
		t.Errorf("the data: %v", err)
	}
}
