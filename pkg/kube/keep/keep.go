package keep

import (
	"context"
	"fmt"
	"reflect"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// Keeper keeps objects of one cluster.
type Keeper struct {
	// Client writes objects.
	Client client.Client
	// Reader reads what is there; the Client does it by default, from its cache if it has one of the kind.
	Reader client.Reader
	// Live reads, if it is set, what the Reader does not show although it exists. Without it the next look has to tell.
	Live client.Reader
	// Reason of the refusal of what is somebody else's: one of the exported condition reasons.
	Reason string
}

// Wanted is an object of ours as it is to be.
type Wanted struct {
	// Object has what is wanted. Afterwards it is what is there.
	Object client.Object
	// Set puts what is wanted into the object that is there, or is made. By default all that is neither metadata nor status becomes as in Object.
	Set func(live client.Object)
	// Ours tells whether the object that is there is ours. By default it is if it is labelled so, or, having no such label, has the controller
	// that is wanted.
	Ours func(live client.Object) bool
	// Optional says that it is not made where there is none: Object is without a version then.
	Optional bool
}

// Managed tells whether an object is labelled as ours.
func Managed(live client.Object) bool { return live.GetLabels()[corev1beta1.ManagedLabel] == "true" }

// Whoever takes an object for ours, whoever made it: its name is for nothing else.
func Whoever(client.Object) bool { return true }

// ControlledBy takes an object for ours if it has this controller.
func ControlledBy(owner metav1.Object) func(client.Object) bool {
	return func(live client.Object) bool { return metav1.IsControlledBy(live, owner) }
}

// Keep has one object be there as it is wanted, and tells whether it wrote.
func (k Keeper) Keep(ctx context.Context, w Wanted) (wrote bool, err error) {
	kind, live, err := k.read(ctx, w.Object)
	if err != nil {
		return false, err
	}
	return k.bring(ctx, kind, live, w)
}

// Known is Keep for an object that was read already, or of which is known that there is none.
func Known[T interface {
	comparable
	client.Object
}](ctx context.Context, k Keeper, read T, w Wanted) (wrote bool, err error) {
	var live client.Object
	if none := *new(T); read != none {
		live = read
	}
	return k.bring(ctx, kindOf(k.Client, w.Object), live, w)
}

// bring makes what is there, nil if there is none, what is wanted.
func (k Keeper) bring(ctx context.Context, kind string, live client.Object, w Wanted) (wrote bool, err error) {
	switch {
	case live == nil && w.Optional:
		return false, nil
	case live == nil:
		return k.create(ctx, kind, w)
	case !w.isOurs(live):
		return false, reconcile.NotOurs(k.Reason, kind, client.ObjectKeyFromObject(live))
	case rebound(live, w.Object) && !Managed(live): // which policy liqo-controller-manager-objects keeps
		return false, reconcile.NotOurs(k.Reason, kind, client.ObjectKeyFromObject(live))
	case rebound(live, w.Object):
		if err := k.remove(ctx, live); err != nil {
			return false, err
		}
		return k.create(ctx, kind, w)
	}
	changed := live.DeepCopyObject().(client.Object)
	w.become(changed)
	if wrote = !equality.Semantic.DeepEqual(live, changed); wrote {
		err = k.Client.Update(ctx, changed)
	}
	if err != nil {
		return false, fmt.Errorf("changing %s: %w", name(kind, changed), err)
	}
	reflect.ValueOf(w.Object).Elem().Set(reflect.ValueOf(changed).Elem())
	return wrote, nil
}

// All has objects be there as these are, one after the other. The values stay what is wanted.
func (k Keeper) All(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if _, err := k.Keep(ctx, Wanted{Object: object.DeepCopyObject().(client.Object)}); err != nil {
			return err
		}
	}
	return nil
}

// Make makes objects, unless there are some of their names: those stay as they are, whoever made them. Nothing is read.
func Make(ctx context.Context, c client.Client, objects ...client.Object) error {
	for _, object := range objects {
		if err := c.Create(ctx, object); client.IgnoreAlreadyExists(err) != nil {
			return fmt.Errorf("creating %s: %w", name(kindOf(c, object), object), err)
		}
	}
	return nil
}

