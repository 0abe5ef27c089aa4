package pod

import (
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/watchlist"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/packed"
	"liqo.io/liqo/pkg/kube/replica"
	"liqo.io/liqo/pkg/kube/selection"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

// twin watches one twin namespace: the ShadowPods of this virtual node there, and their pods.
type twin struct {
	local, remote string
	shadows, pods *replica.Replica[*packed.Pod]
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
	marked := selection.Labelled(r.marks())
	pods, shadows := l.clients.Kube.CoreV1().Pods(remote), shadowpods.In(l.clients, remote)
	o := replica.Options[*packed.Pod]{
		Name: "pods", Namespace: remote, Limit: r.options.MaxRemotePods, Budget: r.budget, Over: func() { r.overLimit(l, t) },
		Example: func() runtime.Object { return &corev1.Pod{} }, Hold: holdRemote,
		Event:   func(before, pod *packed.Pod, deleted bool) { r.remotePodEvent(t, before, pod, deleted) },
		Synced:  func() { t.fill(r) },
		Streams: streams(l.clients.Kube), Page: selection.List(marked, pods.List), Watch: selection.Watch(marked, pods.Watch),
	}
	t.pods = replica.New(o)
	example, follow := shadowpods.Watch(l.clients, remote)
	o.Name, o.Example, o.Hold = "shadowpods", func() runtime.Object { return example }, shadowpods.Hold
	o.Event = func(before, shadow *packed.Pod, deleted bool) { r.shadowEvent(t, before, shadow, deleted) }
	o.Streams = streams(l.clients.Dynamic)
	o.Page, o.Watch = selection.List(marked, shadows.List), selection.Watch(marked, follow)
	t.shadows = replica.New(o)
	return t
}

// streams tells whether a client can have lists streamed, which the server's memory is spared by.
func streams(client any) bool { return !watchlist.DoesClientNotSupportWatchListSemantics(client) }

// holdRemote keeps of a remote pod what somebody here reads.
func holdRemote(object any) (*packed.Pod, bool) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return nil, false
	}
	reflection.SlimRemotePod(pod)
	held, err := packed.Pack(pod)
	return held, err == nil
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
func (t *twin) key(remote *packed.Pod) key { return key{Namespace: t.local, Name: remote.Name} }

func (t *twin) shadow(name string) *offloadingv1beta1.ShadowPod {
	shadow, _ := t.shadows.Get(name)
	return shadowpods.Of(shadow)
}

// shadowEvent is called for each ShadowPod that comes, changes or goes.
func (r *Reconciler) shadowEvent(t *twin, before, after *packed.Pod, deleted bool) {
	shadow, k := shadowpods.Of(after), t.key(after)
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
		if old := shadowpods.Of(before); old == nil || old.UID != shadow.UID || old.Generation != shadow.Generation || !sameMeta(old, shadow) {
			r.work.Add(k)
		}
	}
}

// remotePodEvent is called for each remote pod that comes, changes or goes.
func (r *Reconciler) remotePodEvent(t *twin, before, after *packed.Pod, deleted bool) {
	pod, k := after.Unpack(), t.key(after)
	switch {
	case pod == nil:
	case deleted:
		r.remoteSeen(t, pod, after)
		r.enqueue(k, false)
	case before == nil:
		r.remoteSeen(t, pod, nil)
		r.status.AddAfter(k, calm(pod))
	default:
		if before.UID != after.UID || !before.Leaving && after.Leaving {
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
	if s := r.memory.known(uid); s.made != nil && s.made.shadow == shadow.UID {
		s.made = nil
	}
}

// remoteSeen notes that the remote pod of a local pod is there (nil), or is gone, with the last that was seen of it. Pods that
// say they stand for others are not noted: the provider may make as many of those as it likes.
func (r *Reconciler) remoteSeen(t *twin, remote *corev1.Pod, gone *packed.Pod) {
	if gone != nil {
		r.mu.Lock()
		delete(r.memory.hastened, types.UID(reflection.OriginUID(remote)))
		r.mu.Unlock()
	}
	local := r.Held(key{Namespace: t.local, Name: remote.Name})
	if local == nil || string(local.UID) != reflection.OriginUID(remote) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.memory.of(local.UID)
	if s.gone = gone; gone == nil && s.starting.IsZero() {
		s.starting = r.options.Clock.Now()
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
