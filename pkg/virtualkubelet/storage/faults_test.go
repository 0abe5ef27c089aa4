package storage

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/fakeapi"
)

// client-go pauses after errors by a clock of its own, which differs from that of the tests by decades.
func TestMain(m *testing.M) {
	utilruntime.ErrorHandlers = utilruntime.ErrorHandlers[:1]
	m.Run()
}

var volumes = corev1.SchemeGroupVersion.WithResource("persistentvolumes")

var errLost = errors.New("connection reset by peer")

// lose carries out the first request of a verb and loses the answer to it; the two after it fail before they have an effect.
func lose(c *fake.Clientset, verb, kind string) {
	var mu sync.Mutex
	times := 0
	fakeapi.React(&c.Fake, verb, kind, func(action clienttesting.Action) (bool, runtime.Object, error) {
		mu.Lock()
		defer mu.Unlock()
		if times++; times > 3 {
			return false, nil, nil
		}
		if times > 1 {
			return true, nil, apierrors.NewServiceUnavailable("flapping")
		}
		if create, is := action.(clienttesting.CreateAction); is {
			if claim, is := create.GetObject().(*corev1.PersistentVolumeClaim); is {
				claim.UID, claim.Status.Phase = "r1", corev1.ClaimPending
			}
		}
		if _, _, err := clienttesting.ObjectReaction(c.Tracker())(action); err != nil {
			return true, nil, err
		}
		return true, nil, errLost
	})
}

// A8: a request that was carried out although its answer was lost, or that failed, is made good: one claim there, one volume here,
// with each other's names, and both gone in the end.
func TestA8LostAnswersAboutClaims(t *testing.T) {
	for name, tc := range map[string]struct {
		atHome     bool
		verb, kind string
		// late says that it happens when the claim goes.
		late bool
	}{
		"creating the claim there": {false, "create", "persistentvolumeclaims", false},
		"changing the claim there": {false, "patch", "persistentvolumeclaims", false},
		"deleting the claim there": {false, "delete", "persistentvolumeclaims", false},
		"reading the claim there":  {false, "get", "persistentvolumeclaims", true},
		"listing the claims there": {false, "list", "persistentvolumeclaims", false},
		"creating the volume":      {true, "create", "persistentvolumes", false},
		"changing the volume":      {true, "patch", "persistentvolumes", false},
		"deleting the volume":      {true, "delete", "persistentvolumes", false},
		"reading the volume":       {true, "get", "persistentvolumes", true},
		"reading the class":        {true, "get", "storageclasses", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				fail := func(w *world) {
					if tc.atHome {
						lose(w.home, tc.verb, tc.kind)
						return
					}
					lose(w.remote, tc.verb, tc.kind)
				}
				w := startWith(t, []runtime.Object{local("data", "u1", "")}, nil, func(w *world, _ *Options) {
					if !tc.late {
						fail(w)
					}
				})
				var volume *corev1.PersistentVolume
				await(t, "the volume", func(ctx context.Context) bool {
					var err error
					volume, err = w.home.CoreV1().PersistentVolumes().Get(ctx, "pvc-u1", metav1.GetOptions{})
					return err == nil
				})
				remote, err := w.remote.CoreV1().PersistentVolumeClaims("shop-rome").Get(t.Context(), "data", metav1.GetOptions{})
				if handle, ok := reflection.HandleOf(volume); err != nil || !ok || handle.UID != remote.UID {
					t.Fatalf("the volume stands for %v, the claim is %v, error %v", handle, remote.UID, err)
				}
				w.bind(t, "data", "pvc-u1")
				w.label(t, "data", "one")
				if now, err := w.remote.CoreV1().PersistentVolumeClaims("shop-rome").Get(t.Context(), "data", metav1.GetOptions{}); err != nil || now.UID != remote.UID {
					t.Errorf("the claim is %v, and was %v, error %v", now.UID, remote.UID, err)
				}
				if tc.late {
					fail(w)
				}
				w.giveBack(t, "data", "pvc-u1")
				await(t, "claim and volume to go", func(context.Context) bool {
					_, remote := w.remote.Tracker().Get(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), "shop-rome", "data")
					_, volume := w.home.Tracker().Get(volumes, "", "pvc-u1")
					return apierrors.IsNotFound(remote) && apierrors.IsNotFound(volume)
				})
			})
		})
	}
}

