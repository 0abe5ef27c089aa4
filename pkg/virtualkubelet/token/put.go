package token

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/jsonpatch"
	"liqo.io/liqo/pkg/kube/reconcile"
)

const fieldManager = "liqo-virtual-kubelet"

// namespaceRetry is how long a twin may take to be there.
const namespaceRetry = 10 * time.Second

// put makes the Secret what it should be, without reading it. Whether it tries to change or to create it first depends on
// whether it seems to exist.
func put(ctx context.Context, c kubernetes.Interface, wanted *corev1.Secret, exists bool) error {
	secrets := c.CoreV1().Secrets(wanted.Namespace)
	if !exists {
		_, err := secrets.Create(ctx, wanted, metav1.CreateOptions{FieldManager: fieldManager})
		switch {
		case err == nil:
			return nil
		case apierrors.IsNotFound(err):
			return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, "waiting for the provider to make the namespace", namespaceRetry)
		case !apierrors.IsAlreadyExists(err):
			return fmt.Errorf("creating Secret %s/%s: %w", wanted.Namespace, wanted.Name, err)
		}
	}
	patch, err := overwrite(wanted)
	if err != nil {
		return err
	}
	_, err = secrets.Patch(ctx, wanted.Name, types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	switch {
	case err == nil:
		return nil
	case apierrors.IsNotFound(err) && exists:
		return put(ctx, c, wanted, false)
	case reconcile.PatchTestFailed(err):
		return reconcile.NotOurs(offloadingv1beta1.ReasonNameConflict, "Secret", types.NamespacedName{Namespace: wanted.Namespace, Name: wanted.Name})
	default:
		return fmt.Errorf("changing Secret %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
}

// overwrite is the patch that makes a token Secret of ours, perhaps of an earlier pod of the same name, the wanted one. On any other
// Secret it fails: the owner is tested, and the name of the pod, which only token Secrets have. Only tests do so: API servers let the
// replacement of what is not there pass.
func overwrite(wanted *corev1.Secret) ([]byte, error) {
	label := func(step func(any, ...string) any, name string) any {
		return step(wanted.Labels[name], "metadata", "labels", name)
	}
	annotation := func(step func(any, ...string) any, name string) any {
		return step(wanted.Annotations[name], "metadata", "annotations", name)
	}
	patch, err := jsonpatch.Patch{
		label(jsonpatch.Test, offloadingv1beta1.OriginLabel), label(jsonpatch.Test, offloadingv1beta1.DestinationLabel),
		annotation(jsonpatch.Test, offloadingv1beta1.TokenPodNameAnnotation),
		label(jsonpatch.Add, offloadingv1beta1.ServiceAccountNameLabel), label(jsonpatch.Add, offloadingv1beta1.NodeNameLabel),
		annotation(jsonpatch.Add, offloadingv1beta1.TokenPodUIDAnnotation), annotation(jsonpatch.Add, offloadingv1beta1.TokenExpirationAnnotation),
		jsonpatch.Add(wanted.OwnerReferences, "metadata", "ownerReferences"),
		jsonpatch.Add(wanted.Data, "data"),
	}.Encode()
	if err != nil {
		return nil, fmt.Errorf("changing Secret %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return patch, nil
}
