package install

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/target"
)

const (
	// managedByLabel (value managedByHelm), releaseName and releaseNamespace are how Helm marks what it made for a release; it does not touch
	// anything else.
	managedByLabel   = "app.kubernetes.io/managed-by"
	managedByHelm    = "Helm"
	releaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
)

// survey finds what of the chart is in the cluster without being the release's: definitions that Liqo v1 left, since its chart keeps them out of
// its release, and its namespace of volumes. Their objects stay. What cannot be taken over is refused.
func (p *Plan) survey(ctx context.Context, manifests string) error {
	cluster := p.options.Cluster
	live := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := cluster.List(ctx, live); err != nil {
		return err
	}
	for _, text := range helm.Documents(manifests, "CustomResourceDefinition") {
		wanted := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal([]byte(text), wanted); err != nil {
			return fmt.Errorf("reading a definition of the chart: %w", err)
		}
		i := slices.IndexFunc(live.Items, func(one apiextensionsv1.CustomResourceDefinition) bool { return one.Name == wanted.Name })
		if i < 0 {
			continue
		}
		if err := requireFit(&live.Items[i], wanted); err != nil {
			return err
		}
		if err := p.leave(ctx, &live.Items[i]); err != nil {
			return err
		}
	}
	for _, text := range helm.Documents(manifests, "Namespace") {
		namespace := &corev1.Namespace{}
		if err := yaml.Unmarshal([]byte(text), namespace); err != nil {
			return fmt.Errorf("reading a namespace of the chart: %w", err)
		}
		if err := p.leaveNamespace(ctx, namespace.Name); err != nil {
			return err
		}
	}
	if len(p.left) == 0 {
		return nil
	}
	rights := target.Rights("apiextensions.k8s.io", "customresourcedefinitions", "", "patch")
	return cluster.RequireRights(ctx, append(rights, target.Rights("", "namespaces", "", "patch")...))
}

// leaveNamespace looks at the namespace of volumes.
func (p *Plan) leaveNamespace(ctx context.Context, name string) error {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	found, err := p.options.Cluster.Get(ctx, namespace)
	if err != nil || !found {
		return err
	}
	if namespace.Labels[offloadingv1beta1.StorageProvisionerLabel] != "true" {
		return failure.Unmet("choose another one with --set storage.storageNamespace=NAME", "%s is there already and not Liqo's", target.Name(namespace))
	}
	return p.leave(ctx, namespace)
}

// leave notes an object that is to be adopted, unless it is the release's already. It is refused if another release that is there has it.
func (p *Plan) leave(ctx context.Context, object client.Object) error {
	cluster, marks := p.options.Cluster, object.GetAnnotations()
	helms := object.GetLabels()[managedByLabel] == managedByHelm
	if helms && marks[releaseName] == target.Liqo && marks[releaseNamespace] == cluster.LiqoNamespace {
		return nil
	}
	if helms && marks[releaseName] != "" {
		records, err := releases(ctx, cluster, marks[releaseNamespace], marks[releaseName])
		if err != nil {
			return err
		}
		if len(records) > 0 {
			return failure.Unmet("uninstall that first with 'helm uninstall "+marks[releaseName]+" --namespace "+marks[releaseNamespace]+"'",
				"%s is of Helm release %s in namespace %s", target.Name(object), marks[releaseName], marks[releaseNamespace])
		}
	}
	p.left = append(p.left, object)
	return nil
}

// requireFit refuses a definition that cannot become ours: the API server would, in the middle of the installation.
func requireFit(live, wanted *apiextensionsv1.CustomResourceDefinition) error {
	const readMore = " (" + migration + ")"
	if !live.DeletionTimestamp.IsZero() {
		return failure.Unmet("wait until it is gone with 'kubectl wait --for=delete crd/"+live.Name+"'", "definition %s is being deleted", live.Name)
	}
	if live.Spec.Scope != wanted.Spec.Scope {
		return failure.Unmet("save its objects and delete it with 'kubectl delete crd "+live.Name+"'"+readMore,
			"definition %s is %s in the cluster and %s in the chart, which cannot be changed", live.Name, live.Spec.Scope, wanted.Spec.Scope)
	}
	for _, version := range live.Status.StoredVersions {
		if !slices.ContainsFunc(wanted.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version && v.Served }) {
			return failure.Unmet("have its objects stored anew and take "+version+" out of its status.storedVersions, or delete it if you need none of them"+readMore,
				"definition %s has objects stored as %s, which this Liqo does not read", live.Name, version)
		}
	}
	return nil
}

// adopt marks what was left as the release's. Nothing else of it is written: Helm brings it up to date with the rest.
func (p *Plan) adopt(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      map[string]string{managedByLabel: managedByHelm},
		"annotations": map[string]string{releaseName: target.Liqo, releaseNamespace: p.options.Cluster.LiqoNamespace},
	}})
	if err != nil {
		return fmt.Errorf("encoding Helm's marks: %w", err)
	}
	for _, object := range p.left {
		if err := p.options.Cluster.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("taking over %s: %w", p.options.Cluster.Describe(object), err)
		}
	}
	return nil
}