// bind does what Kubernetes does once a claim has its volume.
func (w *world) bind(t *testing.T, name, volume string) {
	t.Helper()
	claims := w.home.CoreV1().PersistentVolumeClaims("shop")
	await(t, "claim "+name+" to be bound", func(ctx context.Context) bool {
		claim, err := claims.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false
		}
		claim.Spec.VolumeName, claim.Status.Phase = volume, corev1.ClaimBound
		_, err = claims.Update(ctx, claim, metav1.UpdateOptions{})
		return err == nil
	})
}

// giveBack deletes a claim, and does what Kubernetes does with its volume then.
func (w *world) giveBack(t *testing.T, name, volume string) {
	t.Helper()
	if err := w.home.CoreV1().PersistentVolumeClaims("shop").Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	object, err := w.home.Tracker().Get(volumes, "", volume)
	if err != nil {
		t.Fatal(err)
	}
	live := object.(*corev1.PersistentVolume).DeepCopy()
	live.Status.Phase = corev1.VolumeReleased
	if err := w.home.Tracker().Update(volumes, live, ""); err != nil {
		t.Fatal(err)
	}
}

// A9: watches that end, are refused as too old, or never send a bookmark are begun anew from a list, with pauses; that alone writes
// nothing, and what came meanwhile is seen.
func TestA9ClaimWatchesThatEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim := local("data", "u1", "pvc-u1")
		remote, volume := provided(claim, "r1")
		began := map[string]int{}
		var mu sync.Mutex
		w := startWith(t, []runtime.Object{claim, volume}, []runtime.Object{remote}, func(w *world, _ *Options) {
			for side, c := range map[string]*fake.Clientset{"home": w.home, "remote": w.remote} {
				c.PrependWatchReactor("persistentvolumeclaims", func(clienttesting.Action) (bool, watch.Interface, error) {
					mu.Lock()
					defer mu.Unlock()
					began[side]++
					switch began[side] {
					case 1:
						return true, nil, apierrors.NewResourceExpired("too old resource version")
					case 2:
						ended := watch.NewRaceFreeFake()
						ended.Error(&metav1.Status{Status: metav1.StatusFailure, Code: 410, Reason: metav1.StatusReasonExpired})
						return true, ended, nil
					case 3:
						ended := watch.NewRaceFreeFake()
						ended.Stop()
						return true, ended, nil
					}
					return false, nil, nil
				})
			}
		})
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := w.writes(); len(got) > 0 {
			t.Errorf("wrote %v", got)
		}
		w.label(t, "data", "one")
		for side, c := range map[string]*fake.Clientset{"home": w.home, "remote": w.remote} {
			lists := 0
			for _, action := range c.Actions() {
				if action.Matches("list", "persistentvolumeclaims") {
					lists++
				}
			}
			if lists < 2 || lists > 12 {
				t.Errorf("%s: %d lists for three watches that ended", side, lists)
			}
		}
		writes := w.writes()
		slices.Sort(writes)
		if diff := cmp.Diff([]string{"home update persistentvolumeclaims", "remote patch persistentvolumeclaims"}, writes); diff != "" {
			t.Errorf("writes, the test's own among them (-want +got):\n%s", diff)
		}
	})
}

