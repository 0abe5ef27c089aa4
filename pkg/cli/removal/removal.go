package removal

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
)

// Delete removes one object, and waits until it is gone if asked to. Of an object that is not there nothing is said.
func Delete(ctx context.Context, observer progress.Observer, cluster *target.Cluster, object client.Object, wait bool) error {
	found, err := cluster.Get(ctx, object)
	if err != nil || !found {
		return err
	}
	name := target.Name(object)
	return progress.Run(ctx, observer, cluster.Name, "Deleting "+name, func(ctx context.Context, task progress.Task) (string, error) {
		if err := Begin(ctx, task, cluster, object); err != nil || !wait {
			return fmt.Sprintf("Deletion of %s begun", name), err
		}
		return "Deleted " + name, Gone(ctx, task, cluster, object)
	})
}

// Begin deletes the very object that was read, and does not wait until it is gone. The API server refuses to delete what a peering needs
// to end; that it has ended, it knows a moment later.
func Begin(ctx context.Context, task progress.Task, cluster *target.Cluster, object client.Object) error {
	return await.Until(ctx, task, "the API server to delete "+cluster.Describe(object), func(ctx context.Context) (bool, string, error) {
		err := cluster.Remove(ctx, object)
		if apierrors.IsForbidden(err) && strings.Contains(err.Error(), corev1beta1.ReasonPeeringNotEnded) {
			return false, err.Error(), nil
		}
		return err == nil, "", err
	})
}

// Gone waits until the very object that was read is gone; what keeps it is told to the task.
func Gone(ctx context.Context, task progress.Task, cluster *target.Cluster, object client.Object) error {
	uid := object.GetUID()
	return await.Until(ctx, task, cluster.Describe(object)+" to be gone", func(ctx context.Context) (bool, string, error) {
		found, err := cluster.Get(ctx, object)
		if err != nil || !found || uid != "" && object.GetUID() != uid {
			return err == nil, "", err
		}
		return false, keeps(object), nil
	})
}

// keeps says what an object that is being deleted waits for.
func keeps(object client.Object) string {
	if finalizers := object.GetFinalizers(); len(finalizers) > 0 {
		return fmt.Sprintf("its controller has to finish (%s)%s", finalizers[0], why(object))
	}
	return "it is being deleted" + why(object)
}

// why is the message of the object's Ready condition, where controllers say what holds a deletion up.
func why(object client.Object) string {
	switch typed := object.(type) {
	case *authv1beta1.Tenant:
		return standard(typed.Status.Conditions)
	case *authv1beta1.Identity:
		return standard(typed.Status.Conditions)
	case *offloadingv1beta1.NamespaceMap:
		return standard(typed.Status.Conditions)
	case *offloadingv1beta1.NamespaceOffloading:
		return standard(typed.Status.Conditions)
	case *authv1beta1.ResourceSlice:
		return own(typed.Status.Summary)
	case *offloadingv1beta1.VirtualNode:
		return own(typed.Status.All())
	case *corev1.Namespace:
		return namespace(typed)
	default:
		return ""
	}
}

func standard(conditions []metav1.Condition) string {
	for i := range conditions {
		if conditions[i].Type == corev1beta1.ConditionReady && conditions[i].Message != "" {
			return ": " + conditions[i].Message
		}
	}
	return ""
}

func own(conditions []corev1beta1.Condition) string {
	for i := range conditions {
		if conditions[i].Type == corev1beta1.ConditionReady && conditions[i].Message != "" {
			return ": " + conditions[i].Message
		}
	}
	return ""
}

// namespace says what Kubernetes found to be left in a namespace that is being deleted.
func namespace(object *corev1.Namespace) string {
	for _, kind := range []corev1.NamespaceConditionType{
		corev1.NamespaceFinalizersRemaining, corev1.NamespaceContentRemaining, corev1.NamespaceDeletionContentFailure,
	} {
		for _, condition := range object.Status.Conditions {
			if condition.Type == kind && condition.Status == corev1.ConditionTrue {
				return ": " + condition.Message
			}
		}
	}
	return ""
}
