package pod

import (
	"hash/maphash"

	"k8s.io/apimachinery/pkg/types"
)

var knowledgeSeed = maphash.MakeSeed()

// knowledge identifies all that decides what a pod shows: what the caches hold of the three objects, and the view. Time is no part of it,
// because what passes with time alone has a moment that it is looked at again.
func knowledge(local, shadow, remote *packed, v view) uint64 {
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
		local.number(), shadow.number(), remote.number(), local.uid, v.offload, v.namespace, v.epoch, v.changes,
		v.leaving, v.ready, v.lost, v.gone, v.made != nil, v.taken, v.sized, v.unasked, v.over, v.revoked, v.refused, v.resize,
	})
}

// nothingYet tells whether there is nothing to show of a pod because its ShadowPod is still to be made.
func nothingYet(v view, shadow *packed) bool {
	return v.ready && !v.revoked && shadow == nil && v.refused == (refusal{})
}

// showsAll tells whether the pod was seen to show all that is known.
func (r *Reconciler) showsAll(uid types.UID, knows uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	shown, ok := r.memory.shown[uid]
	return ok && shown == knows
}
