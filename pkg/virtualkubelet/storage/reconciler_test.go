package storage

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/fakeapi"
)

// world is a Reconciler between two clusters.
type world struct {
	home, remote *fake.Clientset
	reconciler   *Reconciler
	// wanted and leads are what the Reconciler follows.
	wanted latest.Value[Wanted]
	leads  latest.Value[bool]
	mu     sync.Mutex
	events []string
	// epochs is how often what is watched at the provider was to be begun anew; changed is who is told of it.
	epochs  int64
	changed func(peer.State)
}

// stamp gives created claims at the provider a UID, as an API server does.
func stamp(c *fake.Clientset) {
	n := 0
	fakeapi.React(&c.Fake, "create", "persistentvolumeclaims", func(action clienttesting.Action) (bool, runtime.Object, error) {
		claim := action.(clienttesting.CreateAction).GetObject().(*corev1.PersistentVolumeClaim)
		n++
		claim.UID, claim.Status.Phase = types.UID(fmt.Sprintf("r%d", n)), corev1.ClaimPending
		return false, nil, nil
	})
}

type peerOf struct{ *world }

func (p peerOf) Clients() (peer.Clients, error) { return peer.Clients{Kube: p.remote}, nil }

func (p peerOf) State() peer.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return peer.State{Connected: true, Epoch: 1 + p.epochs}
}

func (p peerOf) Subscribe(f func(peer.State)) (cancel func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed = f
	return func() {}
}

func (w *world) Event(object runtime.Object, _, reason, message string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, fmt.Sprintf("%s: %s: %s", object.(metav1.Object).GetName(), reason, message))
}

func (w *world) told(part string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return strings.Contains(strings.Join(w.events, "\n"), part)
}

func local(name string, uid types.UID, volume string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: uid, Annotations: map[string]string{
			reflection.StorageProvisionerAnnotation: offloadingv1beta1.StorageProvisioner, reflection.SelectedNodeAnnotation: "milan",
		}},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: ptr.To("liqo"), VolumeName: volume, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
	claim.Status.Phase = corev1.ClaimPending
	if volume != "" {
		claim.Status.Phase = corev1.ClaimBound
	}
	return claim
}

var class = &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "liqo"}, Provisioner: offloadingv1beta1.StorageProvisioner}

// provided are the claim at the provider and the volume of a local claim, as an earlier run left them.
func provided(claim *corev1.PersistentVolumeClaim, uid types.UID) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	remote := reflection.RemoteClaim(reflection.ClaimInput{
		Local: claim, Home: "rome", Remote: "milan", Namespace: "shop-rome", Name: claim.Name, Volume: reflection.VolumeName(claim.UID),
		Reclaim: corev1.PersistentVolumeReclaimDelete, Offered: []authv1beta1.StorageType{{StorageClassName: "fast", Default: true}},
	}).Apply.(*corev1.PersistentVolumeClaim)
	remote.UID, remote.Status.Phase = uid, corev1.ClaimBound
	return remote, reflection.PlaceholderVolume(claim, class, "milan", remote)
}

func start(t *testing.T, home, remote []runtime.Object) *world {
	t.Helper()
	return startWith(t, home, remote, func(*world, *Options) {})
}

// startWith has the world and the options prepared before anything runs.
func startWith(t *testing.T, home, remote []runtime.Object, prepare func(*world, *Options)) *world {
	t.Helper()
	w := &world{home: fake.NewClientset(append(home, class.DeepCopy())...), remote: fake.NewClientset(remote...)}
	fakeapi.NoGaps(&w.home.Fake, w.home.Tracker())
	fakeapi.NoGaps(&w.remote.Fake, w.remote.Tracker())
	stamp(w.remote)
	o := Options{Home: "rome", Remote: "milan", Node: "milan", Local: w.home, Peer: peerOf{w}, Recorder: w, Wanted: &w.wanted, Leads: &w.leads}
	prepare(w, &o)
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	w.reconciler = r
	w.leads.Set(true)
	w.run(t, r)
	return w
}

