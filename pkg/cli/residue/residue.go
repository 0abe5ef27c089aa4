package residue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/target"
)

// Groups are the API groups that belong to Liqo.
var Groups = []string{
	corev1beta1.GroupVersion.Group, authv1beta1.GroupVersion.Group, offloadingv1beta1.GroupVersion.Group,
	networkingv1beta1.GroupVersion.Group, ipamv1alpha1.GroupVersion.Group,
}

// kind is a Kubernetes kind of which Liqo makes objects, and how those are told.
type kind struct {
	gvk      schema.GroupVersionKind
	resource string
	// ours are the selectors that find Liqo's objects; any of them is enough.
	ours []client.MatchingLabels
}

func group(name, version, object, resource string, ours ...client.MatchingLabels) kind {
	return kind{gvk: schema.GroupVersionKind{Group: name, Version: version, Kind: object}, resource: resource, ours: ours}
}

var (
	managed  = client.MatchingLabels{corev1beta1.ManagedLabel: "true"}
	released = client.MatchingLabels{target.PartOfLabel: target.Liqo}
	tenant   = client.MatchingLabels{corev1beta1.TenantNamespaceLabel: "true"}
	virtual  = client.MatchingLabels{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}
	shadow   = client.MatchingLabels{offloadingv1beta1.ManagedByLabel: offloadingv1beta1.ManagedByShadowPod}
	webhooks = client.MatchingLabels{corev1beta1.WebhookLabel: "true"}
)

// builtin are the kinds of Kubernetes itself that uninstalling and unpeering have to leave empty.
var builtin = []kind{
	group("", "v1", "Namespace", "namespaces", tenant, managed),
	group("", "v1", "Node", "nodes", virtual),
	group("", "v1", "Pod", "pods", shadow, managed),
	group("", "v1", "ConfigMap", "configmaps", released, managed),
	group("", "v1", "Secret", "secrets", released, managed, webhooks),
	group("", "v1", "Service", "services", released, managed),
	group("", "v1", "ServiceAccount", "serviceaccounts", released, managed),
	group("", "v1", "ResourceQuota", "resourcequotas", managed),
	group("apps", "v1", "Deployment", "deployments", released, managed),
	group("apps", "v1", "DaemonSet", "daemonsets", released),
	group("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", released, managed),
	group("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", managed),
	group("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", managed),
	group("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", released, managed),
	group("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", released),
	group("rbac.authorization.k8s.io", "v1", "Role", "roles", released, managed),
	group("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", released, managed),
	group("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", released, managed),
	group("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", released, managed),
	group("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration", "validatingwebhookconfigurations", released, webhooks),
	group("admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration", "mutatingwebhookconfigurations", released, webhooks),
	group("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies", released),
	group("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings", released),
	group("certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", managed),
}

// definition is the kind of Liqo's own kinds.
var definition = group("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", released)

// Item is one object that is left.
type Item struct {
	// Resource in the plural, with its group.
	Resource string
	// Namespace, empty for objects without one, and Name.
	Namespace, Name string

	object *metav1.PartialObjectMetadata
}

// String names the item as kubectl takes it.
func (i Item) String() string {
	if i.Namespace == "" {
		return i.Resource + " " + i.Name
	}
	return i.Resource + " " + i.Namespace + "/" + i.Name
}

// Object is the item's metadata, for deletion.
func (i Item) Object() client.Object { return i.object }

// OfLiqo lists everything of Liqo: the objects of its API groups, and its objects of Kubernetes' own kinds. With definitions
// it also lists Liqo's CustomResourceDefinitions.
func OfLiqo(ctx context.Context, cluster *target.Cluster, definitions bool) ([]Item, error) {
	kinds := slices.Clone(builtin)
	if definitions {
		kinds = append(kinds, definition)
	}
	custom, err := Kinds(cluster)
	if err != nil {
		return nil, err
	}
	for _, own := range custom {
		kinds = append(kinds, kind{gvk: own.GVK, resource: own.Resource, ours: []client.MatchingLabels{nil}})
	}
	return list(ctx, cluster, kinds, func(client.Object) bool { return true })
}

// LiqoRights are what a user needs to find and delete what OfLiqo lists; objects of Liqo's own kinds are deleted with their definitions
// only.
func LiqoRights(cluster *target.Cluster, definitions bool) ([]target.Right, error) {
	kinds := slices.Clone(builtin)
	if definitions {
		kinds = append(kinds, definition)
	}
	var rights []target.Right
	for _, kind := range kinds {
		verbs := []string{"list"}
		if slices.ContainsFunc(kind.ours, func(labels client.MatchingLabels) bool { return labels[target.PartOfLabel] != "" }) {
			verbs = append(verbs, "get", "delete")
		}
		rights = append(rights, target.Rights(kind.gvk.Group, kind.resource, "", verbs...)...)
	}
	custom, err := Kinds(cluster)
	for _, own := range custom {
		resource, _, _ := strings.Cut(own.Resource, ".")
		verbs := []string{"list"}
		if definitions {
			verbs = append(verbs, "patch", "delete")
		}
		rights = append(rights, target.Rights(own.GVK.Group, resource, "", verbs...)...)
	}
	return rights, err
}

