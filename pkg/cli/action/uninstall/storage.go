package uninstall

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/reflection"
)

// storageNamespace removes the namespace of the claims behind volumes, which Helm leaves, unless there are any: their data would
// be lost with it.
func storageNamespace(ctx context.Context, o Options, task progress.Task) error {
	list := &corev1.NamespaceList{}
	if err := o.Cluster.List(ctx, list, client.MatchingLabels{offloadingv1beta1.StorageProvisionerLabel: "true", target.PartOfLabel: target.Liqo}); err != nil {
		return err
	}
	for i := range list.Items {
		namespace := &list.Items[i]
		claims := &corev1.PersistentVolumeClaimList{}
		if err := o.Cluster.List(ctx, claims, client.InNamespace(namespace.Name)); err != nil {
			return err
		}
		if kept := reflection.Kept(claims.Items); len(kept) > 0 {
			names := make([]string, len(kept))
			for i := range kept {
				names[i] = kept[i].Name
			}
			o.Observer.Note(progress.Warning, o.Cluster.Name, fmt.Sprintf(
				"Namespace %s is kept, because there is data in %s: install Liqo again to use or delete it", namespace.Name, offloaded.Counted("claim", names)))
			continue
		}
		if err := o.Cluster.Remove(ctx, namespace); err != nil {
			return err
		}
		if err := removal.Gone(ctx, task, o.Cluster, namespace); err != nil {
			return err
		}
	}
	return nil
}
