package pod

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// shadowPods is the resource of ShadowPods.
var shadowPods = offloadingv1beta1.GroupVersion.WithResource("shadowpods")

// twin watches one twin namespace: the ShadowPods of this virtual node there, and their pods.
type twin struct {
	local, remote string
	shadows, pods cache.SharedIndexInformer
	ctx           context.Context
	cancel        context.CancelFunc
}

// newTwin prepares the two watches; run starts them.
func newTwin(l *link, local, remote string, r *Reconciler) *twin {
	t := &twin{local: local, remote: remote}
	t.ctx, t.cancel = context.WithCancel(l.ctx)
	selector := r.marks()
	pods, shadows := l.clients.Kube.CoreV1().Pods(remote), l.clients.Dynamic.Resource(shadowPods).Namespace(remote)
	t.pods = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return pods.Watch(ctx, o)
		},
	}, l.clients.Kube), &corev1.Pod{}, 0, nil)
	t.shadows = cache.NewSharedIndexInformer(cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return shadows.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return shadows.Watch(ctx, o)
		},
	}, l.clients.Dynamic), &unstructured.Unstructured{}, 0, nil)
	_ = t.pods.SetTransform(slimRemote)
	_ = t.shadows.SetTransform(slimShadow)
	_, _ = t.pods.AddEventHandler(r.remotePodHandler(t))
	_, _ = t.shadows.AddEventHandler(r.shadowHandler(t))
	return t
}

// slimRemote drops of a remote pod what nobody here reads.
func slimRemote(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		reflection.SlimRemotePod(pod)
	}
	return object, nil
}

// slimShadow makes a ShadowPod of what the dynamic client read, without what nobody here reads.
func slimShadow(object any) (any, error) {
	typed, err := typedShadow(object)
	if shadow, ok := typed.(*offloadingv1beta1.ShadowPod); ok {
		reflection.SlimShadowPod(shadow)
	}
	return typed, err
}

// typedShadow turns what the dynamic client read into a ShadowPod. What does not fit becomes an empty one of that name,
// which is never taken for ours.
func typedShadow(object any) (any, error) {
	raw, ok := object.(*unstructured.Unstructured)
	if !ok {
		return object, nil
	}
	shadow := &offloadingv1beta1.ShadowPod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, shadow); err != nil {
		return &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{
			Name: raw.GetName(), Namespace: raw.GetNamespace(), UID: raw.GetUID(), ResourceVersion: raw.GetResourceVersion(),
		}}, nil
	}
	shadow.ManagedFields = nil
	return shadow, nil
}

// run watches until the twin's context ends; once both caches are filled everything in the namespace is looked at.
func (t *twin) run(r *Reconciler) {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { t.shadows.RunWithContext(t.ctx) })
	group.Go(func() { t.pods.RunWithContext(t.ctx) })
	if !cache.WaitForCacheSync(t.ctx.Done(), t.shadows.HasSynced, t.pods.HasSynced) {
		return
	}
	for _, name := range t.shadows.GetStore().ListKeys() {
		if _, shadow, err := cache.SplitMetaNamespaceKey(name); err == nil {
			r.enqueue(key{Namespace: t.local, Name: shadow}, true)
		}
	}
	r.enqueueLocals(t.local, true)
	<-t.ctx.Done()
}

func (t *twin) synced() bool {
	return t.shadows.HasSynced() && t.pods.HasSynced() && t.ctx.Err() == nil
}

func (t *twin) shadow(name string) *offloadingv1beta1.ShadowPod {
	object, ok, err := t.shadows.GetStore().GetByKey(t.remote + "/" + name)
	if err != nil || !ok {
		return nil
	}
	shadow, _ := object.(*offloadingv1beta1.ShadowPod)
	return shadow
}

func (t *twin) pod(name string) *corev1.Pod {
	object, ok, err := t.pods.GetStore().GetByKey(t.remote + "/" + name)
	if err != nil || !ok {
		return nil
	}
	pod, _ := object.(*corev1.Pod)
	return pod
}

