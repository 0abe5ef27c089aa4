package uninstall

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/removal"
	"liqo.io/liqo/pkg/cli/residue"
	"liqo.io/liqo/pkg/cli/target"
)

// purge removes what the release leaves behind. The controllers are gone by now, and nothing that they would have cleaned up
// exists any more (Run refused otherwise), so finalizers of ours are removed by hand.
func purge(ctx context.Context, o Options) error {
	for _, step := range []struct {
		title string
		run   func(context.Context, Options, progress.Task) error
	}{
		{"Removing the namespace of volumes", storageNamespace},
		{"Removing Liqo's objects", objects},
		{"Removing Liqo's definitions", definitions},
		{"Removing tenant namespaces", tenantNamespaces},
		{"Removing what the controllers made", leftovers},
		{"Removing namespace " + o.Cluster.LiqoNamespace, liqoNamespace},
	} {
		err := progress.Run(ctx, o.Observer, o.Cluster.Name, step.title, func(ctx context.Context, task progress.Task) (string, error) {
			return "", step.run(ctx, o, task)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// objects deletes the objects of Liqo's own kinds.
func objects(ctx context.Context, o Options, task progress.Task) error {
	items, err := residue.OfLiqo(ctx, o.Cluster, false)
	if err != nil {
		return err
	}
	for _, item := range items {
		if !strings.HasSuffix(item.Resource, ".liqo.io") {
			continue
		}
		if err := o.Cluster.Remove(ctx, item.Object()); err != nil {
			return err
		}
		if err := release(ctx, o.Cluster, item.Object()); err != nil {
			return err
		}
		if err := removal.Gone(ctx, task, o.Cluster, item.Object()); err != nil {
			return err
		}
	}
	return nil
}

// release removes all finalizers of an object that is being deleted.
func release(ctx context.Context, cluster *target.Cluster, object client.Object) error {
	if len(object.GetFinalizers()) == 0 {
		return nil
	}
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))
	if err := cluster.Client.Patch(ctx, object, patch); err != nil && !target.Absent(err) {
		return fmt.Errorf("releasing %s: %w", cluster.Describe(object), err)
	}
	return nil
}

func definitions(ctx context.Context, o Options, task progress.Task) error {
	list := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := o.Cluster.List(ctx, list); err != nil {
		return err
	}
	var ours []*apiextensionsv1.CustomResourceDefinition
	for i := range list.Items {
		// The group alone is not enough: another product could define kinds below liqo.io.
		if definition := &list.Items[i]; definition.Labels[target.PartOfLabel] == target.Liqo && strings.HasSuffix(definition.Spec.Group, "liqo.io") {
			ours = append(ours, definition)
		}
	}
	for _, definition := range ours {
		if err := o.Cluster.Remove(ctx, definition); err != nil {
			return err
		}
	}
	for _, definition := range ours {
		if err := removal.Gone(ctx, task, o.Cluster, definition); err != nil {
			return err
		}
	}
	return nil
}

func tenantNamespaces(ctx context.Context, o Options, task progress.Task) error {
	list := &corev1.NamespaceList{}
	if err := o.Cluster.List(ctx, list, client.MatchingLabels{corev1beta1.TenantNamespaceLabel: "true"}); err != nil {
		return err
	}
	for i := range list.Items {
		if err := removal.Begin(ctx, task, o.Cluster, &list.Items[i]); err != nil {
			return err
		}
	}
	for i := range list.Items {
		if err := removal.Gone(ctx, task, o.Cluster, &list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what the controllers made beside the release, and keeps definitions, tenant namespaces and Liqo's namespace.
func sweep(ctx context.Context, o Options) error {
	return progress.Run(ctx, o.Observer, o.Cluster.Name, "Removing what the controllers made", func(ctx context.Context, task progress.Task) (string, error) {
		if err := storageNamespace(ctx, o, task); err != nil {
			return "", err
		}
		return "", leftovers(ctx, o, task)
	})
}

// leftovers deletes what the controllers made beside the release, such as rights, requests for certificates, and the webhooks'
// certificate.
func leftovers(ctx context.Context, o Options, _ progress.Task) error {
	items, err := residue.OfLiqo(ctx, o.Cluster, false)
	if err != nil {
		return err
	}
	for _, item := range unintended(items) {
		if err := o.Cluster.Remove(ctx, item.Object()); err != nil {
			return err
		}
	}
	return nil
}

func liqoNamespace(ctx context.Context, o Options, task progress.Task) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: o.Cluster.LiqoNamespace}}
	found, err := o.Cluster.Get(ctx, namespace)
	if err != nil || !found {
		return err
	}
	stranger, err := whoElse(ctx, o.Cluster, namespace)
	if err != nil {
		return err
	}
	if stranger != "" {
		o.Observer.Note(progress.Warning, o.Cluster.Name, "Namespace "+namespace.Name+" is kept, because it holds "+stranger)
		return nil
	}
	if err := o.Cluster.Remove(ctx, namespace); err != nil {
		return err
	}
	return removal.Gone(ctx, task, o.Cluster, namespace)
}

// whoElse names something in Liqo's namespace that is not Liqo's: a namespace that holds it is not ours to delete.
func whoElse(ctx context.Context, cluster *target.Cluster, namespace *corev1.Namespace) (string, error) {
	if namespace.Name == corev1.NamespaceDefault || strings.HasPrefix(namespace.Name, "kube-") {
		return "what belongs to Kubernetes", nil
	}
	for _, list := range []client.ObjectList{
		&corev1.PodList{}, &appsv1.DeploymentList{}, &appsv1.StatefulSetList{}, &appsv1.DaemonSetList{}, &batchv1.JobList{}, &batchv1.CronJobList{},
		&corev1.ServiceList{}, &corev1.PersistentVolumeClaimList{}, &corev1.ConfigMapList{}, &corev1.SecretList{},
	} {
		if err := cluster.List(ctx, list, client.InNamespace(namespace.Name)); err != nil {
			return "", err
		}
		stranger := ""
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok && stranger == "" && !liqos(object) {
				stranger = cluster.Describe(object)
			}
			return nil
		})
		if err != nil || stranger != "" {
			return stranger, err
		}
	}
	return "", nil
}

// liqos tells what Liqo, Helm for Liqo, or Kubernetes itself put into Liqo's namespace.
func liqos(object client.Object) bool {
	labels := object.GetLabels()
	return labels[target.PartOfLabel] == target.Liqo || labels[corev1beta1.ManagedLabel] == "true" || labels[corev1beta1.WebhookLabel] == "true" ||
		labels["owner"] == "helm" && labels["name"] == target.Liqo || object.GetName() == "kube-root-ca.crt" || !object.GetDeletionTimestamp().IsZero()
}
