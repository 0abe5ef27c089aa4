package offload

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/cli/volume"
)

// DefaultUndoTimeout of Undo, for each namespace.
const DefaultUndoTimeout = 2 * time.Minute

// UndoOptions of Undo.
type UndoOptions struct {
	// Cluster that the namespaces are in.
	Cluster *target.Cluster
	// Namespaces to take back.
	Namespaces []string
	// DeleteVolumes also gives up volumes at providers, with their data. Without it they are a reason to refuse.
	DeleteVolumes bool
	// Timeout for each namespace; 0 means DefaultUndoTimeout.
	Timeout time.Duration
	// Observer is told each step; nil means nobody.
	Observer progress.Observer
}

// Undo takes namespaces back: the remote ones are deleted with everything in them. It is refused while volumes there hold data,
// unless told to delete them, and while a provider does not work. A namespace that is not offloaded is no error.
func Undo(ctx context.Context, o UndoOptions) error {
	if o.Observer == nil {
		o.Observer = progress.Discard
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultUndoTimeout
	}
	if _, err := o.Cluster.RequireInstalled(ctx); err != nil {
		return err
	}
	if err := o.Cluster.RequireRights(ctx, undoRights(o)); err != nil {
		return err
	}
	var problems []error
	for _, namespace := range o.Namespaces {
		if err := undo(ctx, o, namespace); err != nil {
			problems = append(problems, err)
		}
	}
	if len(problems) == 1 {
		return problems[0]
	}
	return errors.Join(problems...)
}

// undoRights are what a user needs to take the namespaces back. The rest is done by the controllers.
func undoRights(o UndoOptions) []target.Right {
	rights := target.Rights(offloadingv1beta1.GroupVersion.Group, "namespacemaps", "", "list")
	rights = append(rights, target.Rights(corev1beta1.GroupVersion.Group, "foreignclusters", "", "list")...)
	rights = append(rights, target.Rights("", "persistentvolumes", "", "list")...)
	for _, namespace := range o.Namespaces {
		verbs := []string{"get", "delete"}
		if o.DeleteVolumes {
			verbs = append(verbs, "patch")
			rights = append(rights, target.Rights("", "persistentvolumeclaims", namespace, "get", "delete")...)
		}
		rights = append(rights, target.Rights(offloadingv1beta1.GroupVersion.Group, "namespaceoffloadings", namespace, verbs...)...)
	}
	return rights
}

func undo(ctx context.Context, o UndoOptions, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	object := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}}
	found, err := o.Cluster.Get(ctx, object)
	if err != nil {
		return err
	}
	if !found {
		o.Observer.Note(progress.Warning, o.Cluster.Name, "Namespace "+namespace+" is not offloaded")
		return nil
	}
	if err := requireProviders(ctx, o.Cluster, namespace); err != nil {
		return err
	}
	volumes, err := volume.At(ctx, o.Cluster, "", namespace)
	if err != nil {
		return err
	}
	if len(volumes) > 0 && !o.DeleteVolumes {
		return volume.Refuse(volumes, "unoffloading namespace "+namespace)
	}
	if len(volumes) > 0 {
		if err := volume.Delete(ctx, o.Observer, o.Cluster, volumes); err != nil {
			return err
		}
		if err := volume.Decide(ctx, o.Cluster, object, volumes); err != nil {
			return err
		}
	}
	return progress.Run(ctx, o.Observer, o.Cluster.Name, "Unoffloading namespace "+namespace, func(ctx context.Context, task progress.Task) (string, error) {
		if err := o.Cluster.Remove(ctx, object); err != nil {
			return "", err
		}
		return "Namespace " + namespace + " is local again", removal.Gone(ctx, task, o.Cluster, object)
	})
}

// requireProviders refuses if a provider that the namespace is offloaded to does not answer or does not let us work any more: what is
// there could not be taken back.
func requireProviders(ctx context.Context, cluster *target.Cluster, namespace string) error {
	list := &offloadingv1beta1.NamespaceMapList{}
	if err := cluster.List(ctx, list, client.MatchingLabels{corev1beta1.ReplicationLabel: "true"}); err != nil {
		return err
	}
	for i := range list.Items {
		_, wanted := list.Items[i].Spec.DesiredMapping[namespace]
		_, there := list.Items[i].Status.CurrentMapping[namespace]
		if !wanted && !there {
			continue
		}
		id := list.Items[i].Labels[corev1beta1.RemoteIDLabel]
		peer, err := cluster.ForeignCluster(ctx, id)
		if err != nil {
			return err
		}
		if why := peer.WhyLost(); why != "" {
			return failure.Unmet("run the same command once that works again; if it never will, end the peering first: liqoctl unpeer --force "+id,
				"namespace %s cannot be taken back from %s (cluster %s): %s", namespace, id, cluster.Name, why)
		}
	}
	return nil
}