func (r *Reconciler) shadowHandler(t *twin) cache.ResourceEventHandler {
	seen := func(object any) (*offloadingv1beta1.ShadowPod, bool) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		shadow, ok := object.(*offloadingv1beta1.ShadowPod)
		if ok {
			r.showedUp(shadow)
		}
		return shadow, ok
	}
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if shadow, ok := seen(object); ok && t.synced() {
				r.enqueue(key{Namespace: t.local, Name: shadow.Name}, false)
			}
		},
		UpdateFunc: func(before, after any) {
			shadow, ok := seen(after)
			if !ok {
				return
			}
			k := key{Namespace: t.local, Name: shadow.Name}
			r.status.Add(k)
			if old, ok := before.(*offloadingv1beta1.ShadowPod); !ok || old.UID != shadow.UID || old.Generation != shadow.Generation ||
				!sameMeta(old, shadow) {
				r.work.Add(k)
			}
		},
		DeleteFunc: func(object any) {
			if shadow, ok := seen(object); ok {
				r.removed(shadow)
				r.enqueue(key{Namespace: t.local, Name: shadow.Name}, false)
			}
		},
	}
}

func (r *Reconciler) remotePodHandler(t *twin) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			if pod, ok := object.(*corev1.Pod); ok {
				r.remoteSeen(t, pod, false)
				r.status.AddAfter(key{Namespace: t.local, Name: pod.Name}, calm(pod))
			}
		},
		UpdateFunc: func(before, after any) {
			if pod, ok := after.(*corev1.Pod); ok {
				k := key{Namespace: t.local, Name: pod.Name}
				if old, ok := before.(*corev1.Pod); ok && (old.UID != pod.UID || old.DeletionTimestamp == nil && pod.DeletionTimestamp != nil) {
					r.work.Add(k)
				}
				r.status.AddAfter(k, calm(pod))
			}
		},
		DeleteFunc: func(object any) {
			if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
				object = last.Obj
			}
			if pod, ok := object.(*corev1.Pod); ok {
				r.remoteSeen(t, pod, true)
				r.enqueue(key{Namespace: t.local, Name: pod.Name}, false)
			}
		},
	}
}

// showedUp notes that the cache knows of a ShadowPod.
func (r *Reconciler) showedUp(shadow *offloadingv1beta1.ShadowPod) {
	uid := types.UID(reflection.OriginUID(shadow))
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.memory.created[uid]; ok && c.shadow == shadow.UID {
		delete(r.memory.created, uid)
	}
}

// remoteSeen notes that the remote pod of a local pod is there, or is gone. Pods that say they stand for others are not
// noted: the provider may make as many of those as it likes.
func (r *Reconciler) remoteSeen(t *twin, remote *corev1.Pod, gone bool) {
	if gone {
		r.mu.Lock()
		delete(r.memory.hastened, types.UID(reflection.OriginUID(remote)))
		r.mu.Unlock()
	}
	local := r.local(key{Namespace: t.local, Name: remote.Name})
	if local == nil || string(local.UID) != reflection.OriginUID(remote) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if gone {
		r.memory.gone[local.UID] = true
		return
	}
	delete(r.memory.gone, local.UID)
	if _, seen := r.memory.starting[local.UID]; !seen {
		r.memory.starting[local.UID] = r.options.Clock.Now()
	}
}

// calm is how long to wait for more news of a pod: what happens before it starts is not worth a write each.
func calm(remote *corev1.Pod) time.Duration {
	switch {
	case remote.Status.Phase != corev1.PodPending && remote.Status.Phase != "":
		return 0
	case waitsItsTurn(&remote.Status):
		return startCalm
	default:
		return statusCalm
	}
}

// waitsItsTurn tells whether a pod that has not started was placed or will be, and none of its containers has anything to tell.
func waitsItsTurn(status *corev1.PodStatus) bool {
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.PodScheduled && status.Conditions[i].Status != corev1.ConditionTrue {
			return false
		}
	}
	for _, list := range [][]corev1.ContainerStatus{status.InitContainerStatuses, status.ContainerStatuses} {
		for i := range list {
			if waiting := list[i].State.Waiting; waiting == nil || waiting.Reason != "ContainerCreating" && waiting.Reason != "PodInitializing" {
				return false
			}
		}
	}
	return status.Reason == ""
}

// sameMeta tells whether two versions of a ShadowPod have the same labels, annotations and deletion mark.
func sameMeta(a, b *offloadingv1beta1.ShadowPod) bool {
	return maps.Equal(a.Labels, b.Labels) && maps.Equal(a.Annotations, b.Annotations) && a.DeletionTimestamp.Equal(b.DeletionTimestamp)
}
