package provisioner

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// announced is what the VirtualNode of milan says.
func (w *world) announced() string {
	w.Helper()
	var vn offloadingv1beta1.VirtualNode
	if err := w.Get(context.Background(), client.ObjectKey{Namespace: "liqo-tenant-milan", Name: "milan"}, &vn); err != nil {
		w.Fatal(err)
	}
	return vn.Annotations[offloadingv1beta1.WaitingVolumesAnnotation]
}

// told is how many Events there were, and the last one.
func (w *world) told() (n int, last string) {
	for {
		select {
		case last = <-w.volumes.Events.(*events.FakeRecorder).Events:
			n++
		default:
			return n, last
		}
	}
}

// A volume that waits for its virtual kubelet is named on the virtual nodes of its provider after a while, the way out is told once, and
// the name goes with the volume.
func TestWaitingVolumesAreNamed(t *testing.T) {
	now := time.Unix(100000, 0) // as the world's clock says
	for name, tc := range map[string]struct {
		policy  corev1.PersistentVolumeReclaimPolicy
		deleted time.Duration
		phase   time.Duration
		named   bool
		told    bool
	}{
		"deleted, its data retained":                   {policy: "Retain", deleted: time.Minute, phase: time.Hour, named: true, told: true},
		"just deleted, its data retained":              {policy: "Retain", deleted: time.Second, phase: time.Hour},
		"given back":                                   {policy: "Delete", phase: time.Minute, named: true},
		"just given back":                              {policy: "Delete", phase: time.Second},
		"given back, its data retained, not deleted":   {policy: "Retain", phase: time.Hour},
		"given back and deleted, its data is given up": {policy: "Delete", deleted: time.Minute, phase: time.Hour, named: true},
	} {
		t.Run(name, func(t *testing.T) {
			volume := reflection.PlaceholderVolume(claim("milan"), &storagev1.StorageClass{ReclaimPolicy: &tc.policy}, "milan",
				&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "data", UID: "r1"}})
			volume.Status.Phase, volume.Status.LastPhaseTransitionTime = corev1.VolumeReleased, new(metav1.NewTime(now.Add(-tc.phase)))
			if tc.deleted > 0 {
				volume.DeletionTimestamp = new(metav1.NewTime(now.Add(-tc.deleted)))
			}
			node := func(name string) *offloadingv1beta1.VirtualNode {
				return &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-" + name, Name: name},
					Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: corev1beta1.ClusterID(name)}}
			}
			w := newWorld(t, volume, node("milan"), node("paris"), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
				&offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"},
					Spec: offloadingv1beta1.NamespaceMapSpec{DesiredMapping: map[string]string{"shop": "shop-rome"}}})
			step := func() {
				t.Helper()
				if _, err := w.volumes.Reconcile(context.Background(), ctrl.Request{NamespacedName: client.ObjectKey{Name: "pvc-u1"}}); err != nil {
					t.Fatal(err)
				}
			}
			step()
			if got := w.announced(); (got == "pvc-u1") != tc.named || got != "" && !tc.named {
				t.Errorf("milan's VirtualNode names %q", got)
			}
			if n, last := w.told(); (n == 1) != tc.told || tc.told && (!strings.Contains(last, "kubectl patch pv pvc-u1") || !strings.Contains(last, "shop-rome/data")) {
				t.Errorf("told %d times: %s", n, last)
			}
			var before, after offloadingv1beta1.VirtualNode
			key := client.ObjectKey{Namespace: "liqo-tenant-milan", Name: "milan"}
			if err := w.Get(t.Context(), key, &before); err != nil {
				t.Fatal(err)
			}
			step()
			if err := w.Get(t.Context(), key, &after); err != nil || before.ResourceVersion != after.ResourceVersion {
				t.Errorf("the second pass wrote (%v)", err)
			}
			if n, last := w.told(); n > 0 {
				t.Errorf("told again: %s", last)
			}
			if err := w.volumes.let(t.Context(), volume); err != nil {
				t.Fatal(err)
			}
			step()
			if got := w.announced(); got != "" {
				t.Errorf("milan's VirtualNode still names %q", got)
			}
		})
	}
}
