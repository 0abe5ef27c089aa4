package shadowpod

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// queue is how many ShadowPods may be woken before the controller takes notice; more try again by themselves, only later.
const queue = 1024

// await notes that a ShadowPod found no room.
func (c *claims) await(key types.NamespacedName, user string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting[user] == nil {
		c.waiting[user] = map[types.NamespacedName]bool{}
	}
	c.waiting[user][key] = true
}

// wake lets one ShadowPod of a user try again that found no room: somebody left some. If it finds enough now, it wakes the next
// one in turn, so that no more of them try than there were changes. The caller locks.
func (c *claims) wake(user string) {
	for key := range c.waiting[user] {
		c.unwait(key)
		next := &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		select {
		case c.woken <- event.GenericEvent{Object: next}:
		default:
		}
		return
	}
}

// leaving returns the claim of a ShadowPod that is gone, nil if there is none, and lets it wait for room no longer.
func (c *claims) leaving(key types.NamespacedName) *holder {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unwait(key)
	return c.holders[key]
}

// unwait forgets that a ShadowPod found no room. The caller locks.
func (c *claims) unwait(key types.NamespacedName) {
	for user, keys := range c.waiting {
		if delete(keys, key); len(keys) == 0 {
			delete(c.waiting, user)
		}
	}
}