// versioned deletes as an API server does: only what the preconditions say.
func versioned(c *fake.Clientset, resource, namespace string) {
	fakeapi.React(&c.Fake, "delete", resource, func(action clienttesting.Action) (bool, runtime.Object, error) {
		deletion := action.(clienttesting.DeleteActionImpl)
		object, err := c.Tracker().Get(action.GetResource(), namespace, deletion.Name)
		if err != nil {
			return true, nil, err
		}
		live, wanted := object.(metav1.Object), deletion.DeleteOptions.Preconditions
		if wanted != nil && (wanted.UID != nil && *wanted.UID != live.GetUID() ||
			wanted.ResourceVersion != nil && *wanted.ResourceVersion != live.GetResourceVersion()) {
			return true, nil, apierrors.NewConflict(action.GetResource().GroupResource(), deletion.Name, errors.New("another version"))
		}
		return false, nil, nil
	})
}

// A11: the provider's API server shows claims as they were before. What is decided by that is carried out only if it is still so: a
// claim that was retained meanwhile, made anew, or recorded as to be retained keeps its data, and its volume at home stays with it.
func TestA11AnOldViewDeletesNoClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		volume bool
	}{
		"retained meanwhile":               {func(c *corev1.PersistentVolumeClaim) { c.Labels[offloadingv1beta1.RetainedLabel] = "true" }, true},
		"made anew meanwhile":              {func(c *corev1.PersistentVolumeClaim) { c.UID = "r2" }, true},
		"retained meanwhile, volume gone":  {func(c *corev1.PersistentVolumeClaim) { c.Labels[offloadingv1beta1.RetainedLabel] = "true" }, false},
		"made anew meanwhile, volume gone": {func(c *corev1.PersistentVolumeClaim) { c.UID = "r2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claim := local("data", "u1", "pvc-u1")
				remote, volume := provided(claim, "r1")
				remote.ResourceVersion = "5"
				w := startWith(t, []runtime.Object{claim, volume}, []runtime.Object{remote}, func(w *world, _ *Options) {
					versioned(w.remote, "persistentvolumeclaims", "shop-rome")
					w.remote.PrependWatchReactor("persistentvolumeclaims", func(clienttesting.Action) (bool, watch.Interface, error) {
						return true, watch.NewRaceFreeFake(), nil // It says nothing.
					})
				})
				synctest.Wait()
				now := remote.DeepCopy()
				now.ResourceVersion = "6"
				tc.change(now)
				if err := w.remote.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), now, "shop-rome"); err != nil {
					t.Fatal(err)
				}
				if !tc.volume {
					if err := w.home.Tracker().Delete(volumes, "", "pvc-u1"); err != nil {
						t.Fatal(err)
					}
					if err := w.home.CoreV1().PersistentVolumeClaims("shop").Delete(t.Context(), "data", metav1.DeleteOptions{}); err != nil {
						t.Fatal(err)
					}
				} else {
					w.giveBack(t, "data", "pvc-u1")
				}
				time.Sleep(5 * time.Minute)
				synctest.Wait()
				if live, err := w.remote.CoreV1().PersistentVolumeClaims("shop-rome").Get(t.Context(), "data", metav1.GetOptions{}); err != nil || live.UID != now.UID {
					t.Errorf("the claim at the provider is %v, error %v", live, err)
				}
				if _, err := w.home.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{}); (err == nil) != tc.volume {
					t.Errorf("the volume at home: %v", err)
				}
			})
		})
	}
}

// A11: this cluster's API server shows by its watch that a claim is gone which is there: it is asked before anything is deleted.
func TestA11AnOldViewOfTheHomeDeletesNoClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim := local("data", "u1", "pvc-u1")
		remote, volume := provided(claim, "r1")
		volume.Status.Phase = corev1.VolumeReleased
		w := startWith(t, []runtime.Object{claim, volume}, []runtime.Object{remote}, func(w *world, _ *Options) {
			fakeapi.React(&w.home.Fake, "list", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				// From an empty version the fake's watch would hand out what it keeps, the claim among it.
				return true, &corev1.PersistentVolumeClaimList{ListMeta: metav1.ListMeta{ResourceVersion: "999"}}, nil
			})
		})
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if got := w.writes(); len(got) > 0 {
			t.Errorf("wrote %v", got)
		}
	})
}

