package main

import (
	corev1 "k8s.io/api/core/v1"

	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/pkg/virtualkubelet/event"
	"liqo.io/liqo/pkg/virtualkubelet/pod"
	"liqo.io/liqo/pkg/virtualkubelet/settings"
)

// newEvents makes what brings the provider's Events back.
func (k *kubelet) newEvents() (*event.Carrier, error) {
	return event.New(event.Options{
		Home: k.flags.Home, Remote: k.flags.Provider.ID, NodeName: k.flags.Node,
		Events: k.account.CoreV1(), Peer: k.peer, Locals: locals{k}, Registerer: k.metrics,
		Config: k.flags.Reflectors.Settings(nil, nil).Kinds[settings.Events],
	})
}

// locals knows what is at the provider: the node side its pods, the storage fabric its claims, the reflection engine all else.
type locals struct{ k *kubelet }

func (l locals) Find(remoteKind string, target corev1.ObjectReference) (reflection.Object, bool) {
	switch target.Kind {
	case "Pod":
	case "PersistentVolumeClaim":
		if l.k.storage == nil {
			return nil, false
		}
		return l.k.storage.Reflected(target.Namespace, target.Name)
	default:
		return l.k.mirror.Reflected(target.Kind, target.Namespace, target.Name)
	}
	pods := l.k.node.running()
	if pods == nil {
		return nil, false
	}
	return pods.Reflected(target.Namespace, target.Name, remoteKind == "ShadowPod")
}

func (l locals) Crossed(namespace string) bool {
	pods := l.k.node.running()
	return pods != nil && pods.Occupied(namespace) || l.k.mirror.Crossed(namespace) || l.k.storage != nil && l.k.storage.Crossed(namespace)
}

// running is what runs the pods; nil without a Node, or before there is an identity.
func (n *nodeSide) running() *pod.Reconciler {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pods
}
