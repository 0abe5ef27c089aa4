package provisioner

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

const (
	// patience is how long a claim behind may be pending before the user is told.
	patience = 30 * time.Second
	// maxPoll is how seldom a claim that stays pending is looked at.
	maxPoll = 5 * time.Minute
)

// notItself refuses to put a class of this provisioner behind another one: its claims would wait for themselves.
func (r *claims) notItself(ctx context.Context, class *storagev1.StorageClass) error {
	real, err := r.realClass(ctx)
	if err != nil || real == nil || real.Provisioner != offloadingv1beta1.StorageProvisioner {
		return err
	}
	// Another class may become the default one.
	return reconcile.Refuse(offloadingv1beta1.ReasonVolumeRefused, fmt.Errorf(
		"StorageClass %s cannot be behind %s, because both are of provisioner %s: "+
			"set storage.realStorageClassName to the class of a real provisioner, or make that one the default",
		real.Name, class.Name, real.Provisioner))
}

// realClass is the class of claims behind: that of the options, or the one that Kubernetes takes as default; nil if there is none.
func (r *claims) realClass(ctx context.Context) (*storagev1.StorageClass, error) {
	if r.RealStorageClass != "" {
		var class storagev1.StorageClass
		if err := r.Get(ctx, client.ObjectKey{Name: r.RealStorageClass}, &class); err != nil {
			if apierrors.IsNotFound(err) {
				return nil, nil
			}
			return nil, fmt.Errorf("reading StorageClass %s: %w", r.RealStorageClass, err)
		}
		return &class, nil
	}
	var list storagev1.StorageClassList
	if err := r.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing StorageClasses: %w", err)
	}
	var found *storagev1.StorageClass
	for i := range list.Items {
		class := &list.Items[i]
		if !reflection.IsDefaultClass(class) {
			continue
		}
		// Of several, Kubernetes takes the newest, and of those the first by name.
		if found == nil || found.CreationTimestamp.Before(&class.CreationTimestamp) ||
			found.CreationTimestamp.Equal(&class.CreationTimestamp) && class.Name < found.Name {
			found = class
		}
	}
	return found, nil
}

// place keeps the claim behind on the node that was selected for the one in front, as long as it has no volume. Its provisioner takes
// the node away if it cannot provide there: then the scheduler has to choose again for the one in front.
func (r *claims) place(ctx context.Context, claim, behind *corev1.PersistentVolumeClaim, node string) error {
	selected, asked := behind.Annotations[reflection.SelectedNodeAnnotation], behind.Annotations[offloadingv1beta1.SelectedNodeAnnotation]
	if behind.Spec.VolumeName != "" || selected == node && asked == node {
		return nil
	}
	if selected == "" && asked == node {
		r.warn(claim, offloadingv1beta1.ReasonVolumePending, fmt.Sprintf(
			"the volume could not be made on node %s, another node is looked for; see why with kubectl -n %s describe pvc %s", node, behind.Namespace, behind.Name))
		if err := r.unselect(ctx, claim, node); err != nil {
			return err
		}
		return r.annotate(ctx, behind, offloadingv1beta1.SelectedNodeAnnotation, "")
	}
	if err := r.annotate(ctx, behind, reflection.SelectedNodeAnnotation, node); err != nil {
		return err
	}
	return r.annotate(ctx, behind, offloadingv1beta1.SelectedNodeAnnotation, node)
}

// annotate sets an annotation of a claim, or removes it if the value is empty.
func (r *claims) annotate(ctx context.Context, claim *corev1.PersistentVolumeClaim, key, value string) error {
	before := claim.DeepCopy()
	if claim.Annotations == nil {
		claim.Annotations = map[string]string{}
	}
	if claim.Annotations[key] = value; value == "" {
		delete(claim.Annotations, key)
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.Patch(ctx, claim, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("selecting the node of PersistentVolumeClaim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// unselect takes a claim off a node, so that the scheduler chooses again.
func (r *claims) unselect(ctx context.Context, claim *corev1.PersistentVolumeClaim, node string) error {
	if claim.Annotations[reflection.SelectedNodeAnnotation] != node {
		return nil
	}
	return r.annotate(ctx, claim, reflection.SelectedNodeAnnotation, "")
}

// pending tells the user of a claim behind that waits for its volume longer than is usual.
func (r *claims) pending(claim, behind *corev1.PersistentVolumeClaim, node string) error {
	age := r.Clock.Since(behind.CreationTimestamp.Time)
	if age < patience {
		return reconcile.Wait(offloadingv1beta1.ReasonVolumePending, "waiting for the volume behind", patience-age)
	}
	of := "no class: there is no default one, and storage.realStorageClassName is empty"
	if class := ptr.Deref(behind.Spec.StorageClassName, ""); class != "" {
		of = "class " + class
	}
	message := fmt.Sprintf("waiting for a volume on node %s, of %s; see why with kubectl -n %s describe pvc %s", node, of, behind.Namespace, behind.Name)
	r.warn(claim, offloadingv1beta1.ReasonVolumePending, message)
	return reconcile.Wait(offloadingv1beta1.ReasonVolumePending, message, min(max(age/2, poll), maxPoll))
}
