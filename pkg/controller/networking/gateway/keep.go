package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/marks"
)

// keep makes an object what is wanted, and returns it as it is then. Nothing is written if it is that already.
func (r *reconciler) keep(ctx context.Context, want client.Object, owner metav1.OwnerReference) (client.Object, error) {
	want.SetOwnerReferences([]metav1.OwnerReference{owner})
	key := client.ObjectKeyFromObject(want)
	live := reflect.New(reflect.TypeOf(want).Elem()).Interface().(client.Object)
	err := r.Live.Get(ctx, key, live)
	switch {
	case apierrors.IsNotFound(err):
		created, err := become(want.DeepCopyObject().(client.Object), want)
		if err != nil {
			return nil, err
		}
		if err := r.Create(ctx, created); err != nil {
			return nil, fmt.Errorf("creating %T %s: %w", want, key, err)
		}
		return created, nil
	case err != nil:
		return nil, fmt.Errorf("reading %T %s: %w", want, key, err)
	}
	if controller := metav1.GetControllerOf(live); controller == nil || controller.UID != owner.UID {
		return nil, taken(fmt.Sprintf("%T", want), live)
	}
	changed, err := become(live.DeepCopyObject().(client.Object), want)
	if err != nil || equality.Semantic.DeepEqual(live, changed) {
		return live, err
	}
	if err := r.Update(ctx, changed); err != nil {
		return nil, fmt.Errorf("changing %T %s: %w", want, key, err)
	}
	return changed, nil
}

// become gives an object the labels, annotations and what else is wanted. What Kubernetes fills in by itself stays as long as what is
// wanted stays the same.
func become(object, want client.Object) (client.Object, error) {
	text, err := json.Marshal(specOf(want))
	if err != nil {
		return nil, fmt.Errorf("writing %T %s as JSON: %w", want, want.GetName(), err)
	}
	sum := sha256.Sum256(text)
	digest := hex.EncodeToString(sum[:16])
	annotations := object.GetAnnotations()
	before, _ := marks.Read(annotations)
	same := annotations[offloadingv1beta1.RenderedHashAnnotation] == digest

	asked := marks.OfMap(marks.Label, want.GetLabels()).Union(marks.OfMap(marks.Annotation, want.GetAnnotations()))
	object.SetLabels(marks.Followed(marks.Label, object.GetLabels(), want.GetLabels(), before))
	annotations = marks.Followed(marks.Annotation, annotations, want.GetAnnotations(), before)
	annotations[offloadingv1beta1.RenderedHashAnnotation] = digest
	marks.Write(annotations, asked)
	object.SetAnnotations(annotations)
	object.SetOwnerReferences(want.GetOwnerReferences())
	if !same || !holds(object, want) {
		adopt(object, want)
	}
	return object, nil
}

// specOf is what of an object we decide.
func specOf(object client.Object) any {
	switch o := object.(type) {
	case *networkingv1beta1.WgGatewayServer:
		return o.Spec
	case *networkingv1beta1.WgGatewayClient:
		return o.Spec
	case *appsv1.Deployment:
		return o.Spec
	case *corev1.Service:
		return o.Spec
	case *rbacv1.Role:
		return o.Rules
	case *rbacv1.RoleBinding:
		return o.Subjects
	default:
		return nil
	}
}

// adopt puts what is wanted into an object.
func adopt(object, want client.Object) {
	switch o := object.(type) {
	case *networkingv1beta1.WgGatewayServer:
		o.Spec = want.(*networkingv1beta1.WgGatewayServer).Spec
	case *networkingv1beta1.WgGatewayClient:
		o.Spec = want.(*networkingv1beta1.WgGatewayClient).Spec
	case *appsv1.Deployment:
		o.Spec = want.(*appsv1.Deployment).Spec
	case *corev1.Service:
		o.Spec = want.(*corev1.Service).Spec
	case *rbacv1.Role:
		o.Rules = want.(*rbacv1.Role).Rules
	case *rbacv1.RoleBinding:
		o.Subjects = want.(*rbacv1.RoleBinding).Subjects
	}
}

// holds tells whether an object still has what is wanted. Kubernetes fills in what a Deployment and a Service leave out; in the others
// nothing is to be added.
func holds(live, want client.Object) bool {
	is, wanted := plain(specOf(live)), plain(specOf(want))
	switch want.(type) {
	case *appsv1.Deployment, *corev1.Service:
		return covers(is, wanted)
	default:
		return equality.Semantic.DeepEqual(is, wanted)
	}
}

// covers tells whether a value of JSON has what another one asks for. What is empty is not asked for.
func covers(live, want any) bool {
	switch want := want.(type) {
	case map[string]any:
		object, _ := live.(map[string]any)
		for key, value := range want {
			if !covers(object[key], value) {
				return false
			}
		}
		return true
	case []any:
		list, _ := live.([]any)
		if len(want) > 0 && len(want) != len(list) {
			return false
		}
		for i := range want {
			if !covers(list[i], want[i]) {
				return false
			}
		}
		return true
	case nil:
		return true
	default:
		return live == want || reflect.ValueOf(want).IsZero()
	}
}

// plain is a value as JSON has it: what is raw is read, too.
func plain(value any) (read any) {
	text, err := json.Marshal(value)
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		return value
	}
	return read
}

// over are the entries of both, those of the second one before those of the first one.
func over(base, more map[string]string) map[string]string {
	all := make(map[string]string, len(base)+len(more))
	maps.Copy(all, base)
	maps.Copy(all, more)
	return all
}