// Remove deletes the objects of these names that are there and labelled as ours.
func (k Keeper) Remove(ctx context.Context, objects ...client.Object) error {
	return k.RemoveIf(ctx, Managed, objects...)
}

// RemoveIf deletes the objects of these names that are there and ours.
func (k Keeper) RemoveIf(ctx context.Context, ours func(live client.Object) bool, objects ...client.Object) error {
	for _, object := range objects {
		_, live, err := k.read(ctx, object)
		if err == nil && live != nil && ours(live) {
			err = k.remove(ctx, live)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Delete deletes an object that was read and is ours, unless another one has its name by now. One that is gone already is fine.
func Delete(ctx context.Context, c client.Client, live client.Object, options ...client.DeleteOption) error {
	options = append([]client.DeleteOption{client.Preconditions{UID: ptr.To(live.GetUID())}}, options...)
	if err := c.Delete(ctx, live, options...); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s: %w", name(kindOf(c, live), live), err)
	}
	return nil
}

// read returns the object that is there, nil if there is none.
func (k Keeper) read(ctx context.Context, object client.Object) (kind string, live client.Object, err error) {
	reader := k.Reader
	if reader == nil {
		reader = k.Client
	}
	kind, live = kindOf(k.Client, object), reflect.New(reflect.TypeOf(object).Elem()).Interface().(client.Object)
	live.GetObjectKind().SetGroupVersionKind(object.GetObjectKind().GroupVersionKind())
	switch err = reader.Get(ctx, client.ObjectKeyFromObject(object), live); {
	case apierrors.IsNotFound(err):
		return kind, nil, nil
	case err != nil:
		return kind, nil, fmt.Errorf("reading %s: %w", name(kind, object), err)
	}
	return kind, live, nil
}

func (k Keeper) create(ctx context.Context, kind string, w Wanted) (bool, error) {
	if w.Set != nil {
		w.Set(w.Object)
	}
	w.Object.SetResourceVersion("") // of an earlier one
	err := k.Client.Create(ctx, w.Object)
	switch {
	case apierrors.IsAlreadyExists(err) && k.Live != nil:
		return Keeper{Client: k.Client, Reader: k.Live, Reason: k.Reason}.Keep(ctx, w)
	case err != nil:
		return false, fmt.Errorf("creating %s: %w", name(kind, w.Object), err)
	}
	return true, nil
}

func (k Keeper) remove(ctx context.Context, live client.Object) error {
	if !live.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return Delete(ctx, k.Client, live, client.Preconditions{UID: ptr.To(live.GetUID()), ResourceVersion: ptr.To(live.GetResourceVersion())})
}

func (w Wanted) isOurs(live client.Object) bool {
	if w.Ours != nil {
		return w.Ours(live)
	}
	_, labelled := live.GetLabels()[corev1beta1.ManagedLabel]
	is, wanted := metav1.GetControllerOfNoCopy(live), metav1.GetControllerOfNoCopy(w.Object)
	return Managed(live) || !labelled && is != nil && wanted != nil && is.UID == wanted.UID
}

// rebound tells whether a binding is one to another role.
func rebound(live, want client.Object) bool {
	switch want := want.(type) {
	case *rbacv1.RoleBinding:
		return live.(*rbacv1.RoleBinding).RoleRef != want.RoleRef
	case *rbacv1.ClusterRoleBinding:
		return live.(*rbacv1.ClusterRoleBinding).RoleRef != want.RoleRef
	}
	return false
}

// kindOf is the kind of an object, for messages. One that the client does not know it refuses anyway.
func kindOf(c client.Client, object client.Object) string {
	gvk, _ := c.GroupVersionKindFor(object)
	return gvk.Kind
}

func name(kind string, object client.Object) string {
	if object.GetNamespace() == "" {
		return kind + " " + object.GetName()
	}
	return kind + " " + client.ObjectKeyFromObject(object).String()
}
