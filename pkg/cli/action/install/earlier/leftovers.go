package earlier

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
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
	// ReleaseName is the annotation by which Helm marks what it made for a release; it does not touch anything else. The namespace of the
	// release, and a label, belong to it.
	ReleaseName      = "meta.helm.sh/release-name"
	releaseNamespace = "meta.helm.sh/release-namespace"
	managedByLabel   = "app.kubernetes.io/managed-by"
	managedByHelm    = "Helm"
)

// Leftovers are objects of the chart that an earlier Liqo left in a cluster: definitions, since v1's chart keeps them out of its release, and its
// namespace of volumes.
type Leftovers struct {
	cluster *target.Cluster
	objects []client.Object
}

// Survey finds what is to be made of the manifests and is in the cluster without being the release's. What cannot be taken over is refused, and so
// is what belongs to a Liqo that something else than Helm installed. present is the release that is to be upgraded, nil if there is none.
func Survey(ctx context.Context, cluster *target.Cluster, present *helm.Release, manifests string) (*Leftovers, error) {
	l := &Leftovers{cluster: cluster}
	for _, find := range []func(context.Context, string) error{l.definitions, l.namespaces} {
		if err := find(ctx, manifests); err != nil {
			return nil, err
		}
	}
	if l.Count() == 0 {
		return l, nil
	}
	if present == nil {
		if err := requireNone(ctx, cluster); err != nil {
			return nil, err
		}
	}
	rights := target.Rights("apiextensions.k8s.io", "customresourcedefinitions", "", "patch")
	return l, cluster.RequireRights(ctx, append(rights, target.Rights("", "namespaces", "", "patch")...))
}

// requireNone refuses to take definitions from a Liqo that runs.
func requireNone(ctx context.Context, cluster *target.Cluster) error {
	managers := &appsv1.DeploymentList{}
	labels := client.MatchingLabels{target.PartOfLabel: target.Liqo, target.ComponentLabel: target.ControllerManagerComponent}
	if err := cluster.List(ctx, managers, labels); err != nil {
		return err
	}
	if len(managers.Items) == 0 {
		return nil
	}
	return failure.Unmet("change it with what installed it, or have that remove it first",
		"%s was not installed by liqoctl or Helm, and its definitions are not taken from it", cluster.Describe(&managers.Items[0]))
}

// Count is how many they are.
func (l *Leftovers) Count() int { return len(l.objects) }

// definitions looks at those of the chart.
func (l *Leftovers) definitions(ctx context.Context, manifests string) error {
	live := &apiextensionsv1.CustomResourceDefinitionList{}
	if err := l.cluster.List(ctx, live); err != nil {
		return err
	}
	if len(live.Items) == 0 {
		return nil
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
		if err := l.leave(ctx, &live.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// namespaces looks at that of volumes.
func (l *Leftovers) namespaces(ctx context.Context, manifests string) error {
	for _, text := range helm.Documents(manifests, "Namespace") {
		wanted := &corev1.Namespace{}
		if err := yaml.Unmarshal([]byte(text), wanted); err != nil {
			return fmt.Errorf("reading a namespace of the chart: %w", err)
		}
		live := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: wanted.Name}}
		found, err := l.cluster.Get(ctx, live)
		switch {
		case err != nil:
			return err
		case !found:
			continue
		case live.Labels[offloadingv1beta1.StorageProvisionerLabel] != "true":
			return failure.Unmet("choose another one with --set storage.storageNamespace=NAME", "%s is there already and not Liqo's", target.Name(live))
		}
		if err := l.leave(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// leave notes an object that is to be adopted, unless it is the release's already. It is refused if another release that is there has it.
func (l *Leftovers) leave(ctx context.Context, object client.Object) error {
	cluster, marks := l.cluster, object.GetAnnotations()
	helms := object.GetLabels()[managedByLabel] == managedByHelm
	if helms && marks[ReleaseName] == target.Liqo && marks[releaseNamespace] == cluster.LiqoNamespace {
		return nil
	}
	if helms && marks[ReleaseName] != "" {
		records, err := releases(ctx, cluster, marks[releaseNamespace], marks[ReleaseName])
		if err != nil {
			return err
		}
		if len(records) > 0 {
			return failure.Unmet("uninstall that first with 'helm uninstall "+marks[ReleaseName]+" --namespace "+marks[releaseNamespace]+"'",
				"%s is of Helm release %s in namespace %s", target.Name(object), marks[ReleaseName], marks[releaseNamespace])
		}
	}
	l.objects = append(l.objects, object)
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

// Adopt marks what was left as the release's. Nothing else of it is written: Helm brings it up to date with the rest.
func (l *Leftovers) Adopt(ctx context.Context) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"labels":      map[string]string{managedByLabel: managedByHelm},
		"annotations": map[string]string{ReleaseName: target.Liqo, releaseNamespace: l.cluster.LiqoNamespace},
	}})
	if err != nil {
		return fmt.Errorf("encoding Helm's marks: %w", err)
	}
	for _, object := range l.objects {
		if err := l.cluster.Client.Patch(ctx, object, client.RawPatch(types.MergePatchType, patch)); err != nil {
			return fmt.Errorf("taking over %s: %w", l.cluster.Describe(object), err)
		}
	}
	return nil
}
