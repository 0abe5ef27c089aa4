package reflection

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// PodInput is what besides the pod decides what its ShadowPod looks like.
type PodInput struct {
	// Home and Remote are the IDs of the consumer and the provider.
	Home, Remote string
	// Node is the virtual node that the pod is bound to.
	Node string
	// NodeIP is the address of that node, which pods show as their host's; empty if it is not known.
	NodeIP string
	// Namespace is the twin namespace.
	Namespace string
	// Patch of the virtual node; may be nil.
	Patch *offloadingv1beta1.OffloadingPatch
	// NotReflected stays at home, besides what the patch names.
	NotReflected NotReflected
	// API is how pods at the provider reach this cluster's API server.
	API HomeAPI
	// Claims are the names at the provider of the claims that the pod uses; one that is not listed has the same name there, and an
	// ephemeral volume whose claim is not listed gets a claim of its own there.
	Claims map[string]string
	// Runs says that the pod was sent to the provider before, so that what matters to its making only is settled.
	Runs bool
}

// Refusal says why an object does not cross.
type Refusal struct {
	// Reason is machine-readable.
	Reason string
	// Message is a sentence for the user.
	Message string
}

// ShadowPod returns the ShadowPod of a local pod, or why the pod cannot be offloaded. Of one that runs it returns both: what is
// refused of it does not hold up what may change of it. The pod is not changed.
func ShadowPod(local *corev1.Pod, in PodInput) (*offloadingv1beta1.ShadowPod, *Refusal) {
	var refusals []*Refusal
	if why := whyNotOffloadable(&local.Spec); len(why) > 0 {
		refusals = append(refusals, &Refusal{Reason: offloadingv1beta1.ReasonPodRefused, Message: strings.Join(why, "; ")})
	}
	mode, refusal := accessOf(local, in.API)
	refusals = append(refusals, refusal)
	spec, crossing := copiedSpec(local.Spec.DeepCopy()), crossingLabels(local, in)
	spec.TopologySpreadConstraints = spelledConstraints(spec.TopologySpreadConstraints, crossing)
	dropHostNetwork(&spec, local)
	mode.apply(&spec, local, in)
	renameClaims(&spec, local, in.Claims)
	applyPatch(&spec, in.Patch)
	refusals = append(refusals, applyAntiAffinity(&spec, local, crossing))
	spec.RuntimeClassName = remoteRuntimeClass(local, in.Patch)
	refusals = slices.DeleteFunc(refusals, func(r *Refusal) bool { return r == nil })
	if len(refusals) > 0 && !in.Runs {
		return nil, refusals[0]
	}
	shadow := &offloadingv1beta1.ShadowPod{
		TypeMeta:   metav1.TypeMeta{APIVersion: offloadingv1beta1.GroupVersion.String(), Kind: "ShadowPod"},
		ObjectMeta: podMeta(local, in, &spec),
		Spec:       offloadingv1beta1.ShadowPodSpec{Pod: spec},
	}
	if len(refusals) > 0 {
		return shadow, refusals[0]
	}
	return shadow, nil
}

// homeNodeTaints tell of the state of the node that a pod is on, which is this cluster's virtual node. DaemonSets tolerate them all; at
// the provider they would be tolerations of a cordon. Those of control planes, and of everything, no provider takes either.
var homeNodeTaints = []string{corev1.TaintNodeUnschedulable, corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure,
	corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable, corev1.TaintNodeOutOfService}

// copiedSpec keeps what the table of fields calls copied, and the mapped fields that others take over from here.
func copiedSpec(s *corev1.PodSpec) corev1.PodSpec {
	return corev1.PodSpec{
		Volumes: s.Volumes, InitContainers: s.InitContainers, Containers: s.Containers, EphemeralContainers: s.EphemeralContainers,
		RestartPolicy: s.RestartPolicy, TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
		ActiveDeadlineSeconds: s.ActiveDeadlineSeconds, DNSPolicy: s.DNSPolicy, DNSConfig: s.DNSConfig,
		ShareProcessNamespace: s.ShareProcessNamespace, SecurityContext: s.SecurityContext,
		ImagePullSecrets: s.ImagePullSecrets, Hostname: s.Hostname, Subdomain: s.Subdomain, HostAliases: s.HostAliases,
		EnableServiceLinks: s.EnableServiceLinks, TopologySpreadConstraints: s.TopologySpreadConstraints,
		SetHostnameAsFQDN: s.SetHostnameAsFQDN, HostUsers: s.HostUsers, Resources: s.Resources,
		HostnameOverride: s.HostnameOverride,
		Tolerations: slices.DeleteFunc(s.Tolerations, func(t corev1.Toleration) bool {
			return t.Key == offloadingv1beta1.VirtualNodeTaint || slices.Contains(homeNodeTaints, t.Key) || toleratesControlPlane(t)
		}),
	}
}

