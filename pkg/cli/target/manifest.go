package target

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// Manifest returns an object as kubectl shows it: with its kind, and without what is empty or says who wrote which field.
func Manifest(object client.Object) (map[string]any, error) {
	gvk, err := apiutil.GVKForObject(object, Scheme())
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", Name(object), err)
	}
	manifest, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("rendering %s: %w", Name(object), err)
	}
	manifest["apiVersion"], manifest["kind"] = gvk.ToAPIVersionAndKind()
	unstructured.RemoveNestedField(manifest, "metadata", "managedFields")
	for _, path := range [][]string{{"metadata", "creationTimestamp"}, {"status"}} {
		value, _, _ := unstructured.NestedFieldNoCopy(manifest, path...)
		if fields, isMap := value.(map[string]any); value == nil || isMap && len(fields) == 0 {
			unstructured.RemoveNestedField(manifest, path...)
		}
	}
	return manifest, nil
}
