// Package podcache holds the pods that are bound to a virtual node, and answers from memory what they are, take and use.
package podcache

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"liqo.io/liqo/pkg/kube/freshness"
	"liqo.io/liqo/pkg/kube/packed"
	"liqo.io/liqo/pkg/kube/selection"
	"liqo.io/liqo/pkg/reflection"
)

// NodeNameField selects the pods of a node: all that a node may see.
const NodeNameField = "spec.nodeName"

// usesIndex finds the pods that use an object.
const usesIndex = "uses"

// Pod is what is held of a pod; nil stands for none.
type Pod struct {
	packed.Pod
	// uses are the index keys of what the pod uses.
	uses []string
	counted
}

// Unpack returns the pod, which must not be changed; nil if there is none.
func (p *Pod) Unpack() *corev1.Pod {
	if p == nil {
		return nil
	}
	return p.Pod.Unpack()
}

// Key names the pod.
func (p *Pod) Key() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Namespace, Name: p.Name}
}

// Ended tells whether it has.
func (p *Pod) Ended() bool { return reflection.Terminal(p.phase) }

// Hold keeps of a pod what somebody reads.
func Hold(pod *corev1.Pod) (*Pod, error) {
	pod.ManagedFields = nil
	held := &Pod{uses: useKeys(pod), counted: countedOf(pod)}
	return held, held.Fill(pod)
}

// Of is the pod that an event tells of; nil if there is none.
func Of(object any) *corev1.Pod {
	if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = last.Obj
	}
	held, _ := object.(*Pod)
	return held.Unpack()
}

// Cache holds the pods of one node. Make it with New.
type Cache struct {
	node     string
	informer cache.SharedIndexInformer
}

// New makes a cache that is empty until it runs.
func New(client kubernetes.Interface, node string) *Cache {
	pods := client.CoreV1().Pods(metav1.NamespaceAll)
	source := selection.ListerWatcher(selection.Where(NodeNameField, node), pods.List, pods.Watch, client)
	// A pod of the past, which may run elsewhere by now, would be started once more.
	informer := freshness.NewInformer(source, &corev1.Pod{}, 0, cache.Indexers{usesIndex: func(object any) ([]string, error) {
		if held, ok := object.(*Pod); ok {
			return held.uses, nil
		}
		return nil, nil
	}})
	// The transform cannot fail to be set before the informer runs.
	_ = informer.SetTransform(func(object any) (any, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			return Hold(pod)
		}
		return object, nil
	})
	return &Cache{node: node, informer: informer}
}

// Run follows the pods until the context ends.
func (c *Cache) Run(ctx context.Context) { c.informer.RunWithContext(ctx) }

// Filled waits until the pods were read; false says that the context ended before.
func (c *Cache) Filled(ctx context.Context) bool {
	return cache.WaitForCacheSync(ctx.Done(), c.informer.HasSynced)
}

// Informed tells whether the node's pods were read.
func (c *Cache) Informed() bool { return c.informer.HasSynced() }

// Follow has the handler told of each pod that comes, changes or goes, those of the past included.
func (c *Cache) Follow(handler cache.ResourceEventHandler) error {
	if _, err := c.informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watching the pods of node %q: %w", c.node, err)
	}
	return nil
}

// Bound has f called with the namespace of each pod that is bound to the node, those of the past included. f does not block.
func (c *Cache) Bound(f func(namespace string)) error {
	return c.Follow(cache.ResourceEventHandlerFuncs{AddFunc: func(object any) {
		if held, ok := object.(*Pod); ok {
			f(held.Namespace)
		}
	}})
}

// Held returns what is held of a pod, or nil.
func (c *Cache) Held(k types.NamespacedName) *Pod {
	object, ok, err := c.informer.GetStore().GetByKey(k.String())
	if err != nil || !ok {
		return nil
	}
	held, _ := object.(*Pod)
	return held
}

// All is what is held of all pods of a namespace, or of all namespaces if it is empty.
func (c *Cache) All(namespace string) []*Pod {
	list := c.informer.GetStore().List()
	all := make([]*Pod, 0, len(list))
	for _, object := range list {
		if held, ok := object.(*Pod); ok && (namespace == "" || held.Namespace == namespace) {
			all = append(all, held)
		}
	}
	return all
}

// Pods lists the node's pods.
func (c *Cache) Pods() []*corev1.Pod {
	all := c.All("")
	pods := make([]*corev1.Pod, 0, len(all))
	for _, held := range all {
		if pod := held.Unpack(); pod != nil {
			pods = append(pods, pod)
		}
	}
	return pods
}

// Occupied tells whether a pod of a namespace is bound to the node.
func (c *Cache) Occupied(namespace string) bool { return len(c.All(namespace)) > 0 }

// Uses tells whether a pod of the node uses an object: a ConfigMap or a Secret of the pod's namespace. Until the node's pods
// were read nothing is known.
func (c *Cache) Uses(namespace, kind, name string) (used, known bool) {
	if !c.Informed() {
		return false, false
	}
	keys, err := c.informer.GetIndexer().IndexKeys(usesIndex, useKey(namespace, kind, name))
	return len(keys) > 0, err == nil
}

func useKey(namespace, kind, name string) string { return namespace + "/" + kind + "/" + name }

func useKeys(pod *corev1.Pod) []string {
	references := reflection.References(&pod.Spec)
	keys := make([]string, len(references))
	for i, reference := range references {
		keys[i] = useKey(pod.Namespace, reference.Kind, reference.Name)
	}
	return keys
}
