package keep

import (
	"maps"
	"reflect"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// notWanted are what of an object is not decided by who wants it, by the names in Go and in JSON.
var notWanted = []string{"TypeMeta", "ObjectMeta", "Status", "apiVersion", "kind", "metadata", "status"}

// become puts what is wanted into the object that is there.
func (w Wanted) become(live client.Object) {
	if w.Set != nil {
		w.Set(live)
	} else {
		adopt(live, w.Object)
	}
	live.SetLabels(over(live.GetLabels(), w.Object.GetLabels()))
	live.SetAnnotations(over(live.GetAnnotations(), w.Object.GetAnnotations()))
	live.SetOwnerReferences(owners(live.GetOwnerReferences(), w.Object.GetOwnerReferences()))
}

// adopt gives an object everything of another one but its metadata and its status.
func adopt(live, want client.Object) {
	if into, is := live.(*unstructured.Unstructured); is {
		for key, value := range want.(*unstructured.Unstructured).Object {
			if !slices.Contains(notWanted, key) {
				into.Object[key] = value
			}
		}
		return
	}
	into, from := reflect.ValueOf(live).Elem(), reflect.ValueOf(want).Elem()
	for i := range into.NumField() {
		if !slices.Contains(notWanted, into.Type().Field(i).Name) {
			into.Field(i).Set(from.Field(i))
		}
	}
}

// over are labels or annotations with those that are wanted.
func over(live, want map[string]string) map[string]string {
	if len(want) == 0 {
		return live
	}
	all := make(map[string]string, len(live)+len(want))
	maps.Copy(all, live)
	maps.Copy(all, want)
	return all
}

// owners are those that an object has, with those that are wanted in place of earlier ones of their names, and of an earlier controller.
func owners(live, want []metav1.OwnerReference) []metav1.OwnerReference {
	all := slices.Clone(live)
	for _, one := range want {
		replaced := func(other metav1.OwnerReference) bool {
			return other.UID == one.UID || other.Kind == one.Kind && other.Name == one.Name ||
				ptr.Deref(other.Controller, false) && ptr.Deref(one.Controller, false)
		}
		at := slices.IndexFunc(all, replaced)
		if at < 0 {
			at = len(all)
		}
		all = slices.Insert(slices.DeleteFunc(all, replaced), at, one)
	}
	return all
}
