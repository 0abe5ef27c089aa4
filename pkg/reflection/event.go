package reflection

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// EventUneventful is the field selector by which the provider leaves out Events that never cross; see LocalEvent.
const EventUneventful = "reason!=" + reasonScheduled + ",reason!=" + reasonCreated

// The reasons of Events that a later Event, or one of this cluster, says as well.
const (
	reasonScheduled = "Scheduled"
	reasonCreated   = "Created"
)

// The bounds of what a provider may say in an Event.
const (
	// maxEventAge is how long API servers keep Events, an hour, and an hour more for the clock of a provider that is behind.
	maxEventAge = 2 * time.Hour
	// maxEventCount is enough for a pod that crashed every ten seconds for a week.
	maxEventCount = 100_000
	// maxObjectName is the longest name of an object.
	maxObjectName = 253
)

var (
	eventReason    = regexp.MustCompile(`^[A-Z][A-Za-z0-9]{0,127}$`)
	eventComponent = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$`)
	eventField     = regexp.MustCompile(`^spec\.(containers|initContainers|ephemeralContainers)\{[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\}$`)
	eventObject    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)
)

// eventKinds are the kinds whose Events come back, each with the kind of the local object.
var eventKinds = map[schema.GroupKind]schema.GroupVersionKind{
	{Kind: "Pod"}:                   corev1.SchemeGroupVersion.WithKind("Pod"),
	{Kind: "Service"}:               corev1.SchemeGroupVersion.WithKind("Service"),
	{Kind: "ConfigMap"}:             corev1.SchemeGroupVersion.WithKind("ConfigMap"),
	{Kind: "Secret"}:                corev1.SchemeGroupVersion.WithKind("Secret"),
	{Kind: "PersistentVolumeClaim"}: corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
	{Group: discoveryv1.GroupName, Kind: "EndpointSlice"}:                      discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
	{Group: networkingv1.GroupName, Kind: "Ingress"}:                           networkingv1.SchemeGroupVersion.WithKind("Ingress"),
	{Group: networkingv1.GroupName, Kind: "NetworkPolicy"}:                     networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
	{Group: offloadingv1beta1.GroupVersion.Group, Kind: "ShadowPod"}:           corev1.SchemeGroupVersion.WithKind("Pod"),
	{Group: offloadingv1beta1.GroupVersion.Group, Kind: "ShadowEndpointSlice"}: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"),
}

// claimKind is the one kind whose objects may have names of their own at the provider.
const claimKind = "PersistentVolumeClaim"

// EventInput is what besides a remote Event and its local object decides what comes back.
type EventInput struct {
	// Home and Remote are the IDs of this cluster and of the provider.
	Home, Remote string
	// Namespace is the local namespace, Twin the remote one.
	Namespace, Twin string
	// Policy of Events: AllowList lets those of objects annotated so come back, everything else those of all objects but the
	// ones annotated to be skipped. The namespace's annotations say nothing here: nothing leaves this cluster.
	Policy offloadingv1beta1.ReflectionType
	// Now bounds timestamps from the provider.
	Now time.Time
}

// EventTarget tells which local object a remote Event is about, as far as the Event alone can tell, or why it does not come
// back. The UID of the target is not set. A claim's name is the one at the provider: only the claim itself tells whether it
// is another here.
func EventTarget(remote *corev1.Event, in EventInput) (corev1.ObjectReference, *Skip) {
	involved := remote.InvolvedObject
	group, err := schema.ParseGroupVersion(involved.APIVersion)
	kind, known := eventKinds[schema.GroupKind{Group: group.Group, Kind: involved.Kind}]
	if err != nil || !known {
		return corev1.ObjectReference{}, &Skip{Reason: offloadingv1beta1.ReasonNotReflectable, Message: "Events of this kind of object do not come back"}
	}
	if skip := whyEventStays(remote, in); skip != nil {
		return corev1.ObjectReference{}, skip
	}
	name := involved.Name
	if k, reflected := Lookup(strings.ToLower(kind.Kind)); reflected {
		name = k.Local(in.Home, name)
	}
	return corev1.ObjectReference{APIVersion: kind.GroupVersion().String(), Kind: kind.Kind, Namespace: in.Namespace, Name: name}, nil
}

// whyEventStays tells why a remote Event about a kind of object whose Events come back does not; nil lets it come.
func whyEventStays(remote *corev1.Event, in EventInput) *Skip {
	involved := remote.InvolvedObject
	invalid := func(what string) *Skip {
		return &Skip{Reason: offloadingv1beta1.ReasonInvalidRemoteEvent, Message: what}
	}
	routine := func(what string) *Skip {
		return &Skip{Reason: offloadingv1beta1.ReasonRoutineEvent, Message: what}
	}
	switch {
	case remote.Namespace != in.Twin || involved.Namespace != in.Twin:
		return invalid("it is about an object of another namespace")
	case !eventObject.MatchString(involved.Name):
		return invalid("it names no object")
	case remote.UID == "" || len(remote.UID) > maxUID:
		return invalid("it has no UID")
	case remote.Type != corev1.EventTypeNormal && remote.Type != corev1.EventTypeWarning:
		return invalid("its type is neither Normal nor Warning")
	case !eventReason.MatchString(remote.Reason):
		return invalid("its reason is no CamelCase word")
	case remote.Type == corev1.EventTypeNormal && (remote.Reason == reasonScheduled || remote.Reason == reasonCreated):
		return routine("this cluster's scheduler or a later Event says the same")
	case remote.Type == corev1.EventTypeNormal && ours(eventSource(remote)):
		return routine("it tells that reflection works")
	default:
		return nil
	}
}

// LocalEvent returns the Event to be written about the local object that a remote Event is about, or why there is none.
// local is the object that EventTarget names, known to stand behind the remote one.
//
// The rule of what comes back: Warnings do, each; so does of Normal Events what a kubelet of this cluster would show, except
// that Scheduled (this cluster's scheduler said so already), Created (Started or Failed follows) and Normal Events of Liqo's
// own controllers never do. Whoever writes Normal Events holds each back a while and writes only the last one of its object,
// so that a pod that starts at once costs one.
//
// What the provider wrote is bounded: the reason is a word, the message short, printable and marked with the provider's ID,
// the source marked as remote, except that the kubelet of a pod is the kubelet of its virtual node. Times never lie in the
// future nor before the local object was made. No reference to another object comes back.
func LocalEvent(remote *corev1.Event, local Object, in EventInput) (*corev1.Event, *Skip) {
	target, skip := EventTarget(remote, in)
	if skip != nil {
		return nil, skip
	}
	if target.Kind == claimKind {
		target.Name = local.GetName()
	}
	if local.GetName() != target.Name || local.GetNamespace() != target.Namespace || local.GetUID() == "" {
		return nil, &Skip{Reason: offloadingv1beta1.ReasonInvalidRemoteEvent, Message: "it is about another object"}
	}
	if skip := WhyNotReflected(Input{Local: local, Policy: in.Policy}, offloadingv1beta1.DenyList); skip != nil {
		return nil, skip
	}
	first, last := eventTimes(remote)
	if in.Now.Sub(last) > maxEventAge {
		return nil, &Skip{Reason: offloadingv1beta1.ReasonStaleEvent, Message: "it is older than two hours, or has no time"}
	}
	now := in.Now.Truncate(time.Second)
	last = earlier(last, now)
	first = earlier(first, last)
	if made := local.GetCreationTimestamp().Time; first.Before(made) {
		first = earlier(made, last)
	}
	target.UID = local.GetUID()
	if eventField.MatchString(remote.InvolvedObject.FieldPath) {
		target.FieldPath = remote.InvolvedObject.FieldPath
	}
	return &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Namespace: in.Namespace, Name: EventName(target.Name, in.Remote, string(remote.UID))},
		InvolvedObject: target,
		Type:           remote.Type,
		Reason:         remote.Reason,
		Message:        EventMessage(in.Remote, remote.Message),
		Source:         corev1.EventSource{Component: localSource(target.Kind, eventSource(remote)), Host: in.Remote},
		FirstTimestamp: metav1.NewTime(first),
		LastTimestamp:  metav1.NewTime(last),
		Count:          eventCount(remote),
	}, nil
}

// EventName is the name of the local Event about the object with the given name. It is the same after a restart, so that a
// repeat changes the Event instead of adding one, and differs from all names that Kubernetes' own recorders make.
func EventName(object, remote, id string) string {
	sum := sha256.Sum256([]byte(remote + "/" + id))
	suffix := "." + hex.EncodeToString(sum[:12])
	if most := maxObjectName - len(suffix); len(object) > most {
		object = strings.TrimRight(object[:most], "-.")
	}
	return object + suffix
}

// EventMessage is what is shown of a provider's message: printable, short, and marked with who says it.
func EventMessage(remote, message string) string {
	return corev1beta1.BoundMessage(fmt.Sprintf("[cluster %s] %s", remote, strings.TrimSpace(bounded(message))))
}

// eventSource is who wrote an Event, by the older or the newer of the two ways to say so.
func eventSource(event *corev1.Event) string {
	if event.Source.Component != "" {
		return event.Source.Component
	}
	return event.ReportingController
}

// remoteSource marks the source of an Event that comes from a provider.
const remoteSource = " (remote)"

// kubelet is the source of the Events of a pod on its node, here as there: who looks for those of a kubelet finds them. Its host is the
// provider, whose virtual node the pod is on.
const kubelet = "kubelet"

func localSource(kind, component string) string {
	if kind == "Pod" && component == kubelet {
		return kubelet
	}
	// An Event may have come to the provider from one of its own providers.
	component = strings.TrimSuffix(component, remoteSource)
	if !eventComponent.MatchString(component) {
		component = "unknown"
	}
	return component + remoteSource
}

// ours tells whether a component is one of Liqo's.
func ours(component string) bool { return strings.HasPrefix(component, "liqo-") }

// eventCount is how often the provider says that it happened.
func eventCount(event *corev1.Event) int32 {
	count := event.Count
	if event.Series != nil {
		count = max(count, event.Series.Count)
	}
	return min(max(count, 1), maxEventCount)
}

// eventTimes are when the provider says that it happened for the first and for the last time.
func eventTimes(event *corev1.Event) (first, last time.Time) {
	times := []time.Time{event.FirstTimestamp.Time, event.EventTime.Time, event.LastTimestamp.Time}
	if event.Series != nil {
		times = append(times, event.Series.LastObservedTime.Time)
	}
	for _, t := range times {
		if t.IsZero() {
			continue
		}
		if first.IsZero() || t.Before(first) {
			first = t
		}
		if t.After(last) {
			last = t
		}
	}
	return first, last
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
