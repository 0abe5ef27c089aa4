package supply

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/selection"
)

// +kubebuilder:rbac:groups="",resources=nodes;pods,verbs=get;list;watch

// Register has the manager follow nodes and pods while it leads, from the first on that asks for a count. The manager's cache may hold just
// the Pods with the label liqo.io/managed-by=shadowpod.
func Register(mgr ctrl.Manager, o Options) (*Supply, error) {
	kube, err := kubernetes.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("preparing a client for pods: %w", err)
	}
	s := New(o)
	err = mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-s.asked:
		}
		nodes, err := mgr.GetCache().GetInformer(ctx, &corev1.Node{})
		if err != nil {
			return fmt.Errorf("following Nodes: %w", err)
		}
		followed, err := nodes.AddEventHandler(telling(s.Node, func(node *corev1.Node) { s.ForgetNode(node.Name) }))
		if err != nil {
			return fmt.Errorf("following Nodes: %w", err)
		}
		remote, err := mgr.GetCache().GetInformer(ctx, &corev1.Pod{})
		if err != nil {
			return fmt.Errorf("following Pods of consumers: %w", err)
		}
		followedToo, err := remote.AddEventHandler(telling(s.cachedPod, s.forgetCachedPod))
		if err != nil {
			return fmt.Errorf("following Pods of consumers: %w", err)
		}
		if !cache.WaitForCacheSync(ctx.Done(), followed.HasSynced, followedToo.HasSynced) {
			return nil
		}
		go s.follow(ctx)
		all := kube.CoreV1().Pods(metav1.NamespaceAll)
		source := selection.ListerWatcher(others, all.List, all.Watch, kube)
		cache.NewReflectorWithOptions(source, &corev1.Pod{}, (*pods)(s), cache.ReflectorOptions{Name: "capacity"}).RunWithContext(ctx)
		return nil
	}))
	if err != nil {
		return nil, fmt.Errorf("following what the cluster has: %w", err)
	}
	return s, nil
}

// others are the pods that the manager's cache does not hold, and that are bound: what they are before takes nothing.
var others = selection.Selector{
	Labels: offloadingv1beta1.ManagedByLabel + "!=" + offloadingv1beta1.ManagedByShadowPod,
	Fields: fields.OneTermNotEqualSelector("spec.nodeName", "").String(),
}

// telling hands on what an informer tells of.
func telling[T any](of, gone func(T)) cache.ResourceEventHandler {
	tell := func(object any, to func(T)) {
		if last, is := object.(cache.DeletedFinalStateUnknown); is {
			object = last.Obj
		}
		if one, is := object.(T); is {
			to(one)
		}
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { tell(object, of) },
		UpdateFunc: func(_, object any) { tell(object, of) },
		DeleteFunc: func(object any) { tell(object, gone) },
	}
}

// cachedPod tells of a pod that the manager's cache holds: one watch is enough for it.
func (s *Supply) cachedPod(pod *corev1.Pod) {
	s.note("pod/"+nameOf(pod).String(), capacity.Second(s.pool).Pod(pod, ownerOf(pod)))
}

// forgetCachedPod tells that the cache has it no more, because it is gone or has lost its label.
func (s *Supply) forgetCachedPod(pod *corev1.Pod) {
	capacity.Second(s.pool).ForgetPod(nameOf(pod))
	s.note("pod/"+nameOf(pod).String(), nil)
}

