package provisioner

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	testclock "k8s.io/utils/clock/testing"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

type world struct {
	*testing.T
	client.Client
	claims  *claims
	volumes *volumes
}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	objects = append(objects, node("worker", ""), node("milan", corev1beta1.VirtualNodeType), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: "liqo"}, Provisioner: offloadingv1beta1.StorageProvisioner})
	w := &world{T: t, Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&corev1.PersistentVolumeClaim{}).Build()}
	o := Options{Namespace: "liqo-storage", Live: w.Client, Events: events.NewFakeRecorder(100), Clock: testclock.NewFakePassiveClock(time.Unix(100000, 0))}
	w.claims, w.volumes = &claims{Client: w.Client, Options: o}, &volumes{Client: w.Client, Options: o}
	return w
}

func node(name, kind string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{}}}
	if kind != "" {
		n.Labels[corev1beta1.TypeLabel] = kind
	}
	return n
}

func claim(node string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u1", Annotations: map[string]string{
			reflection.StorageProvisionerAnnotation: offloadingv1beta1.StorageProvisioner, reflection.SelectedNodeAnnotation: node}},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: ptr.To("liqo"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
}

func (w *world) reconcile() {
	w.Helper()
	if _, err := w.claims.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "data"}}); err != nil {
		w.Fatal(err)
	}
	if _, err := w.volumes.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "pvc-u1"}}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) there(o client.Object) bool {
	w.Helper()
	err := w.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

func behind() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-storage", Name: "u1"}}
}

func front() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1"}}
}

// bind provides the volume behind, as a real provisioner does.
func (w *world) bind() {
	w.Helper()
	b := behind()
	if !w.there(b) {
		w.Fatal("there is no claim behind")
	}
	b.UID = "b1"
	b.Spec.VolumeName = "real"
	if err := w.Update(context.Background(), b); err != nil {
		w.Fatal(err)
	}
	b.Status.Phase, b.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if err := w.Status().Update(context.Background(), b); err != nil {
		w.Fatal(err)
	}
	err := w.Create(context.Background(), &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "real"}, Spec: corev1.PersistentVolumeSpec{
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}},
		ClaimRef:               &corev1.ObjectReference{Namespace: "liqo-storage", Name: "u1", UID: "b1"},
	}})
	if err != nil {
		w.Fatal(err)
	}
}

func TestProvisioning(t *testing.T) {
	for name, tc := range map[string]struct {
		node        string
		provisioned bool
	}{
		"the first pod runs on a physical node": {"worker", true},
		"the first pod runs on a virtual node":  {"milan", false},
		"there is no pod yet":                   {"", false},
		"the node is gone":                      {"lost", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claim(tc.node))
			w.reconcile()
			if got := w.there(behind()); got != tc.provisioned {
				t.Fatalf("a claim behind: %v", got)
			}
			c := claim("")
			w.there(c)
			if _, selected := c.Annotations[reflection.SelectedNodeAnnotation]; selected && tc.node == "lost" {
				t.Error("the scheduler is not asked again")
			}
			if !tc.provisioned {
				return
			}
			if w.there(front()) {
				t.Fatal("there is a volume before the one behind")
			}
			w.bind()
			w.reconcile()
			if volume := front(); !w.there(volume) || volume.Spec.HostPath == nil {
				t.Errorf("got %+v", volume.Spec)
			}
		})
	}
}

func TestRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		change       func(*corev1.PersistentVolume)
		claim        bool
		behind, held bool
	}{
		"its claim is there": {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }, true, true, true},
		"its claim is gone":  {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }, false, false, false},
		"not given back yet": {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound }, false, true, true},
		"retained": {func(v *corev1.PersistentVolume) {
			v.Status.Phase = corev1.VolumeReleased
			v.Spec.PersistentVolumeReclaimPolicy = "Retain"
		}, false, true, true},
		"on the way to another one": {func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeAvailable; v.Spec.ClaimRef.UID = "" }, false, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claim("worker"))
			w.reconcile()
			w.bind()
			w.reconcile()
			volume := front()
			if !w.there(volume) {
				t.Fatal("there is no volume")
			}
			tc.change(volume)
			status := volume.Status
			if err := w.Update(context.Background(), volume); err != nil {
				t.Fatal(err)
			}
			volume.Status = status
			if err := w.Status().Update(context.Background(), volume); err != nil {
				t.Fatal(err)
			}
			if !tc.claim {
				if err := w.Delete(context.Background(), claim("")); err != nil {
					t.Fatal(err)
				}
			}
			for range 3 {
				w.reconcile()
			}
			if b, v := w.there(behind()), w.there(front()); b != tc.behind || v != tc.held {
				t.Errorf("claim behind %v, volume %v", b, v)
			}
		})
	}
}

