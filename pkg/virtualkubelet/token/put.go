package token

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
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

// step is one step of a JSON patch.
type step struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// overwrite is the patch that makes a token Secret of ours, perhaps of an earlier pod of the same name, the wanted one. On any other
// Secret it fails: the owner is tested, and the name of the pod, which only token Secrets have. Only tests do so: API servers let the
// replacement of what is not there pass.
func overwrite(wanted *corev1.Secret) ([]byte, error) {
	label := func(op, name string) step {
		return step{op, path("labels", name), wanted.Labels[name]}
	}
	annotation := func(op, name string) step {
		return step{op, path("annotations", name), wanted.Annotations[name]}
	}
	patch, err := json.Marshal([]step{
		label("test", offloadingv1beta1.OriginLabel), label("test", offloadingv1beta1.DestinationLabel),
		annotation("test", offloadingv1beta1.TokenPodNameAnnotation),
		label("add", offloadingv1beta1.ServiceAccountNameLabel), label("add", offloadingv1beta1.NodeNameLabel),
		annotation("add", offloadingv1beta1.TokenPodUIDAnnotation), annotation("add", offloadingv1beta1.TokenExpirationAnnotation),
		{"add", "/metadata/ownerReferences", wanted.OwnerReferences},
		{"add", "/data", wanted.Data},
	})
	if err != nil {
		return nil, fmt.Errorf("encoding a change of Secret %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return patch, nil
}

func path(field, name string) string {
	return "/metadata/" + field + "/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