// forbidden is the answer to who has no rights.
func forbidden(clienttesting.Action) (bool, runtime.Object, error) {
	return true, nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data", errors.New("no rights"))
}

// A volume that was deleted, or given back, and whose claim at the provider went while no virtual kubelet ran, is named by the
// VirtualNode. It goes once the provider itself says that the claim is gone, and no sooner.
func TestVolumesThatWait(t *testing.T) {
	other := func(uid types.UID) func(*corev1.PersistentVolumeClaim) {
		return func(c *corev1.PersistentVolumeClaim) { c.UID = uid }
	}
	for name, tc := range map[string]struct {
		policy  corev1.PersistentVolumeReclaimPolicy
		deleted bool
		claim   bool
		remote  func(*corev1.PersistentVolumeClaim)
		volume  func(*corev1.PersistentVolume)
		refuses bool
		goes    bool
	}{
		"deleted, and the provider refuses to tell":    {policy: "Retain", deleted: true, refuses: true},
		"given back, and the provider refuses to tell": {policy: "Delete", refuses: true},
		"deleted, its data retained and gone":          {policy: "Retain", deleted: true, goes: true},
		"given back, its data gone":                    {policy: "Delete", goes: true},
		"deleted, its data retained and there":         {policy: "Retain", deleted: true, remote: other("r1")},
		"deleted, another claim in its place":          {policy: "Retain", deleted: true, remote: other("r2"), goes: true},
		"deleted, its claim at home is there":          {policy: "Retain", deleted: true, claim: true},
		"at another provider":                          {policy: "Retain", deleted: true, volume: func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "paris/shop-rome/data/r1" }},
		"in a former twin":                             {policy: "Retain", deleted: true, volume: func(v *corev1.PersistentVolume) { v.Spec.CSI.VolumeHandle = "milan/before/data/r1" }},
		"of a namespace that is not offloaded":         {policy: "Retain", deleted: true, volume: func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "other" }},
		"on the way to another claim":                  {policy: "Retain", deleted: true, volume: func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = "" }},
		"neither deleted nor given back, data is gone": {policy: "Delete", volume: func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				claim := local("data", "u1", "pvc-u1")
				remote, volume := provided(claim, "r1")
				volume.Spec.PersistentVolumeReclaimPolicy, volume.Status.Phase = tc.policy, corev1.VolumeReleased
				remote.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] = string(tc.policy)
				if tc.deleted {
					volume.DeletionTimestamp = new(metav1.Now())
				}
				if tc.volume != nil {
					tc.volume(volume)
				}
				home, there := []runtime.Object{volume}, []runtime.Object(nil)
				if tc.claim {
					home = append(home, claim)
				}
				if tc.remote != nil {
					tc.remote(remote)
					there = append(there, remote)
				}
				w := startWith(t, home, there, func(w *world, _ *Options) {
					if tc.refuses {
						fakeapi.React(&w.remote.Fake, "get", "persistentvolumeclaims", forbidden)
					}
				})
				w.leads.Set(false)
				w.wanted.Change(func(now *Wanted) { now.Settings = Settings{Waiting: []string{"pvc-u1", "pvc-that-is-gone"}} })
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				if _, err := w.home.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{}); err != nil {
					t.Errorf("before it leads: %v", err)
				}
				w.leads.Set(true)
				time.Sleep(2 * time.Minute)
				synctest.Wait()
				_, err := w.home.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u1", metav1.GetOptions{})
				if gone := apierrors.IsNotFound(err); gone != tc.goes {
					t.Errorf("the volume is gone: %v, want %v", gone, tc.goes)
				}
				for _, write := range w.writes() {
					if strings.HasPrefix(write, "remote ") {
						t.Errorf("at the provider: %s", write)
					}
				}
			})
		})
	}
}
