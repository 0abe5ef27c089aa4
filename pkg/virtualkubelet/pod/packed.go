package pod

import (
	"fmt"
	"sync"
	"sync/atomic"
	"weak"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// packed is a pod, or a ShadowPod in the form of one, as this package's caches hold it: encoded, which takes a quarter of the
// memory, and which Go's collector need not look through. There are many, and each is read only when something happens to it; but then
// several times in a row, so the pod is at hand until the next collection.
type packed struct {
	namespace, name, version string
	uid                      types.UID
	// serial is another one for each that was ever packed.
	serial uint64
	// leaving says that it is being deleted.
	leaving bool
	data    []byte
	// uses are the index keys of what a local pod uses.
	uses []string
	// counted is what a local pod counts for.
	counted counted

	mu     sync.Mutex
	recent weak.Pointer[corev1.Pod]
}

var serials atomic.Uint64

// unpacked is called for each pod that is decoded; tests count.
var unpacked = func() {}

// pack fails for no pod that came from an API server. The pod must not be changed from now on.
func pack(pod *corev1.Pod) (*packed, error) {
	data, err := pod.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encoding pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return &packed{namespace: pod.Namespace, name: pod.Name, version: pod.ResourceVersion, uid: pod.UID, leaving: pod.DeletionTimestamp != nil,
		serial: serials.Add(1), data: data, recent: weak.Make(pod)}, nil
}

// pod returns the pod, which others may read at the same time and nobody may change; nil if there is none.
func (p *packed) pod() *corev1.Pod {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if pod := p.recent.Value(); pod != nil {
		return pod
	}
	unpacked()
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(p.data); err != nil {
		return nil
	}
	p.recent = weak.Make(pod)
	return pod
}

// packShadow packs a ShadowPod.
func packShadow(shadow *offloadingv1beta1.ShadowPod) (*packed, error) {
	pod := &corev1.Pod{ObjectMeta: shadow.ObjectMeta, Spec: shadow.Spec.Pod, Status: corev1.PodStatus{
		Phase: shadow.Status.Phase, ContainerStatuses: shadow.Status.ContainerStatuses}}
	for _, c := range shadow.Status.Conditions {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.PodConditionType(c.Type), Status: corev1.ConditionStatus(c.Status),
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
	}
	return pack(pod)
}

// shadow returns the ShadowPod, nothing of which may be changed; nil if there is none.
func (p *packed) shadow() *offloadingv1beta1.ShadowPod {
	pod := p.pod()
	if pod == nil {
		return nil
	}
	shadow := &offloadingv1beta1.ShadowPod{ObjectMeta: pod.ObjectMeta, Spec: offloadingv1beta1.ShadowPodSpec{Pod: pod.Spec},
		Status: offloadingv1beta1.ShadowPodStatus{Phase: pod.Status.Phase, ContainerStatuses: pod.Status.ContainerStatuses}}
	for _, c := range pod.Status.Conditions {
		shadow.Status.Conditions = append(shadow.Status.Conditions, metav1.Condition{Type: string(c.Type), Status: metav1.ConditionStatus(c.Status),
			ObservedGeneration: c.ObservedGeneration, LastTransitionTime: c.LastTransitionTime, Reason: c.Reason, Message: c.Message})
	}
	return shadow
}

// number tells it from all others; zero if there is none.
func (p *packed) number() uint64 {
	if p == nil {
		return 0
	}
	return p.serial
}

// Held is how many bytes it takes, mostly.
func (p *packed) Held() int {
	return len(p.data) + len(p.namespace) + len(p.name) + len(p.version) + len(p.uid)
}

// GetName and GetNamespace make it a replica.Object.
func (p *packed) GetName() string { return p.name }

// GetNamespace is that of the pod.
func (p *packed) GetNamespace() string { return p.namespace }

// GetObjectMeta tells an informer what it needs to know.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, ResourceVersion: p.version}
}
