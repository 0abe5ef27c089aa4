package namespaceoffloading

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
)

// waiting looks at the pods that wait for a node, once for each offloading.
type waiting struct {
	// looked holds the UIDs of the NamespaceOffloadings whose pods were looked at.
	looked sync.Map
}

// large tells whether a pod waits that may be larger than any node of a provider. The webhook for pods labels the namespaces of such as they are made,
// but not of those that were made before, or while it did not answer.
func (w *waiting) large(ctx context.Context, live client.Reader, nso *offloadingv1beta1.NamespaceOffloading) (bool, error) {
	if _, looked := w.looked.Load(nso.UID); looked {
		return false, nil
	}
	var pods corev1.PodList
	if err := live.List(ctx, &pods, client.InNamespace(nso.Namespace), client.MatchingFields{"spec.nodeName": ""}); err != nil {
		return false, fmt.Errorf("listing the pods of namespace %s that wait: %w", nso.Namespace, err)
	}
	w.looked.Store(nso.UID, true)
	return slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool { return capacity.WhyLarger(&p.Spec, capacity.Small()) != "" }), nil
}
