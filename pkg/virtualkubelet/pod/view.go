package pod

import (
	"hash/maphash"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/packed"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/podcache"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

// offload is what is known about a namespace.
type offload int

const (
	// unknown: the NamespaceMap was not read yet. Nothing may be concluded.
	unknown offload = iota
	// notOffloaded: the NamespaceMap was read and does not want the namespace.
	notOffloaded
	// pending: the namespace is wanted, the provider did not accept it (yet, or any more).
	pending
	// offloaded: both sides agree on the twin.
	offloaded
)

// view is all that is known about one pod at one moment.
type view struct {
	offload offload
	// leaving says that the provider is removing the twin.
	leaving bool
	// namespace is the twin; set when offloaded.
	namespace string
	// ready says that the provider answers and the caches are filled: shadow and remote can be relied on, even if nil.
	ready   bool
	clients peer.Clients
	epoch   int64
	shadow  *offloadingv1beta1.ShadowPod
	remote  *corev1.Pod
	// settings of the node.
	settings Settings
	// changes is how often they changed.
	changes int
	// over says that the provider shows more in the twin than is followed.
	over bool
	// lost says that the provider was asked and does not answer.
	lost bool
	// revoked says that the provider answers and took our rights back: nothing can be made there, and what is gone does not come back.
	revoked bool
	// made is a ShadowPod that was made and that the cache does not show yet; nil if there is none.
	made *creation
	// unasked says that the provider was surely never asked for the pod's ShadowPod.
	unasked bool
	// gone says that the remote pod was seen to go, and last is the last that was seen of it.
	gone    bool
	last    *packed.Pod
	refused refusal
	// taken says that the provider took all changes of the pod.
	taken bool
	// resize is why the provider does not take another size.
	resize refusal
	// sized says that it was asked.
	sized bool
}

// look takes a view; uid is that of the local pod, if there is one.
func (r *Reconciler) look(k key, uid types.UID) view {
	v, shadow, remote := r.glance(k, uid)
	return r.see(v, shadow, remote)
}

// see adds to a view what the caches hold of the ShadowPod and the remote pod.
func (r *Reconciler) see(v view, shadow, remote *packed.Pod) view {
	// They are decoded here because all workers wait for whoever holds the lock.
	v.shadow, v.remote = shadowpods.Of(shadow), remote.Unpack()
	if v.shadow != nil && !r.owned(v.shadow) {
		// The selector keeps what is not ours out; a provider that sends it nevertheless does not make it ours.
		v.shadow = nil
	}
	if v.shadow != nil && v.made != nil && v.shadow.UID == v.made.shadow {
		r.showedUp(v.shadow)
		v.made = nil
	}
	return v
}

// glance takes a view, and what the caches hold of the ShadowPod and the remote pod.
func (r *Reconciler) glance(k key, uid types.UID) (v view, shadow, remote *packed.Pod) {
	state := r.options.Peer.State()
	connected := state.Connected
	r.mu.Lock()
	defer r.mu.Unlock()
	s, wanted := r.memory.known(uid), r.options.Wanted.Get()
	v = view{
		offload: wanted.Mapping.offload(k.Namespace), settings: wanted.Settings, changes: r.changes, lost: state.Lost(), revoked: state.Revoked(),
		refused: s.refused, taken: s.taken, resize: s.resize, sized: s.sized, gone: s.gone != nil, last: s.gone,
		made: r.memory.made(uid, r.options.Clock.Now()),
	}
	v.unasked = r.memory.unasked.has(uid)
	v.leaving = wanted.Mapping.Leaving[k.Namespace]
	if v.offload != offloaded {
		return v, nil, nil
	}
	v.namespace = wanted.Mapping.Effective[k.Namespace]
	if r.link == nil || !connected {
		return v, nil, nil
	}
	t := r.link.twins[k.Namespace]
	v.over = r.link.shut[k.Namespace]
	if t == nil || t.remote != v.namespace || !t.synced() {
		return v, nil, nil
	}
	v.ready, v.clients, v.epoch = true, r.link.clients, r.link.epoch
	shadow, _ = t.shadows.Get(k.Name)
	remote, _ = t.pods.Get(k.Name)
	return v, shadow, remote
}

func (m Mapping) offload(namespace string) offload {
	switch {
	case !m.Known:
		return unknown
	case m.Desired[namespace] == "":
		return notOffloaded
	case m.Effective[namespace] == "":
		return pending
	default:
		return offloaded
	}
}

// standsFor tells whether a remote object was made for this very pod.
func standsFor(remote interface{ GetAnnotations() map[string]string }, local *corev1.Pod) bool {
	return remote.GetAnnotations()[corev1beta1.OriginUIDAnnotation] == string(local.UID)
}

// owned tells whether a ShadowPod carries all marks of this virtual node.
func (r *Reconciler) owned(shadow *offloadingv1beta1.ShadowPod) bool {
	return reflection.IsOurs(shadow, r.options.Home, r.options.Remote) &&
		shadow.Labels[offloadingv1beta1.NodeNameLabel] == r.options.Node
}

var knowledgeSeed = maphash.MakeSeed()

// knowledge identifies all that decides what a pod shows: what the caches hold of the three objects, and the view. Time is no part of it,
// because what passes with time alone has a moment that it is looked at again.
func knowledge(local *podcache.Pod, shadow, remote *packed.Pod, v view) uint64 {
	return maphash.Comparable(knowledgeSeed, struct {
		local, shadow, remote      uint64
		uid                        types.UID
		offload                    offload
		namespace                  string
		epoch                      int64
		changes                    int
		leaving, ready, lost, gone bool
		waiting, taken, sized      bool
		unasked                    bool
		over, revoked              bool
		refused, resize            refusal
	}{
		local.Number(), shadow.Number(), remote.Number(), local.UID, v.offload, v.namespace, v.epoch, v.changes,
		v.leaving, v.ready, v.lost, v.gone, v.made != nil, v.taken, v.sized, v.unasked, v.over, v.revoked, v.refused, v.resize,
	})
}

// nothingYet tells whether there is nothing to show of a pod because its ShadowPod is still to be made.
func nothingYet(v view, shadow *packed.Pod) bool {
	return v.ready && !v.revoked && shadow == nil && v.refused == (refusal{})
}

// showsAll tells whether the pod was seen to show all that is known.
func (r *Reconciler) showsAll(uid types.UID, knows uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	shown := r.memory.known(uid).shown
	return shown != nil && *shown == knows
}
