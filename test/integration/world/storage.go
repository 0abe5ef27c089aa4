package world

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// ReclaimAs changes the reclaim policy of the volume that a claim of rome is bound to, and returns the volume.
func (s *Shared) ReclaimAs(t *testing.T, of *corev1.PersistentVolumeClaim, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	t.Helper()
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: of.Spec.VolumeName}}
	fixture.Must(t, "changing the reclaim policy of "+volume.Name, s.Rome.Client.Patch(t.Context(), volume,
		client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"persistentVolumeReclaimPolicy":%q}}`, policy))))
	return volume
}

// VirtualClass is the StorageClass of claims whose data is where their pods are.
const VirtualClass = "liqo"

// simulateStorage gives both clusters a default class whose volumes are simulated.
func (s *Shared) simulateStorage(t *testing.T) {
	t.Helper()
	s.storage.Do(func() {
		for _, c := range []*fixture.Cluster{s.Rome, s.Milan} {
			c.SimulateStorage(t)
		}
	})
}

// Stored gives both clusters a default class whose volumes are simulated, and waits until milan offers it.
func (s *Shared) Stored(t *testing.T) {
	t.Helper()
	s.simulateStorage(t)
	node := s.Peered(t)
	fixture.Await(t, 2*fixture.Patience, "the VirtualNode to show the provider's storage class", func(ctx context.Context) (bool, string) {
		vn := &offloadingv1beta1.VirtualNode{}
		err := s.Rome.Client.Get(ctx, client.ObjectKey{Namespace: fixture.ConsumerNamespace, Name: node}, vn)
		for _, class := range vn.Spec.StorageClasses {
			if class.StorageClassName == fixture.SimulatedClass && class.Default {
				return true, ""
			}
		}
		return false, fmt.Sprint(vn.Spec.StorageClasses, err)
	})
}

// Claim is one of 1 GiB.
func Claim(namespace, name, class string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "db"}},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

// PodWith is a Pod that uses a claim.
func PodWith(namespace, name, claim string) *corev1.Pod {
	p := Pod(namespace, name)
	used := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim}
	p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: used}}}
	p.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	return p
}

// AwaitClaim waits until a claim is as wanted.
func AwaitClaim(t *testing.T, c *fixture.Cluster, of *corev1.PersistentVolumeClaim, what string, ask func(*corev1.PersistentVolumeClaim) bool) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, fmt.Sprintf("PersistentVolumeClaim %s in %s %s", of.Name, c.ID, what), func(ctx context.Context) (bool, string) {
		err := c.Client.Get(ctx, client.ObjectKeyFromObject(of), of)
		return err == nil && ask(of), fmt.Sprintf("%+v %+v %v", of.Spec, of.Status, err)
	})
}

// Bound tells whether a claim has its volume.
func Bound(c *corev1.PersistentVolumeClaim) bool { return c.Status.Phase == corev1.ClaimBound }

// AwaitEvent waits until rome says this about a claim.
func (s *Shared) AwaitEvent(t *testing.T, about *corev1.PersistentVolumeClaim, reason string) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, "Event "+reason+" about claim "+about.Name, func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		if err := s.Rome.Client.List(ctx, list, client.InNamespace(about.Namespace)); err != nil {
			return false, err.Error()
		}
		var seen []string
		for _, event := range list.Items {
			if event.InvolvedObject.Name == about.Name && event.InvolvedObject.UID == about.UID {
				if event.Reason == reason {
					return true, ""
				}
				seen = append(seen, event.Reason+": "+event.Message)
			}
		}
		return false, strings.Join(seen, "\n")
	})
}
