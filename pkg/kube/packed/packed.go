// Package packed holds pods encoded, which takes a quarter of the memory, and which Go's collector need not look through. There are many,
// and each is read only when something happens to it; but then several times in a row, so a pod is at hand until the next collection.
package packed

import (
	"fmt"
	"sync"
	"sync/atomic"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Pod is a pod, or something in the form of one. Make it with Pack; nil stands for none.
type Pod struct {
	Namespace, Name, Version string
	UID                      types.UID
	// Leaving says that it is being deleted.
	Leaving bool
	// serial is another one for each that was ever packed.
	serial uint64
	data   []byte

	mu     sync.Mutex
	recent weak.Pointer[corev1.Pod]
}

var serials atomic.Uint64

// Unpacked is called for each pod that is decoded; tests count.
var Unpacked = func() {}

// Pack fails for no pod that came from an API server. The pod must not be changed from now on.
func Pack(pod *corev1.Pod) (*Pod, error) {
	p := &Pod{}
	return p, p.Fill(pod)
}

// Fill packs a pod into one that is part of something else, once.
func (p *Pod) Fill(pod *corev1.Pod) (err error) {
	if p.data, err = pod.Marshal(); err != nil {
		return fmt.Errorf("encoding pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	p.Namespace, p.Name, p.Version, p.UID, p.Leaving = pod.Namespace, pod.Name, pod.ResourceVersion, pod.UID, pod.DeletionTimestamp != nil
	p.serial, p.recent = serials.Add(1), weak.Make(pod)
	return nil
}

// Unpack returns the pod, which others may read at the same time and nobody may change; nil if there is none.
func (p *Pod) Unpack() *corev1.Pod {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod := p.recent.Value(); pod != nil {
		return pod
	}
	Unpacked()
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(p.data); err != nil {
		return nil
	}
	p.recent = weak.Make(pod)
	return pod
}

// Number tells it from all others; zero if there is none.
func (p *Pod) Number() uint64 {
	if p == nil {
		return 0
	}
	return p.serial
}

// Held is how many bytes it takes, mostly.
func (p *Pod) Held() int {
	return len(p.data) + len(p.Namespace) + len(p.Name) + len(p.Version) + len(p.UID)
}

// Data is the encoded pod, which must not be changed.
func (p *Pod) Data() []byte { return p.data }

// GetName and GetNamespace make it a replica.Object.
func (p *Pod) GetName() string { return p.Name }

// GetNamespace is that of the pod.
func (p *Pod) GetNamespace() string { return p.Namespace }

// GetObjectMeta tells an informer what it needs to know.
func (p *Pod) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, ResourceVersion: p.Version}
}