func nameOf(pod *corev1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// pods are the others. They are told of by a watch, and not kept.
type pods Supply

var _ cache.TransformingStore = &pods{}

// Add implements cache.ReflectorStore.
func (p *pods) Add(object any) error {
	if pod, is := object.(*corev1.Pod); is {
		(*Supply)(p).Pod(pod)
	}
	return nil
}

// Update implements cache.ReflectorStore.
func (p *pods) Update(object any) error { return p.Add(object) }

// Delete implements cache.ReflectorStore.
func (p *pods) Delete(object any) error {
	if pod, is := object.(*corev1.Pod); is {
		(*Supply)(p).ForgetPod(nameOf(pod))
	}
	return nil
}

// Replace implements cache.ReflectorStore.
func (p *pods) Replace(objects []any, _ string) error {
	there := make(map[types.NamespacedName]bool, len(objects))
	for _, object := range objects {
		if pod, is := object.(*corev1.Pod); is {
			there[nameOf(pod)] = true
		}
		_ = p.Add(object)
	}
	for _, gone := range p.pool.PodsWithout(there) {
		(*Supply)(p).ForgetPod(gone)
	}
	(*Supply)(p).Counted()
	return nil
}

// Resync implements cache.ReflectorStore. It is never called, as no period is set.
func (p *pods) Resync() error { return nil }

// Transformer implements cache.TransformingStore: of what is streamed as the first list, nothing is kept that is not read.
func (p *pods) Transformer() cache.TransformFunc {
	return func(object any) (any, error) {
		if pod, is := object.(*corev1.Pod); is {
			return slim(pod), nil
		}
		return object, nil
	}
}

// slim is what the pool reads of a pod.
func slim(pod *corev1.Pod) *corev1.Pod {
	containers := func(all []corev1.Container) []corev1.Container {
		out := make([]corev1.Container, len(all))
		for i := range all {
			out[i] = corev1.Container{Name: all[i].Name, Resources: all[i].Resources, RestartPolicy: all[i].RestartPolicy}
		}
		return out
	}
	statuses := func(all []corev1.ContainerStatus) (out []corev1.ContainerStatus) {
		for i := range all {
			if one := &all[i]; one.Resources != nil || one.AllocatedResources != nil {
				out = append(out, corev1.ContainerStatus{Name: one.Name, Resources: one.Resources, AllocatedResources: one.AllocatedResources})
			}
		}
		return out
	}
	out := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, ResourceVersion: pod.ResourceVersion},
		Spec: corev1.PodSpec{NodeName: pod.Spec.NodeName, Containers: containers(pod.Spec.Containers),
			InitContainers: containers(pod.Spec.InitContainers), Overhead: pod.Spec.Overhead, Resources: pod.Spec.Resources},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, ContainerStatuses: statuses(pod.Status.ContainerStatuses),
			InitContainerStatuses: statuses(pod.Status.InitContainerStatuses), Resources: pod.Status.Resources, AllocatedResources: pod.Status.AllocatedResources,
			Conditions: slices.DeleteFunc(slices.Clone(pod.Status.Conditions), func(c corev1.PodCondition) bool {
				return c.Type != corev1.PodResizePending && c.Type != corev1.PodResizeInProgress
			})},
	}
	if ownerOf(pod) != (capacity.Owner{}) {
		out.OwnerReferences = pod.OwnerReferences
		out.Labels = map[string]string{offloadingv1beta1.OriginLabel: pod.Labels[offloadingv1beta1.OriginLabel]}
		out.Annotations = map[string]string{offloadingv1beta1.CreatorUserAnnotation: pod.Annotations[offloadingv1beta1.CreatorUserAnnotation]}
	}
	return out
}

// Of is the owner of what the pods of a slice take, by the user that the slice stands for.
func Of(consumer, user string) capacity.Owner {
	return capacity.Owner{Consumer: consumer, Slice: capacity.UserLabel(user)}
}

// ownerOf is the slice whose pod this is: one that stands for a ShadowPod says so.
func ownerOf(pod *corev1.Pod) capacity.Owner {
	by := metav1.GetControllerOf(pod)
	user, origin := pod.Annotations[offloadingv1beta1.CreatorUserAnnotation], pod.Labels[offloadingv1beta1.OriginLabel]
	if by == nil || by.Kind != "ShadowPod" || user == "" || origin == "" {
		return capacity.Owner{}
	}
	return capacity.Owner{Consumer: origin, Slice: user}
}