// A claim that goes before it has its volume leaves nothing behind.
func TestAbandoned(t *testing.T) {
	w := newWorld(t, claim("worker"))
	w.reconcile()
	if err := w.Delete(context.Background(), claim("")); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	if w.there(behind()) {
		t.Error("the claim behind stays")
	}
}

// H3: a larger request reaches the claim behind, and its size comes back.
func TestGrowth(t *testing.T) {
	w := newWorld(t, claim("worker"))
	w.reconcile()
	w.bind()
	w.reconcile()
	c := claim("")
	w.there(c)
	c.Spec.VolumeName, c.Spec.Resources.Requests[corev1.ResourceStorage] = "pvc-u1", resource.MustParse("2Gi")
	if err := w.Update(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	c.Status.Phase, c.Status.Capacity = corev1.ClaimBound, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	if err := w.Status().Update(context.Background(), c); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	b := behind()
	w.there(b)
	if got := b.Spec.Resources.Requests.Storage().String(); got != "2Gi" {
		t.Fatalf("the claim behind asks for %s", got)
	}
	b.Status.Capacity[corev1.ResourceStorage] = resource.MustParse("2Gi")
	if err := w.Status().Update(context.Background(), b); err != nil {
		t.Fatal(err)
	}
	w.reconcile()
	w.reconcile()
	w.there(c)
	if got := c.Status.Capacity.Storage().String(); got != "2Gi" {
		t.Errorf("the claim shows %s", got)
	}
}

// A volume at a provider is its virtual kubelet's to give up, as long as there is one that may.
func TestVolumesAtProviders(t *testing.T) {
	mapped := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"},
		Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}}}
	shop := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	going := shop.DeepCopy()
	going.DeletionTimestamp, going.Finalizers = ptr.To(metav1.Now()), []string{"test/held"}
	for name, tc := range map[string]struct {
		objects []client.Object
		policy  corev1.PersistentVolumeReclaimPolicy
		deleted bool
		held    bool
	}{
		"the namespace is offloaded":           {[]client.Object{shop, mapped}, corev1.PersistentVolumeReclaimDelete, false, true},
		"the namespace is offloaded no more":   {[]client.Object{shop}, corev1.PersistentVolumeReclaimDelete, false, false},
		"the namespace is going":               {[]client.Object{going, mapped}, corev1.PersistentVolumeReclaimDelete, false, false},
		"the namespace is going, data is kept": {[]client.Object{going, mapped}, corev1.PersistentVolumeReclaimRetain, false, true},
		// Its data would go with the twin, and nobody would have said so.
		"the namespace is going, the volume was deleted to keep its data": {[]client.Object{going, mapped}, corev1.PersistentVolumeReclaimRetain, true, true},
		"the volume was deleted, the namespace is offloaded no more":      {[]client.Object{shop}, corev1.PersistentVolumeReclaimRetain, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			volume := reflection.PlaceholderVolume(claim("milan"), &storagev1.StorageClass{ReclaimPolicy: &tc.policy}, "milan",
				&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "data", UID: "r1"}})
			volume.Status.Phase = corev1.VolumeReleased
			if tc.deleted {
				volume.DeletionTimestamp = ptr.To(metav1.Now())
			}
			var objects []client.Object
			for _, o := range append(tc.objects, volume) {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			w := newWorld(t, objects...)
			if _, err := w.volumes.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "pvc-u1"}}); err != nil {
				t.Fatal(err)
			}
			if got := w.there(front()); got != tc.held {
				t.Errorf("the volume is there: %v", got)
			}
		})
	}
}
