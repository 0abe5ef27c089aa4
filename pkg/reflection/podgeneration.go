package reflection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// ofKubelet are the conditions that a kubelet looks at in each pass, so that they are about the generation that it saw.
var ofKubelet = []corev1.PodConditionType{
	corev1.PodScheduled, corev1.PodReadyToStartContainers, corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady,
}

// Observe says in a status which generation of the pod it is about, and so do its conditions if there is something to write of it.
// A pod that is being deleted is no reason to write.
func Observe(local *corev1.Pod, status *corev1.PodStatus, generation int64) {
	if local.DeletionTimestamp == nil {
		status.ObservedGeneration = generation
	}
	if apiequality.Semantic.DeepEqual(&local.Status, status) {
		return
	}
	status.ObservedGeneration = generation
	for i := range status.Conditions {
		c := &status.Conditions[i]
		old := condition(local.Status.Conditions, c.Type)
		switch {
		case slices.Contains(ofKubelet, c.Type):
			c.ObservedGeneration = generation
		case !slices.Contains(remoteConditions, c.Type):
		case old == nil || old.Status != c.Status || old.Reason != c.Reason:
			c.ObservedGeneration = generation
		}
	}
}

// ObservedGeneration is the generation of the local pod that is seen: the one from before as long as the provider's kubelet may not
// have seen how much the pod asks for now, because who resizes a pod takes what it shows from then on for what came of it. shadow and
// remote are what is known to stand for the pod, or nil; sizeRefused says that it is known that the provider does not take that size.
func ObservedGeneration(local *corev1.Pod, shadow *offloadingv1beta1.ShadowPod, remote *corev1.Pod, sizeRefused bool) int64 {
	before := local.Status.ObservedGeneration
	if local.Generation <= max(1, before) || local.DeletionTimestamp != nil || sizeRefused {
		return local.Generation
	}
	if sizeOnItsWay(local, shadow, remote) {
		return before
	}
	return local.Generation
}

// sizeOnItsWay follows what a pod asks for: to its ShadowPod, from there to the remote pod, and to the kubelet of that.
func sizeOnItsWay(local *corev1.Pod, shadow *offloadingv1beta1.ShadowPod, remote *corev1.Pod) bool {
	if shadow == nil || remote == nil {
		return Started(local)
	}
	wanted := &offloadingv1beta1.ShadowPod{Spec: offloadingv1beta1.ShadowPodSpec{Pod: local.Spec}}
	if len(ShadowPodResize(shadow, wanted)) > 0 {
		return true
	}
	// Pods of earlier versions do not say what was asked for.
	asked, known := remote.Annotations[offloadingv1beta1.ResourcesAskedAnnotation]
	if known && asked != ResourcesAsked(&shadow.Spec.Pod) {
		refused := saidOf(shadow, string(corev1.PodResizePending))
		return refused == nil || refused.ObservedGeneration < shadow.Generation
	}
	// Nor do kubelets before Kubernetes 1.33 say what they saw.
	seen := remote.Status.ObservedGeneration
	return seen != 0 && seen < remote.Generation
}

// ResourcesAsked returns a digest of how much cpu and memory the containers of a specification, and all of them together, ask for, the
// value of ResourcesAskedAnnotation. Amounts that are written in different ways have the same one.
func ResourcesAsked(spec *corev1.PodSpec) string {
	digest := sha256.New()
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			// Writing to a digest never fails.
			_, _ = fmt.Fprintf(digest, "%q", containers[i].Name)
			writeAmounts(digest, containers[i].Resources.Requests)
			writeAmounts(digest, containers[i].Resources.Limits)
		}
	}
	if spec.Resources != nil {
		writeAmounts(digest, spec.Resources.Requests)
		writeAmounts(digest, spec.Resources.Limits)
	}
	return hex.EncodeToString(digest.Sum(nil)[:16])
}

func writeAmounts(to io.Writer, list corev1.ResourceList) {
	cpu, memory := "-", "-"
	if quantity, found := list[corev1.ResourceCPU]; found {
		cpu = fmt.Sprint(quantity.MilliValue())
	}
	if quantity, found := list[corev1.ResourceMemory]; found {
		memory = fmt.Sprint(quantity.Value())
	}
	_, _ = fmt.Fprintf(to, " %s %s\n", cpu, memory)
}