// notReflected is what stays at home of a pod.
func (in *PodInput) notReflected() NotReflected {
	not := in.NotReflected
	if in.Patch != nil {
		not.Labels = slices.Concat(not.Labels, in.Patch.LabelsNotReflected)
		not.Annotations = slices.Concat(not.Annotations, in.Patch.AnnotationsNotReflected)
	}
	return not
}

// crossingLabels are the pod's own labels that the remote pod has, too.
func crossingLabels(local *corev1.Pod, in PodInput) map[string]string {
	return without(local.Labels, in.notReflected().Labels, ownershipLabels, BoundLabels)
}

// podMeta is the metadata of the ShadowPod, which the provider puts on the pod, too.
func podMeta(local *corev1.Pod, in PodInput, spec *corev1.PodSpec) metav1.ObjectMeta {
	not := in.notReflected()
	meta := metav1.ObjectMeta{
		Name: local.Name, Namespace: in.Namespace,
		Labels: RemoteLabels(local, in.Home, in.Remote, not), Annotations: RemoteAnnotations(local, not),
	}
	meta.Labels = without(meta.Labels, BoundLabels)
	meta.Labels[offloadingv1beta1.NodeNameLabel] = in.Node
	if len(local.Spec.ReadinessGates) > 0 {
		meta.Annotations[offloadingv1beta1.OpenGatesAnnotation] = bounded(strings.Join(OpenGates(local), ","))
	}
	tellByAnnotations(meta.Annotations, local, not, spec)
	recordKeys(&meta)
	return meta
}

// remoteRuntimeClass is the one that the pod's annotation names, else the pod's own, else the patch's.
func remoteRuntimeClass(local *corev1.Pod, patch *offloadingv1beta1.OffloadingPatch) *string {
	if name := local.Annotations[offloadingv1beta1.RemoteRuntimeClassAnnotation]; name != "" {
		return &name
	}
	if name := ptr.Deref(local.Spec.RuntimeClassName, ""); name != "" && name != offloadingv1beta1.DefaultRuntimeClass {
		return &name
	}
	if patch != nil && ptr.Deref(patch.RuntimeClassName, "") != "" {
		return ptr.To(*patch.RuntimeClassName)
	}
	return nil
}

// ShadowPodChanges lists what of the live ShadowPod has to change: labels and annotations, images and the deadline. But for what it
// tolerates, its size and who debugs it (see ShadowPodTolerations, ShadowPodResize and ShadowPodDebuggers) nothing else of a running
// pod may change; what the provider added stays.
func ShadowPodChanges(live, wanted *offloadingv1beta1.ShadowPod) []Change {
	changes := metadataChanges(live, wanted)
	have, want := &live.Spec.Pod, &wanted.Spec.Pod
	if images, changed := withImages(have.Containers, want.Containers); changed {
		changes = append(changes, Change{Path: []string{"spec", "pod", "containers"}, Value: images})
	}
	if images, changed := withImages(have.InitContainers, want.InitContainers); changed {
		changes = append(changes, Change{Path: []string{"spec", "pod", "initContainers"}, Value: images})
	}
	if want.ActiveDeadlineSeconds != nil && !ptr.Equal(have.ActiveDeadlineSeconds, want.ActiveDeadlineSeconds) {
		changes = append(changes, Change{Path: []string{"spec", "pod", "activeDeadlineSeconds"}, Value: *want.ActiveDeadlineSeconds})
	}
	return changes
}

