package unpeer_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/unpeer"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/reflection"
)

// stored is a claim with its volume at milan.
func stored() []client.Object {
	return []client.Object{
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "u1"}},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-u1", Annotations: map[string]string{reflection.ProvisionedByAnnotation: offloadingv1beta1.StorageProvisioner}},
			Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
					Driver: offloadingv1beta1.PlaceholderDriver, VolumeHandle: "milan/shop-rome/data/r1"}},
				ClaimRef: &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: "u1"},
			},
		},
	}
}

// H4: data is lost only if the user says so.
func TestUnpeeringIsRefusedWhileVolumesHoldData(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(consumer(), stored()...)})
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider()})
	o := unpeer.Options{Consumer: rome.Cluster, Provider: milan.Cluster, Timeout: 20 * time.Second}
	_, err := unpeer.Run(t.Context(), o)
	if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), "shop/data") {
		t.Errorf("got %v", err)
	}
	if _, next := failure.NextOf(err); !strings.Contains(next, "--delete-volumes") {
		t.Errorf("the way out is %q", next)
	}
	if writes := append(rome.Writes(), milan.Writes()...); len(writes) > 0 {
		t.Errorf("wrote %v", writes)
	}
	o.DeleteVolumes = true
	if _, err := unpeer.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := rome.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data"}, &corev1.PersistentVolumeClaim{}); !apierrors.IsNotFound(err) {
		t.Errorf("the claim is still there (%v)", err)
	}
	if writes := rome.Writes(); writes[1] != "patch VirtualNode liqo-tenant-milan/milan (cluster rome)" {
		t.Errorf("the virtual node is not told of the decision once the claim is deleted: %v", writes)
	}
}

// A decision that could not be carried out leaves nothing behind that gives up a volume whose claim is still there.
func TestAnUnpeeringThatFailsDecidesNothing(t *testing.T) {
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(consumer(), stored()...)})
	rome.Client = interceptor.NewClient(rome.Client.(client.WithWatch), interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, opts ...client.DeleteOption) error {
			if _, ok := object.(*corev1.PersistentVolumeClaim); ok {
				return errors.New("no claim is deleted here")
			}
			return c.Delete(ctx, object, opts...)
		},
	})
	milan := fixture.New(t, fixture.Options{Name: "milan", ClusterID: "milan", Objects: provider()})
	_, err := unpeer.Run(t.Context(), unpeer.Options{Consumer: rome.Cluster, Provider: milan.Cluster, DeleteVolumes: true, Timeout: 20 * time.Second})
	if err == nil || !strings.Contains(err.Error(), "no claim is deleted here") {
		t.Fatalf("got %v", err)
	}
	node := &offloadingv1beta1.VirtualNode{}
	if err := rome.Client.Get(t.Context(), client.ObjectKey{Namespace: "liqo-tenant-milan", Name: "milan"}, node); err != nil {
		t.Fatal(err)
	}
	if decision, decided := node.Annotations[offloadingv1beta1.DeleteVolumesAnnotation]; decided {
		t.Errorf("the virtual node is left with the decision %q", decision)
	}
}

// H2: a dead peer's volumes do not keep the peering from ending; the claims stay, and are named.
func TestForceNamesTheVolumes(t *testing.T) {
	// Garbage collection, which takes the last object, is not played here.
	objects := consumer()[:len(consumer())-1]
	rome := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: append(objects, stored()...)})
	recorder := &progress.Recorder{}
	if _, err := unpeer.Force(t.Context(), unpeer.ForceOptions{Cluster: rome.Cluster, PeerID: "milan", Observer: recorder, Timeout: 20 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Join(recorder.Lines(), "\n"); !strings.Contains(lines, "PersistentVolumeClaim shop/data is in milan") {
		t.Errorf("told:\n%s", lines)
	}
	if err := rome.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "data"}, &corev1.PersistentVolumeClaim{}); err != nil {
		t.Errorf("the claim: %v", err)
	}
}
