package namespaceoffloading

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// skip tells the virtual kubelets of the selected clusters when the users' annotation that keeps a namespace at home comes or
// goes: they cannot watch namespaces, but follow their NamespaceMap.
func (r *reconciler) skip(ctx context.Context, s *scope) error {
	var namespaces corev1.NamespaceList
	for _, cluster := range slices.Sorted(maps.Keys(s.selected)) {
		nm := s.maps[cluster]
		if !s.selected[cluster] || nm == nil || !nm.DeletionTimestamp.IsZero() {
			continue
		}
		if namespaces.Items == nil {
			if err := r.List(ctx, &namespaces); err != nil {
				return fmt.Errorf("listing Namespaces: %w", err)
			}
		}
		wanted := skipped(namespaces.Items, nm.Spec.DesiredMapping)
		if nm.Annotations[offloadingv1beta1.SkippedNamespacesAnnotation] == wanted {
			continue
		}
		if err := r.announce(ctx, nm, wanted); err != nil {
			return err
		}
	}
	return nil
}

// announce sets the annotation of a NamespaceMap, or with an empty value removes it.
func (r *reconciler) announce(ctx context.Context, nm *offloadingv1beta1.NamespaceMap, wanted string) error {
	value := &wanted
	if wanted == "" {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"annotations": map[string]*string{offloadingv1beta1.SkippedNamespacesAnnotation: value}}})
	if err != nil {
		return fmt.Errorf("encoding the patch of NamespaceMap %s/%s: %w", nm.Namespace, nm.Name, err)
	}
	if err := r.Patch(ctx, nm, client.RawPatch(types.MergePatchType, patch)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("annotating NamespaceMap %s/%s: %w", nm.Namespace, nm.Name, err)
	}
	return nil
}

// skipped identifies the mapped namespaces that are kept at home: it differs whenever they do, and is empty if there are none.
// A digest, because the names of all may be longer than an annotation.
func skipped(namespaces []corev1.Namespace, mapping map[string]string) string {
	var names []string
	for i := range namespaces {
		_, mapped := mapping[namespaces[i].Name]
		if _, skip := namespaces[i].Annotations[offloadingv1beta1.SkipReflectionAnnotation]; mapped && skip {
			names = append(names, namespaces[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	sum := sha256.Sum256([]byte(strings.Join(names, ",")))
	return hex.EncodeToString(sum[:8])
}