// ShadowPodTolerations lists what has to change for the live ShadowPod to have the tolerations that were added, and for how long they
// last. They are no part of ShadowPodChanges because nobody can take them away from a pod again: one that the provider refuses is to
// hold up nothing else.
func ShadowPodTolerations(live, wanted *offloadingv1beta1.ShadowPod) []Change {
	have := live.Spec.Pod.Tolerations
	tolerations := withTolerations(have, wanted.Spec.Pod.Tolerations)
	if apiequality.Semantic.DeepEqual(tolerations, have) {
		return nil
	}
	return []Change{{Path: []string{"spec", "pod", "tolerations"}, Value: tolerations}}
}

// withTolerations returns the live tolerations and those that were added. Of one that is there, only how long it lasts may change.
func withTolerations(live, wanted []corev1.Toleration) []corev1.Toleration {
	live = slices.Clone(live)
	for i := range wanted {
		t := &wanted[i]
		alike := func(has corev1.Toleration) bool { return has.MatchToleration(t) }
		same := func(has corev1.Toleration) bool { return apiequality.Semantic.DeepEqual(has, *t) }
		lone := slices.IndexFunc(wanted, alike) == i && !slices.ContainsFunc(wanted[i+1:], alike)
		switch {
		case !slices.ContainsFunc(live, alike), !lone && !slices.ContainsFunc(live, same):
			live = append(live, *t)
		case lone:
			for j := range live {
				if alike(live[j]) {
					live[j].TolerationSeconds = t.TolerationSeconds
				}
			}
		}
	}
	return live
}

// withImages returns the live containers with the wanted images, and whether any differs.
func withImages(live, wanted []corev1.Container) ([]corev1.Container, bool) {
	return altered(live, wanted, func(has, wants *corev1.Container) bool {
		differs := has.Image != wants.Image
		has.Image = wants.Image
		return differs
	})
}

// ShadowPodResize lists what of the live ShadowPod has to change for its containers, and all of them together, to have as much as
// the wanted ones. It is no part of ShadowPodChanges because a provider that has no room for it is to refuse nothing else with it.
func ShadowPodResize(live, wanted *offloadingv1beta1.ShadowPod) []Change {
	var changes []Change
	for _, list := range []struct {
		field      string
		live, want []corev1.Container
	}{
		{"containers", live.Spec.Pod.Containers, wanted.Spec.Pod.Containers},
		{"initContainers", live.Spec.Pod.InitContainers, wanted.Spec.Pod.InitContainers},
	} {
		resized, changed := altered(list.live, list.want, func(has, wants *corev1.Container) bool {
			same := sameAmounts(&has.Resources, &wants.Resources)
			has.Resources.Requests, has.Resources.Limits = wants.Resources.Requests, wants.Resources.Limits
			return !same
		})
		if changed {
			changes = append(changes, Change{Path: []string{"spec", "pod", list.field}, Value: resized})
		}
	}
	if want := wanted.Spec.Pod.Resources; want != nil && !sameAmounts(ptr.To(ptr.Deref(live.Spec.Pod.Resources, corev1.ResourceRequirements{})), want) {
		changes = append(changes, Change{Path: []string{"spec", "pod", "resources"}, Value: want})
	}
	return changes
}

func sameAmounts(a, b *corev1.ResourceRequirements) bool {
	return apiequality.Semantic.DeepEqual(a.Requests, b.Requests) && apiequality.Semantic.DeepEqual(a.Limits, b.Limits)
}

// altered returns the live containers after a change of each, given the wanted one of its name, and whether any differs now.
func altered(live, wanted []corev1.Container, change func(has, wants *corev1.Container) bool) ([]corev1.Container, bool) {
	live, changed := slices.Clone(live), false
	for i := range live {
		for j := range wanted {
			if live[i].Name == wanted[j].Name && change(&live[i], &wanted[j]) {
				changed = true
			}
		}
	}
	return live, changed
}

// ShadowPodDebuggers lists the ephemeral containers that were added, each as a change of its own: it can never be taken back, so
// one that the provider refuses is to hold up nothing else.
func ShadowPodDebuggers(live, wanted *offloadingv1beta1.ShadowPod) []Change {
	var changes []Change
	have := live.Spec.Pod.EphemeralContainers
	for _, debugger := range wanted.Spec.Pod.EphemeralContainers {
		if !slices.ContainsFunc(have, func(has corev1.EphemeralContainer) bool { return has.Name == debugger.Name }) {
			changes = append(changes, Change{Path: []string{"spec", "pod", "ephemeralContainers"}, Value: append(slices.Clone(have), debugger)})
		}
	}
	return changes
}
