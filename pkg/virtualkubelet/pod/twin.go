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
	"k8s.io/client-go/util/watchlist"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/reflection"
)

// shadowPods is the resource of ShadowPods.
var shadowPods = offloadingv1beta1.GroupVersion.WithResource("shadowpods")

// twin watches one twin namespace: the ShadowPods of this virtual node there, and their pods.
type twin struct {
	local, remote string
	shadows, pods *replica.Replica[*packed]
	ctx           context.Context
	cancel        context.CancelFunc
	// leaving says that the provider was seen to remove the twin.
	leaving bool
	filled  sync.Once
	over    sync.Once
}

// newTwin prepares the two watches; run starts them.
func newTwin(l *link, local, remote string, r *Reconciler) *twin {
	t := &twin{local: local, remote: remote}
	t.ctx, t.cancel = context.WithCancel(l.ctx)
	selector, over := r.marks(), func() { r.overLimit(l, t) }
	pods, shadows := l.clients.Kube.CoreV1().Pods(remote), l.clients.Dynamic.Resource(shadowPods).Namespace(remote)
	t.pods = replica.New(replica.Options[*packed]{
		Name: "pods", Namespace: remote, Limit: r.options.MaxRemotePods, Budget: r.budget, Over: over,
		Example: func() runtime.Object { return &corev1.Pod{} }, Hold: holdRemote,
		Event:   func(before, pod *packed, deleted bool) { r.remotePodEvent(t, before, pod, deleted) },
		Synced:  func() { t.fill(r) },
		Streams: streams(l.clients.Kube),
		Page: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return pods.List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return pods.Watch(ctx, o)
		},
	})
	example, follow := runtime.Object(&unstructured.Unstructured{}), shadows.Watch
	if client := l.clients.REST; client != nil {
		example = &offloadingv1beta1.ShadowPod{}
		follow = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return watchShadows(ctx, client, remote, o)
		}
	}
	t.shadows = replica.New(replica.Options[*packed]{
		Name: "shadowpods", Namespace: remote, Limit: r.options.MaxRemotePods, Budget: r.budget, Over: over,
		Example: func() runtime.Object { return example }, Hold: holdShadow,
		Event:   func(before, shadow *packed, deleted bool) { r.shadowEvent(t, before, shadow, deleted) },
		Synced:  func() { t.fill(r) },
		Streams: streams(l.clients.Dynamic),
		Page: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.LabelSelector = selector
			return shadows.List(ctx, o)
		},
		Watch: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.LabelSelector = selector
			return follow(ctx, o)
		},
	})
	return t
}

// streams tells whether a client can have lists streamed, which the server's memory is spared by.
func streams(client any) bool { return !watchlist.DoesClientNotSupportWatchListSemantics(client) }

// holdRemote keeps of a remote pod what somebody here reads.
func holdRemote(object any) (*packed, bool) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, false
	}
	reflection.SlimRemotePod(pod)
	held, err := pack(pod)
	return held, err == nil
}

// holdShadow keeps of what was read what somebody here reads of a ShadowPod.
func holdShadow(object any) (*packed, bool) {
	shadow, ok := object.(*offloadingv1beta1.ShadowPod)
	if raw, is := object.(*unstructured.Unstructured); is {
		shadow, ok = typedShadow(raw), true
	}
	if !ok {
		return nil, false
	}
	reflection.SlimShadowPod(shadow)
	held, err := packShadow(shadow)
	return held, err == nil
}

// typedShadow turns what the dynamic client read into a ShadowPod. What does not fit becomes an empty one of that name,
// which is never taken for ours.
func typedShadow(raw *unstructured.Unstructured) *offloadingv1beta1.ShadowPod {
	shadow := &offloadingv1beta1.ShadowPod{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(raw.Object, shadow); err != nil {
		return &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{
			Name: raw.GetName(), Namespace: raw.GetNamespace(), UID: raw.GetUID(), ResourceVersion: raw.GetResourceVersion(),
		}}
	}
	shadow.ManagedFields = nil
	return shadow
}

// run watches until the twin's context ends.
func (t *twin) run() {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { t.shadows.Run(t.ctx) })
	t.pods.Run(t.ctx)
}

// fill has everything in the namespace looked at once both caches are filled.
func (t *twin) fill(r *Reconciler) {
	if !t.synced() {
		return
	}
	t.filled.Do(func() {
		r.forgetGone(t)
		for _, shadow := range t.shadows.List() {
			r.enqueue(t.key(shadow), true)
		}
		r.enqueueLocals(t.local, true)
	})
}

func (t *twin) synced() bool {
	return t.shadows.Synced() && t.pods.Synced() && t.ctx.Err() == nil
}

// key names the local pod of a remote object.
func (t *twin) key(remote *packed) key { return key{Namespace: t.local, Name: remote.name} }

func (t *twin) shadow(name string) *offloadingv1beta1.ShadowPod {
	shadow, _ := t.shadows.Get(name)
	return shadow.shadow()
}

// shadowEvent is called for each ShadowPod that comes, changes or goes.
func (r *Reconciler) shadowEvent(t *twin, before, after *packed, deleted bool) {
	shadow, k := after.shadow(), t.key(after)
	if shadow == nil {
		return
	}
	r.showedUp(shadow)
	switch {
	case deleted:
		r.removed(shadow)
		r.forgetWent(types.UID(reflection.OriginUID(shadow)))
		r.enqueue(k, false)
	case before == nil:
		if t.synced() {
			r.enqueue(k, false)
		}
	default:
		r.status.Add(k)
		if old := before.shadow(); old == nil || old.UID != shadow.UID || old.Generation != shadow.Generation || !sameMeta(old, shadow) {
			r.work.Add(k)
		}
	}
}

// remotePodEvent is called for each remote pod that comes, changes or goes.
func (r *Reconciler) remotePodEvent(t *twin, before, after *packed, deleted bool) {
	pod, k := after.pod(), t.key(after)
	switch {
	case pod == nil:
	case deleted:
		r.remoteSeen(t, pod, after)
		r.enqueue(k, false)
	case before == nil:
		r.remoteSeen(t, pod, nil)
		r.status.AddAfter(k, calm(pod))
	default:
		if before.uid != after.uid || !before.leaving && after.leaving {
			r.work.Add(k)
		}
		r.status.AddAfter(k, calm(pod))
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

// remoteSeen notes that the remote pod of a local pod is there (nil), or is gone, with the last that was seen of it. Pods that
// say they stand for others are not noted: the provider may make as many of those as it likes.
func (r *Reconciler) remoteSeen(t *twin, remote *corev1.Pod, gone *packed) {
	if gone != nil {
		r.mu.Lock()
		delete(r.memory.hastened, types.UID(reflection.OriginUID(remote)))
		r.mu.Unlock()
	}
	local := r.heldLocal(key{Namespace: t.local, Name: remote.Name})
	if local == nil || string(local.uid) != reflection.OriginUID(remote) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if gone != nil {
		r.memory.gone[local.uid] = gone
		return
	}
	delete(r.memory.gone, local.uid)
	if _, seen := r.memory.starting[local.uid]; !seen {
		r.memory.starting[local.uid] = r.options.Clock.Now()
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