// run runs a Reconciler in this world.
func (w *world) run(t *testing.T, r *Reconciler) {
	t.Helper()
	w.wanted.Set(Wanted{
		Settings: Settings{Offered: []authv1beta1.StorageType{{StorageClassName: "fast", Default: true}}},
		Mapping:  map[string]string{"shop": "shop-rome"}, Workers: 3,
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func await(t *testing.T, what string, ask func(ctx context.Context) bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) { return ask(ctx), nil })
	if err != nil {
		t.Fatalf("waited for %s", what)
	}
}

// settled waits until a marker that was made after all else has been handled.
func (w *world) settled(t *testing.T) {
	t.Helper()
	marker := local("marker", "marker", "")
	marker.Annotations[offloadingv1beta1.RemoteStorageClassAnnotation] = "no-such-class"
	if _, err := w.home.CoreV1().PersistentVolumeClaims("shop").Create(t.Context(), marker, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the marker to be refused", func(context.Context) bool { return w.told("marker: " + offloadingv1beta1.ReasonVolumeRefused) })
}

func (w *world) writes() []string {
	var list []string
	for cluster, c := range map[string]*fake.Clientset{"home": w.home, "remote": w.remote} {
		for _, action := range c.Actions() {
			switch action.GetVerb() {
			case "get", "list", "watch":
			default:
				if created, ok := action.(clienttesting.CreateAction); ok && created.GetObject().(metav1.Object).GetName() == "marker" {
					continue
				}
				list = append(list, cluster+" "+action.GetVerb()+" "+action.GetResource().Resource)
			}
		}
	}
	return list
}

func (w *world) remoteGone(t *testing.T, name string) {
	t.Helper()
	await(t, "the claim at the provider to be deleted", func(ctx context.Context) bool {
		_, err := w.remote.CoreV1().PersistentVolumeClaims("shop-rome").Get(ctx, name, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}

func TestFirstPodOnThisNode(t *testing.T) {
	w := start(t, []runtime.Object{local("data", "u1", "")}, nil)
	await(t, "the volume", func(ctx context.Context) bool {
		volume, err := w.home.CoreV1().PersistentVolumes().Get(ctx, "pvc-u1", metav1.GetOptions{})
		if err != nil {
			return false
		}
		handle, ok := reflection.HandleOf(volume)
		return ok && handle.UID == "r1" && handle.Namespace == "shop-rome"
	})
}

// What is watched at the provider is begun anew with each epoch of the connection, as when it gave rights back: a watch that was refused
// meanwhile would be tried again late.
func TestClaimsAreWatchedAnewWithEachEpoch(t *testing.T) {
	w := start(t, []runtime.Object{local("data", "u1", "")}, nil)
	watches := func() (n int) {
		for _, action := range w.remote.Actions() {
			if action.Matches("watch", "persistentvolumeclaims") {
				n++
			}
		}
		return n
	}
	await(t, "the twin to be watched", func(context.Context) bool { return watches() == 1 })
	w.mu.Lock()
	w.epochs++
	changed := w.changed
	w.mu.Unlock()
	changed(peerOf{w}.State())
	await(t, "the twin to be watched anew", func(context.Context) bool { return watches() == 2 })
}

func TestFirstPodElsewhere(t *testing.T) {
	elsewhere := local("data", "u1", "")
	elsewhere.Annotations[reflection.SelectedNodeAnnotation] = "paris"
	w := start(t, []runtime.Object{elsewhere}, nil)
	w.settled(t)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// A restart with everything in place writes nothing.
func TestRestartWritesNothing(t *testing.T) {
	claim := local("data", "u1", "pvc-u1")
	remote, volume := provided(claim, "r1")
	w := start(t, []runtime.Object{claim, volume}, []runtime.Object{remote})
	w.settled(t)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// D5 and C4: a claim that is gone at the provider is not made again.
func TestLostClaimIsNotMadeAgain(t *testing.T) {
	claim := local("data", "u1", "pvc-u1")
	_, volume := provided(claim, "r1")
	w := start(t, []runtime.Object{claim, volume}, nil)
	await(t, "the loss to be told", func(context.Context) bool { return w.told("data: " + offloadingv1beta1.ReasonVolumeLost) })
	w.settled(t)
	if got := w.writes(); len(got) > 0 {
		t.Errorf("wrote %v", got)
	}
}

// C2: a claim of the same name with a new UID does not get the data of the earlier one.
func TestNewClaimOfTheSameName(t *testing.T) {
	old := local("data", "u1", "pvc-u1")
	remote, volume := provided(old, "r1")
	volume.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	volume.Status.Phase = corev1.VolumeReleased
	w := start(t, []runtime.Object{local("data", "u2", ""), volume}, []runtime.Object{remote})
	await(t, "the conflict to be told", func(context.Context) bool { return w.told("data: " + offloadingv1beta1.ReasonClaimConflict) })
	if _, err := w.home.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-u2", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the new claim got a volume (%v)", err)
	}
}

func TestClaimThatIsGone(t *testing.T) {
	old := local("data", "u1", "pvc-u1")
	for name, tc := range map[string]struct {
		change func(*corev1.PersistentVolume)
		gone   bool
	}{
		"deleted, its volume given back":     {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }, true},
		"deleted, its volume not given back": {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false},
		"deleted, its volume retained": {func(v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeReleased
			v.Spec.PersistentVolumeReclaimPolicy = "Retain"
		}, false},
		"deleted, its volume on the way elsewhere": {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable; v.Spec.ClaimRef.UID = "" }, false},
		"deleted, its volume of another claim": {func(v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeReleased
			v.Spec.CSI.VolumeHandle = "milan/shop-rome/data/r9"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			remote, volume := provided(old, "r1")
			tc.change(volume)
			remote.Annotations[offloadingv1beta1.ReclaimPolicyAnnotation] = string(volume.Spec.PersistentVolumeReclaimPolicy)
			w := start(t, []runtime.Object{volume}, []runtime.Object{remote})
			if tc.gone {
				w.remoteGone(t, "data")
				if _, err := w.home.CoreV1().PersistentVolumes().Get(t.Context(), volume.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
					t.Errorf("the volume is still there (%v)", err)
				}
				return
			}
			w.settled(t)
			if got := w.writes(); len(got) > 0 {
				t.Errorf("wrote %v", got)
			}
		})
	}
}

// H1: what the provider refuses is told in its own words, once.
func TestRefusedByTheProvider(t *testing.T) {
	w := start(t, nil, nil)
	fakeapi.React(&w.remote.Fake, "create", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), "data", fmt.Errorf("exceeded quota: storage"))
	})
	if _, err := w.home.CoreV1().PersistentVolumeClaims("shop").Create(t.Context(), local("data", "u1", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the refusal to be told", func(context.Context) bool { return w.told("exceeded quota: storage") })
}
