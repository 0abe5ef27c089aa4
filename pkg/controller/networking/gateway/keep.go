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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/marks"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// keep makes an object what is wanted, and returns it as it is then. Nothing is written if it is that already.
func (r *reconciler) keep(ctx context.Context, want client.Object, owner metav1.OwnerReference) (client.Object, error) {
	want.SetOwnerReferences([]metav1.OwnerReference{owner})
	digest, err := digestOf(want)
	if err != nil {
		return nil, err
	}
	kept := want.DeepCopyObject().(client.Object)
	kept.SetAnnotations(nil) // a template may have ours, copied from another gateway
	_, err = keep.Keeper{Client: r.Client, Reader: r.Live, Reason: networkingv1beta1.ReasonGatewayNameTaken}.Keep(ctx, keep.Wanted{
		Object: kept, Set: func(live client.Object) { become(live, want, digest) }, Ours: keep.ControlledBy(&metav1.ObjectMeta{UID: owner.UID}),
	})
	if reconcile.ReasonOf(err) == networkingv1beta1.ReasonGatewayNameTaken {
		gvk, _ := r.GroupVersionKindFor(want)
		return nil, taken(gvk.Kind, want)
	}
	return kept, err
}

// digestOf identifies what is wanted of an object.
func digestOf(want client.Object) (string, error) {
	text, err := json.Marshal(specOf(want))
	if err != nil {
		return "", fmt.Errorf("writing %T %s as JSON: %w", want, want.GetName(), err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16]), nil
}

// become gives an object the labels, annotations and what else is wanted. What Kubernetes fills in by itself stays as long as what is
// wanted stays the same.
func become(object, want client.Object, digest string) {
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
	if spec := specOf(object); spec != nil && (!same || !holds(object, want)) {
		reflect.ValueOf(spec).Elem().Set(reflect.ValueOf(specOf(want)).Elem())
	}
}

// specOf is what of an object we decide; nil of one of which we decide nothing.
func specOf(object client.Object) any {
	switch o := object.(type) {
	case *networkingv1beta1.WgGatewayServer:
		return &o.Spec
	case *networkingv1beta1.WgGatewayClient:
		return &o.Spec
	case *appsv1.Deployment:
		return &o.Spec
	case *corev1.Service:
		return &o.Spec
	case *rbacv1.Role:
		return &o.Rules
	case *rbacv1.RoleBinding:
		return &o.Subjects
	default:
		return nil
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
