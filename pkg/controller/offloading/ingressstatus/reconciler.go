package ingressstatus

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/kube/writers"
	"liqo.io/liqo/pkg/mirror"
	"liqo.io/liqo/pkg/placement"
)

// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses,verbs=list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses/status,verbs=patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=namespacemaps,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=vkoptionstemplates,verbs=get;list;watch

// kind is the name by which users configure the reflection of Ingresses, and workersFlag the argument that wins over how many are
// handled at a time.
const (
	kind        = "ingress"
	workersFlag = "--ingress-reflection-workers"
)

// addresses is where the addresses of an Ingress's load balancer stand.
var addresses = []string{"status", "loadBalancer", "ingress"}

// Options of the controller.
type Options struct {
	// Namespace of Liqo, where the default VkOptionsTemplate is.
	Namespace string
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
}

type reconciler struct {
	client.Client
	Options
}

// Register adds the controller to the manager, whose cache has to keep the managed fields of Ingresses; see Strip.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o}
	all := watch.All(r.Client, metadataOfAll(), watch.If(spoken))
	err := ctrl.NewControllerManagedBy(mgr).Named("ingressstatus").
		For(&networkingv1.Ingress{}, builder.OnlyMetadata, builder.WithPredicates(watch.Where(spoken))).
		Watches(&offloadingv1beta1.NamespaceMap{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&offloadingv1beta1.VirtualNode{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&offloadingv1beta1.VkOptionsTemplate{}, all, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: 1, RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
	if err != nil {
		return fmt.Errorf("registering the controller of the addresses of Ingresses: %w", err)
	}
	return nil
}

// Strip drops from a cached Ingress what this controller does not look at, which is all but who wrote its addresses. It is the
// transform of the cache for Ingresses.
func Strip(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	o.SetLabels(nil)
	o.SetAnnotations(nil)
	o.SetManagedFields(slices.DeleteFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return e.Subresource != "status" }))
	return object, nil
}

// speaker is the provider whose addresses an Ingress shows, empty if it shows none; alone says that nobody else wrote there.
func speaker(o client.Object) (provider string, alone bool) {
	all := writers.Of(o, addresses)
	for _, writer := range all {
		if p, ours := mirror.SpokenFor(writer); ours {
			provider = p
		}
	}
	return provider, len(all) == 1
}

func metadataOf() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("Ingress"))
	return m
}

func metadataOfAll() *metav1.PartialObjectMetadataList {
	m := &metav1.PartialObjectMetadataList{}
	m.SetGroupVersionKind(networkingv1.SchemeGroupVersion.WithKind("IngressList"))
	return m
}

// spoken tells whether an Ingress shows addresses of any provider.
func spoken(o client.Object) bool {
	provider, _ := speaker(o)
	return provider != ""
}

// Reconcile removes the addresses of an Ingress if they came from a provider that has no business in its namespace any more.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ingress := metadataOf()
	if err := r.Get(ctx, req.NamespacedName, ingress); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	provider, alone := speaker(ingress)
	if provider == "" || !alone || !ingress.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	for _, reader := range []client.Reader{r.Client, r.Live} {
		speaks, err := r.speaks(ctx, reader, corev1beta1.ClusterID(provider), ingress.Namespace)
		if err != nil || speaks {
			return reconcile.Result(err)
		}
	}
	if err := r.clear(ctx, ingress, provider); err != nil {
		return reconcile.Result(err)
	}
	return ctrl.Result{}, nil
}

// speaks tells whether what a provider says of Ingresses in a namespace comes back, as far as this cluster wants it.
func (r *reconciler) speaks(ctx context.Context, reader client.Reader, provider corev1beta1.ClusterID, namespace string) (bool, error) {
	offloaded, err := r.offloaded(ctx, reader, provider, namespace)
	if err != nil || !offloaded {
		return false, err
	}
	var nodes offloadingv1beta1.VirtualNodeList
	if err := reader.List(ctx, &nodes); err != nil {
		return false, fmt.Errorf("listing VirtualNodes: %w", err)
	}
	for i := range nodes.Items {
		if nodes.Items[i].Spec.ClusterID != provider {
			continue
		}
		if on, err := r.comesBack(ctx, reader, &nodes.Items[i]); err != nil || on {
			return on, err
		}
	}
	return false, nil
}

// offloaded tells whether the namespace is to have its twin at the provider.
func (r *reconciler) offloaded(ctx context.Context, reader client.Reader, provider corev1beta1.ClusterID, namespace string) (bool, error) {
	var maps offloadingv1beta1.NamespaceMapList
	err := reader.List(ctx, &maps, client.InNamespace(corev1beta1.TenantNamespacePrefix+string(provider)),
		client.MatchingLabels{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: string(provider)})
	if err != nil {
		return false, fmt.Errorf("listing the NamespaceMaps towards cluster %q: %w", provider, err)
	}
	return slices.ContainsFunc(maps.Items, func(m offloadingv1beta1.NamespaceMap) bool {
		_, there := m.Spec.DesiredMapping[namespace]
		return there && !placement.IsPeersMap(&m)
	}), nil
}

// comesBack tells whether a virtual node brings the addresses of Ingresses back. A template that is not there says nothing: its
// virtual kubelet goes on with what it said last.
func (r *reconciler) comesBack(ctx context.Context, reader client.Reader, vn *offloadingv1beta1.VirtualNode) (bool, error) {
	key := client.ObjectKey{Namespace: r.Namespace, Name: offloadingv1beta1.DefaultVkOptionsTemplate}
	if ref := vn.Spec.VkOptionsTemplateRef; ref != nil && ref.Name != "" {
		key.Name = ref.Name
		if ref.Namespace != "" {
			key.Namespace = ref.Namespace
		}
	}
	var template offloadingv1beta1.VkOptionsTemplate
	if err := reader.Get(ctx, key, &template); err != nil {
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		return false, fmt.Errorf("reading VkOptionsTemplate %s: %w", key, err)
	}
	config := template.Spec.ReflectorsConfig[kind]
	given := slices.ContainsFunc(template.Spec.ExtraArgs, func(arg string) bool { return strings.HasPrefix(arg, workersFlag) })
	return config.StatusBack && (config.NumWorkers > 0 || given), nil
}

// clear removes the addresses, unless the Ingress changed since it was judged.
func (r *reconciler) clear(ctx context.Context, ingress client.Object, provider string) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": ingress.GetUID(), "resourceVersion": ingress.GetResourceVersion()},
		"status":   map[string]any{"loadBalancer": map[string]any{"ingress": nil}},
	})
	if err != nil {
		return fmt.Errorf("encoding the patch of Ingress %s/%s: %w", ingress.GetNamespace(), ingress.GetName(), err)
	}
	object := &networkingv1.Ingress{ObjectMeta: metav1.ObjectMeta{Namespace: ingress.GetNamespace(), Name: ingress.GetName()}}
	err = r.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(mirror.Speaker(provider)))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // Its next version is an event.
	case err != nil:
		return fmt.Errorf("removing the addresses that came from cluster %q from Ingress %s/%s: %w", provider, ingress.GetNamespace(), ingress.GetName(), err)
	}
	klog.FromContext(ctx).Info("Removed the addresses of a provider that serves the Ingress no more", "provider", provider)
	return nil
}
