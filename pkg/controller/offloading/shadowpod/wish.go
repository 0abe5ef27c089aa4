package shadowpod

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/marks"
)

// Kinds of marks besides those of labels and annotations.
const (
	imageMark      = 'i'
	deadlineMark   = 'd'
	tolerationMark = 't'
)

// The parts of a Pod that follow a ShadowPod, as the kinds of their marks.
const (
	specParts = string(imageMark) + string(deadlineMark) + string(tolerationMark)
	allParts  = marks.Metadata + specParts
)

// wish is one thing that a ShadowPod asks of the specification of a Pod that runs.
type wish struct {
	kind rune
	mark string
	// grant makes it so, as far as Kubernetes lets it.
	grant func(*corev1.PodSpec)
}

// wishes are images, the deadline and tolerations: the rest of a Pod belongs to the provider's admission, or is brought over by debug
// and resize.
func wishes(spec *corev1.PodSpec) []wish {
	var list []wish
	add := func(kind rune, grant func(*corev1.PodSpec), words ...string) {
		list = append(list, wish{kind, marks.Of(kind, words...), grant})
	}
	for i := range spec.Containers {
		name, image := spec.Containers[i].Name, spec.Containers[i].Image
		add(imageMark, func(pod *corev1.PodSpec) { setImage(pod.Containers, name, image) }, name, image)
	}
	for i := range spec.InitContainers {
		name, image := spec.InitContainers[i].Name, spec.InitContainers[i].Image
		add(imageMark, func(pod *corev1.PodSpec) { setImage(pod.InitContainers, name, image) }, name, image)
	}
	if deadline := spec.ActiveDeadlineSeconds; deadline != nil {
		add(deadlineMark, func(pod *corev1.PodSpec) {
			// It can only become shorter.
			if pod.ActiveDeadlineSeconds == nil || *pod.ActiveDeadlineSeconds > *deadline {
				pod.ActiveDeadlineSeconds = ptr.To(*deadline)
			}
		}, strconv.FormatInt(*deadline, 10))
	}
	for i := range spec.Tolerations {
		toleration := spec.Tolerations[i]
		seconds := "forever"
		if toleration.TolerationSeconds != nil {
			seconds = strconv.FormatInt(*toleration.TolerationSeconds, 10)
		}
		add(tolerationMark, func(pod *corev1.PodSpec) { tolerate(pod, toleration) },
			toleration.Key, string(toleration.Operator), toleration.Value, string(toleration.Effect), seconds)
	}
	return list
}

func setImage(containers []corev1.Container, name, image string) {
	for i := range containers {
		if containers[i].Name == name && image != "" {
			containers[i].Image = image
		}
	}
}

// tolerate adds a toleration to a Pod, or changes for how long it holds: Kubernetes lets nothing else be changed of those that a Pod has.
func tolerate(pod *corev1.PodSpec, wanted corev1.Toleration) {
	at := slices.IndexFunc(pod.Tolerations, func(t corev1.Toleration) bool { return t.MatchToleration(&wanted) })
	if at < 0 {
		pod.Tolerations = append(pod.Tolerations, wanted)
		return
	}
	pod.Tolerations[at].TolerationSeconds = wanted.TolerationSeconds
}

// marksOf are the marks of all that a ShadowPod asks for.
func marksOf(shadow *offloadingv1beta1.ShadowPod) sets.Set[string] {
	all := marks.OfMap(marks.Label, podLabels(shadow)).Union(marks.OfMap(marks.Annotation, podAnnotations(shadow)))
	for _, w := range wishes(&shadow.Spec.Pod) {
		all.Insert(w.mark)
	}
	return all
}

// inStep tells whether altered would return the Pod as it is, by what costs little to compare: the Pod says that it was asked for all
// that is asked for now, and has the labels and annotations of it. What it says no to may still be in step.
func inStep(pod *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) bool {
	note := map[string]string{}
	marks.Write(note, marksOf(shadow))
	now, fits := note[offloadingv1beta1.AskedAnnotation]
	return fits && pod.Annotations[offloadingv1beta1.AskedAnnotation] == now &&
		within(podLabels(shadow), pod.Labels) && within(podAnnotations(shadow), pod.Annotations)
}

func within(wanted, have map[string]string) bool {
	for key := range wanted {
		if _, there := have[key]; !there || have[key] != wanted[key] {
			return false
		}
	}
	return true
}

// altered returns the Pod as some of its parts must be. Of labels and annotations all that is asked for is there, but for those that
// the provider insists on; of the specification what was not asked for before, whatever the provider's admission made of that.
func altered(pod *corev1.Pod, shadow *offloadingv1beta1.ShadowPod, parts string, insists map[string]string) *corev1.Pod {
	changed := pod.DeepCopy()
	before, known := marks.Read(pod.Annotations)
	if strings.Contains(parts, marks.Metadata) {
		changed.Labels = marks.Followed(marks.Label, pod.Labels, conceded(marks.Label, podLabels(shadow), pod.Labels, insists), before)
		changed.Annotations = marks.Followed(marks.Annotation, pod.Annotations, conceded(marks.Annotation, podAnnotations(shadow), pod.Annotations, insists), before)
	}
	for _, w := range wishes(&shadow.Spec.Pod) {
		if strings.ContainsRune(parts, w.kind) && !before.Has(w.mark) && (known || shadow.Generation > 1) {
			w.grant(&changed.Spec)
		}
	}
	// Pods of earlier versions do not say what was asked for. They are held to what is asked for since their ShadowPod changed, and not
	// written only to say it.
	if !known && equality.Semantic.DeepEqual(pod, changed) {
		return changed
	}
	now := marksOf(shadow)
	rest := before
	if !known && shadow.Generation <= 1 {
		rest = now
	}
	if changed.Annotations == nil {
		changed.Annotations = map[string]string{}
	}
	marks.Write(changed.Annotations, rest.Difference(marks.Only(rest, parts)).Union(marks.Only(now, parts)))
	return changed
}

// conceded are the labels or annotations to ask for: where the provider insists on another value, that.
func conceded(kind rune, wanted, have, insists map[string]string) map[string]string {
	for key := range wanted {
		if value, insisted := insists[string(kind)+key]; insisted && value == shown(have, key) {
			if delete(wanted, key); value != "" {
				wanted[key] = have[key]
			}
		}
	}
	return wanted
}

// insistence is, by kind and key, what the provider made of labels and annotations in the very request that wrote them: it would do so
// again, and no event tells of it.
func insistence(pod *corev1.Pod, shadow *offloadingv1beta1.ShadowPod) map[string]string {
	insists := map[string]string{}
	note := func(kind rune, wanted, have map[string]string) {
		for key, value := range wanted {
			if got := shown(have, key); got != "="+value {
				insists[string(kind)+key] = got
			}
		}
	}
	note(marks.Label, podLabels(shadow), pod.Labels)
	note(marks.Annotation, podAnnotations(shadow), pod.Annotations)
	return insists
}

// shown tells a value from none: it is empty only if there is none.
func shown(have map[string]string, key string) string {
	if value, there := have[key]; there {
		return "=" + value
	}
	return ""
}
