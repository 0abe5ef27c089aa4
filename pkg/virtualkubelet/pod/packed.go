package pod

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// packed is a pod, or a ShadowPod in the form of one, as this package's caches hold it: encoded, which takes a quarter of the
// memory, and which Go's collector need not look through. There are many, and each is read only when something happens to it.
type packed struct {
	namespace, name, version string
	data                     []byte
	// uses are the index keys of what a local pod uses.
	uses []string
}

// pack fails for no pod that came from an API server.
func pack(pod *corev1.Pod) (*packed, error) {
	data, err := pod.Marshal()
	if err != nil {
		return nil, fmt.Errorf("encoding pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return &packed{namespace: pod.Namespace, name: pod.Name, version: pod.ResourceVersion, data: data}, nil
}

// pod returns a copy of the pod; nil if there is none.
func (p *packed) pod() *corev1.Pod {
	if p == nil {
		return nil
	}
	pod := &corev1.Pod{}
	if err := pod.Unmarshal(p.data); err != nil {
		return nil
	}
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

// shadow returns a copy of the ShadowPod; nil if there is none.
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

// GetName and GetNamespace make it a replica.Object.
func (p *packed) GetName() string { return p.name }

// GetNamespace is that of the pod.
func (p *packed) GetNamespace() string { return p.namespace }

// GetObjectMeta tells an informer what it needs to know.
func (p *packed) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: p.namespace, Name: p.name, ResourceVersion: p.version}
}