// OfPeer lists what is left of the peering with one cluster. The tenant namespace, with the binding of our own rights in it,
// is not residue: it is kept on purpose unless the user asks for its deletion.
func OfPeer(ctx context.Context, cluster *target.Cluster, peerID string, namespaceToo bool) ([]Item, error) {
	kinds, err := peerKinds(cluster, client.MatchingLabels{corev1beta1.RemoteClusterIDLabel: peerID})
	if err != nil {
		return nil, err
	}
	return list(ctx, cluster, kinds, func(object client.Object) bool {
		kept := object.GetName() == corev1beta1.TenantNamespacePrefix+peerID && object.GetNamespace() == ""
		return namespaceToo || !kept
	})
}

// PeerRights are what a user needs for OfPeer.
func PeerRights(cluster *target.Cluster) ([]target.Right, error) {
	kinds, err := peerKinds(cluster, nil)
	var rights []target.Right
	for _, kind := range kinds {
		resource, _, _ := strings.Cut(kind.resource, ".")
		rights = append(rights, target.Rights(kind.gvk.Group, resource, "", "list")...)
	}
	return rights, err
}

// peerKinds are the kinds of which a peering has objects, with the label that tells them.
func peerKinds(cluster *target.Cluster, labelled client.MatchingLabels) ([]kind, error) {
	kinds := []kind{
		group("", "v1", "Namespace", "namespaces", labelled), group("", "v1", "Node", "nodes", labelled),
		group("", "v1", "Secret", "secrets", labelled),
		group("apps", "v1", "Deployment", "deployments", labelled), group("", "v1", "Service", "services", labelled),
		group("rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", labelled),
		group("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", labelled),
		group("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", labelled),
		group("flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration", "prioritylevelconfigurations", labelled),
	}
	custom, err := Kinds(cluster)
	if err != nil {
		return nil, err
	}
	for _, own := range custom {
		kinds = append(kinds, kind{gvk: own.GVK, resource: own.Resource, ours: []client.MatchingLabels{labelled}})
	}
	return kinds, nil
}

// Kind is one of Liqo's own kinds that the cluster serves.
type Kind struct {
	// GVK of the kind, and its Resource in the plural with its group.
	GVK      schema.GroupVersionKind
	Resource string
}

// Kinds lists Liqo's own kinds that the cluster serves, in their preferred versions.
func Kinds(cluster *target.Cluster) ([]Kind, error) {
	lists, err := cluster.Kube.Discovery().ServerPreferredResources()
	var partial *discovery.ErrGroupDiscoveryFailed
	// An aggregated API that does not answer is somebody else's, unless it is in a group of ours.
	if errors.As(err, &partial) {
		for version := range partial.Groups {
			if slices.Contains(Groups, version.Group) {
				return nil, fmt.Errorf("discovering the kinds of %s (cluster %s): %w", version, cluster.Name, err)
			}
		}
	} else if err != nil {
		return nil, fmt.Errorf("discovering the kinds of the cluster %s: %w", cluster.Name, err)
	}
	var found []Kind
	for _, served := range lists {
		version, err := schema.ParseGroupVersion(served.GroupVersion)
		if err != nil || !slices.Contains(Groups, version.Group) {
			continue
		}
		for i := range served.APIResources {
			resource := &served.APIResources[i]
			if !strings.Contains(resource.Name, "/") && slices.Contains(resource.Verbs, "list") {
				found = append(found, Kind{GVK: version.WithKind(resource.Kind), Resource: resource.Name + "." + version.Group})
			}
		}
	}
	return found, nil
}

// list finds the objects of several kinds, each once, sorted.
func list(ctx context.Context, cluster *target.Cluster, kinds []kind, include func(client.Object) bool) ([]Item, error) {
	found := map[string]Item{}
	for _, wanted := range kinds {
		for _, labels := range wanted.ours {
			objects := &metav1.PartialObjectMetadataList{}
			objects.SetGroupVersionKind(wanted.gvk.GroupVersion().WithKind(wanted.gvk.Kind + "List"))
			var options []client.ListOption
			if len(labels) > 0 {
				options = append(options, labels)
			}
			if err := cluster.Client.List(ctx, objects, options...); err != nil {
				if target.Absent(err) {
					continue
				}
				return nil, fmt.Errorf("listing %s (cluster %s): %w", wanted.resource, cluster.Name, err)
			}
			for i := range objects.Items {
				object := &objects.Items[i]
				object.SetGroupVersionKind(wanted.gvk)
				if item := (Item{Resource: wanted.resource, Namespace: object.Namespace, Name: object.Name, object: object}); include(object) {
					found[item.String()] = item
				}
			}
		}
	}
	items := make([]Item, 0, len(found))
	for _, item := range found {
		items = append(items, item)
	}
	slices.SortFunc(items, func(a, b Item) int { return strings.Compare(a.String(), b.String()) })
	return items, nil
}

// Strings are the names of the items.
func Strings(items []Item) []string {
	names := make([]string, len(items))
	for i, item := range items {
		names[i] = item.String()
	}
	return names
}

// IsTenantNamespace tells tenant namespaces.
func IsTenantNamespace(namespace *corev1.Namespace) bool {
	return namespace.Labels[corev1beta1.TenantNamespaceLabel] == "true"
}
