package reflection

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

var eventNow = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func eventInput() EventInput {
	return EventInput{Home: "rome", Remote: "milan", Namespace: "shop", Twin: "shop-rome", Now: eventNow}
}

func eventsAgo(d time.Duration) metav1.Time { return metav1.NewTime(eventNow.Add(-d)) }

// remoteEvent is what a kubelet at the provider writes about a crashing pod.
func remoteEvent(change ...func(*corev1.Event)) *corev1.Event {
	event := &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop-rome", Name: "web.17c", UID: "remote-event"},
		InvolvedObject: corev1.ObjectReference{
			Kind: "Pod", APIVersion: "v1", Namespace: "shop-rome", Name: "web", UID: "remote-pod", ResourceVersion: "7",
			FieldPath: "spec.containers{app}",
		},
		Type: corev1.EventTypeWarning, Reason: "BackOff", Message: "Back-off restarting failed container app in pod web",
		Source:         corev1.EventSource{Component: "kubelet", Host: "worker-3.secret.example"},
		FirstTimestamp: eventsAgo(10 * time.Minute), LastTimestamp: eventsAgo(time.Minute), Count: 7,
	}
	for _, f := range change {
		f(event)
	}
	return event
}

func eventPod() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "local-pod", CreationTimestamp: eventsAgo(30 * time.Minute)}}
}

func TestEventTarget(t *testing.T) {
	type target struct{ APIVersion, Kind, Name string }
	about := func(apiVersion, kind, name string) *corev1.Event {
		return remoteEvent(func(e *corev1.Event) {
			e.InvolvedObject.APIVersion, e.InvolvedObject.Kind, e.InvolvedObject.Name = apiVersion, kind, name
		})
	}
	change := func(f func(*corev1.Event)) *corev1.Event { return remoteEvent(f) }
	for name, tc := range map[string]struct {
		event *corev1.Event
		want  target
		skip  string
	}{
		"a pod":                             {about("v1", "Pod", "web"), target{"v1", "Pod", "web"}, ""},
		"a ShadowPod stands for its pod":    {about("offloading.liqo.io/v1beta1", "ShadowPod", "web"), target{"v1", "Pod", "web"}, ""},
		"a Service":                         {about("v1", "Service", "web"), target{"v1", "Service", "web"}, ""},
		"an EndpointSlice":                  {about("discovery.k8s.io/v1", "EndpointSlice", "web-1"), target{"discovery.k8s.io/v1", "EndpointSlice", "web-1"}, ""},
		"a ShadowEndpointSlice":             {about("offloading.liqo.io/v1beta1", "ShadowEndpointSlice", "web-1"), target{"discovery.k8s.io/v1", "EndpointSlice", "web-1"}, ""},
		"an Ingress":                        {about("networking.k8s.io/v1", "Ingress", "web"), target{"networking.k8s.io/v1", "Ingress", "web"}, ""},
		"a ConfigMap":                       {about("v1", "ConfigMap", "settings"), target{"v1", "ConfigMap", "settings"}, ""},
		"a renamed ConfigMap":               {about("v1", "ConfigMap", RenamedConfigMap("rome", RootCAConfigMap)), target{"v1", "ConfigMap", RootCAConfigMap}, ""},
		"a Secret":                          {about("v1", "Secret", "password"), target{"v1", "Secret", "password"}, ""},
		"a PersistentVolumeClaim":           {about("v1", "PersistentVolumeClaim", "data"), target{"v1", "PersistentVolumeClaim", "data"}, ""},
		"a kind that is never reflected":    {about("v1", "Node", "web"), target{}, offloadingv1beta1.ReasonNotReflectable},
		"a Namespace":                       {about("v1", "Namespace", "shop-rome"), target{}, offloadingv1beta1.ReasonNotReflectable},
		"a kind of that name of others":     {about("serving.knative.dev/v1", "Service", "web"), target{}, offloadingv1beta1.ReasonNotReflectable},
		"no version":                        {about("a/b/c", "Pod", "web"), target{}, offloadingv1beta1.ReasonNotReflectable},
		"another namespace":                 {change(func(e *corev1.Event) { e.InvolvedObject.Namespace = "kube-system" }), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"an Event of another namespace":     {change(func(e *corev1.Event) { e.Namespace = "default" }), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"a name with a path":                {about("v1", "Pod", "../web"), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"no name":                           {about("v1", "Pod", ""), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"no UID":                            {change(func(e *corev1.Event) { e.UID = "" }), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"another type":                      {change(func(e *corev1.Event) { e.Type = "Alarm" }), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"no reason":                         {change(func(e *corev1.Event) { e.Reason = "" }), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"a sentence as reason":              {change(func(e *corev1.Event) { e.Reason = "All is lost" }), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"a reason of 129 letters":           {change(func(e *corev1.Event) { e.Reason = strings.Repeat("A", 129) }), target{}, offloadingv1beta1.ReasonInvalidRemoteEvent},
		"a reason of 128 letters":           {change(func(e *corev1.Event) { e.Reason = strings.Repeat("A", 128) }), target{"v1", "Pod", "web"}, ""},
		"scheduled at the provider":         {change(normal("Scheduled", "default-scheduler")), target{}, offloadingv1beta1.ReasonRoutineEvent},
		"a container was created":           {change(normal("Created", "kubelet")), target{}, offloadingv1beta1.ReasonRoutineEvent},
		"a container started":               {change(normal("Started", "kubelet")), target{"v1", "Pod", "web"}, ""},
		"our controller made the pod":       {change(normal("CreatedPod", "liqo-shadowpod")), target{}, offloadingv1beta1.ReasonRoutineEvent},
		"our controller by the newer field": {change(func(e *corev1.Event) { normal("CreatedPod", "")(e); e.ReportingController = "liqo-shadowpod" }), target{}, offloadingv1beta1.ReasonRoutineEvent},
		"our controller warns":              {change(func(e *corev1.Event) { e.Source.Component = "liqo-shadowpod" }), target{"v1", "Pod", "web"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			reference, skip := EventTarget(tc.event, eventInput())
			if skip != nil {
				if skip.Reason != tc.skip || skip.Message == "" {
					t.Fatalf("skipped for %+v, want reason %q", skip, tc.skip)
				}
				return
			}
			if diff := cmp.Diff(tc.want, target{reference.APIVersion, reference.Kind, reference.Name}); diff != "" || reference.Namespace != "shop" {
				t.Errorf("target in namespace %q (-want +got):\n%s", reference.Namespace, diff)
			}
		})
	}
}

func normal(reason, source string) func(*corev1.Event) {
	return func(e *corev1.Event) { e.Type, e.Reason, e.Source.Component = corev1.EventTypeNormal, reason, source }
}

func TestLocalEventGolden(t *testing.T) {
	for file, event := range map[string]*corev1.Event{
		"crash": remoteEvent(),
		"newer-api": remoteEvent(func(e *corev1.Event) {
			e.Source, e.ReportingController, e.ReportingInstance = corev1.EventSource{}, "default-scheduler", "default-scheduler-0"
			e.FirstTimestamp, e.LastTimestamp, e.Count = metav1.Time{}, metav1.Time{}, 0
			e.EventTime, e.Action = metav1.NewMicroTime(eventsAgo(5*time.Minute).Time), "Scheduling"
			e.Series = &corev1.EventSeries{Count: 3, LastObservedTime: metav1.NewMicroTime(eventsAgo(2 * time.Minute).Time)}
			e.Reason, e.Message, e.InvolvedObject.FieldPath = "FailedScheduling", "0/3 nodes are available: 3 Insufficient cpu.", ""
		}),
		"hostile": remoteEvent(func(e *corev1.Event) {
			e.Labels, e.Annotations = map[string]string{"a": "b"}, map[string]string{"c": "d"}
			e.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n", UID: "u"}}
			e.Finalizers = []string{"never/ends"}
			e.Related = &corev1.ObjectReference{Kind: "Secret", Namespace: "kube-system", Name: "admin"}
			e.InvolvedObject.FieldPath = "spec.containers{$(rm -rf)}"
			e.Message = "all is well\x1b[2J\x00\xff " + strings.Repeat("é", 100_000)
			e.Source.Component = "kubelet\nroot"
			e.FirstTimestamp, e.LastTimestamp, e.Count = metav1.NewTime(time.Unix(0, 0)), metav1.NewTime(eventNow.Add(1000*time.Hour)), 1<<31-1
		}),
	} {
		t.Run(file, func(t *testing.T) {
			got, skip := LocalEvent(event, eventPod(), eventInput())
			if skip != nil {
				t.Fatalf("skipped: %+v", skip)
			}
			raw, err := yaml.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", "event", file+".yaml")
			if updating() {
				if err := os.WriteFile(path, raw, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(raw)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhichEventsComeBack(t *testing.T) {
	annotated := func(key string) *corev1.Pod {
		pod := eventPod()
		pod.Annotations = map[string]string{key: ""}
		return pod
	}
	allow := eventInput()
	allow.Policy = offloadingv1beta1.AllowList
	other := eventPod()
	other.Name = "other"
	for name, tc := range map[string]struct {
		event *corev1.Event
		local *corev1.Pod
		in    EventInput
		skip  string
	}{
		"by default":                         {remoteEvent(), eventPod(), eventInput(), ""},
		"of an object that is to be skipped": {remoteEvent(), annotated(offloadingv1beta1.SkipReflectionAnnotation), eventInput(), offloadingv1beta1.ReasonReflectionDisabled},
		"not allowed":                        {remoteEvent(), eventPod(), allow, offloadingv1beta1.ReasonReflectionDisabled},
		"allowed":                            {remoteEvent(), annotated(offloadingv1beta1.AllowReflectionAnnotation), allow, ""},
		"about another object":               {remoteEvent(), other, eventInput(), offloadingv1beta1.ReasonInvalidRemoteEvent},
		"without any time":                   {remoteEvent(func(e *corev1.Event) { e.FirstTimestamp, e.LastTimestamp = metav1.Time{}, metav1.Time{} }), eventPod(), eventInput(), offloadingv1beta1.ReasonStaleEvent},
		"older than two hours": {remoteEvent(func(e *corev1.Event) {
			e.FirstTimestamp, e.LastTimestamp = eventsAgo(3*time.Hour), eventsAgo(2*time.Hour+time.Second)
		}), eventPod(), eventInput(), offloadingv1beta1.ReasonStaleEvent},
		"B7: of a provider whose clock is an hour behind": {remoteEvent(func(e *corev1.Event) {
			e.FirstTimestamp, e.LastTimestamp = eventsAgo(time.Hour+time.Minute), eventsAgo(time.Hour+time.Minute)
		}), eventPod(), eventInput(), ""},
		"B7: of a provider whose clock is an hour ahead": {remoteEvent(func(e *corev1.Event) {
			e.FirstTimestamp, e.LastTimestamp = eventsAgo(-time.Hour), eventsAgo(-time.Hour)
		}), eventPod(), eventInput(), ""},
		"that began long ago and still happens": {remoteEvent(func(e *corev1.Event) { e.FirstTimestamp = eventsAgo(100 * time.Hour) }), eventPod(), eventInput(), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, skip := LocalEvent(tc.event, tc.local, tc.in)
			if skip == nil && tc.skip != "" || skip != nil && skip.Reason != tc.skip {
				t.Errorf("got %+v, skipped for %+v; want reason %q", got, skip, tc.skip)
			}
		})
	}
}

func TestEventName(t *testing.T) {
	long := strings.Repeat("a", 228) + "." + strings.Repeat("b", 24)
	for name, object := range map[string]string{"a short name": "web", "a long name": long, "a name of 253": strings.Repeat("c", 253)} {
		t.Run(name, func(t *testing.T) {
			one, same, other, peer := EventName(object, "milan", "1"), EventName(object, "milan", "1"), EventName(object, "milan", "2"), EventName(object, "turin", "1")
			if one != same || one == other || one == peer {
				t.Errorf("names are not one for each Event: %q %q %q %q", one, same, other, peer)
			}
			if !eventObject.MatchString(one) || strings.Contains(one, "..") {
				t.Errorf("%q is no name", one)
			}
		})
	}
}

// The selector is written for API servers: it must say what the pure rule says.
func TestEventSelectorLeavesOutRoutineOnly(t *testing.T) {
	selector, err := fieldselector.ParseSelector(EventUneventful)
	if err != nil {
		t.Fatal(err)
	}
	for _, reason := range []string{"Scheduled", "Created", "Started", "BackOff", "FailedScheduling"} {
		_, skip := EventTarget(remoteEvent(normal(reason, "kubelet")), eventInput())
		if crosses := selector.Matches(fieldselector.Set{"reason": reason}); crosses != (skip == nil) {
			t.Errorf("reason %s: the selector says %v, the rule %+v", reason, crosses, skip)
		}
	}
}

// W4: whatever the provider writes, what comes back is about the local object, short and printable, and of this age.
func FuzzLocalEvent(f *testing.F) {
	for _, event := range []*corev1.Event{
		remoteEvent(),
		remoteEvent(normal("Started", "kubelet")),
		remoteEvent(func(e *corev1.Event) { e.Message = "\x1b]0;title\a" + strings.Repeat("x", 5000) }),
		remoteEvent(func(e *corev1.Event) { e.Count, e.Series = -1, &corev1.EventSeries{Count: -5} }),
	} {
		raw, err := json.Marshal(event)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		remote := &corev1.Event{}
		if json.Unmarshal(raw, remote) != nil {
			return
		}
		got, skip := LocalEvent(remote, eventPod(), eventInput())
		if (got == nil) == (skip == nil) {
			t.Fatalf("got %+v and %+v", got, skip)
		}
		if got == nil {
			return
		}
		checkLocalEvent(t, got)
		again, _ := LocalEvent(remote, eventPod(), eventInput())
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("not the same twice:\n%s", diff)
		}
	})
}

func TestSourcesOfEvents(t *testing.T) {
	for sentence, c := range map[string]struct{ kind, component, want string }{
		"a pod's kubelet is that of its virtual node": {"Pod", "kubelet", "kubelet"},
		"a Service has no kubelet":                    {"Service", "kubelet", "kubelet (remote)"},
		"controllers are the provider's":              {"Pod", "replicaset-controller", "replicaset-controller (remote)"},
		"so they are after two hops":                  {"Pod", "scheduler (remote)", "scheduler (remote)"},
		"one who only looks like a kubelet":           {"Pod", "kubelet ", "unknown (remote)"},
	} {
		t.Run(sentence, func(t *testing.T) {
			if got := localSource(c.kind, c.component); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func checkLocalEvent(t *testing.T, got *corev1.Event) {
	t.Helper()
	involved := got.InvolvedObject
	if got.Namespace != "shop" || involved.Namespace != "shop" || involved.Kind != "Pod" || involved.Name != "web" || involved.UID != types.UID("local-pod") {
		t.Errorf("it is about %+v", involved)
	}
	if got.Related != nil || got.Labels != nil || got.Annotations != nil || got.OwnerReferences != nil || got.Finalizers != nil {
		t.Errorf("more than the Event came back: %+v", got)
	}
	if len(got.Message) > 1024 || !utf8.ValidString(got.Message) || strings.ContainsFunc(got.Message, corev1beta1.Unprintable) || !strings.HasPrefix(got.Message, "[cluster milan]") {
		t.Errorf("message %q", got.Message)
	}
	if got.Source.Component != kubelet && !strings.HasSuffix(got.Source.Component, " (remote)") || len(got.Source.Component) > 80 || got.Source.Host != "milan" {
		t.Errorf("source %+v", got.Source)
	}
	if got.FirstTimestamp.After(got.LastTimestamp.Time) || got.LastTimestamp.After(eventNow) || got.FirstTimestamp.Before(&metav1.Time{Time: eventNow.Add(-maxEventAge)}) {
		t.Errorf("from %s to %s", got.FirstTimestamp, got.LastTimestamp)
	}
	if got.Count < 1 || got.Count > maxEventCount || !eventReason.MatchString(got.Reason) || got.Type != "Normal" && got.Type != "Warning" {
		t.Errorf("count %d, reason %q, type %q", got.Count, got.Reason, got.Type)
	}
}

// A claim may have another name at the provider: what is written is about the one here.
func TestEventOfARenamedClaim(t *testing.T) {
	event := remoteEvent(func(e *corev1.Event) {
		e.InvolvedObject.Kind, e.InvolvedObject.APIVersion, e.InvolvedObject.Name, e.InvolvedObject.FieldPath = "PersistentVolumeClaim", "v1", "data-there", ""
	})
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "data", UID: "here"}}
	got, skip := LocalEvent(event, claim, eventInput())
	if skip != nil {
		t.Fatalf("skipped: %+v", skip)
	}
	want := corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "shop", Name: "data", UID: "here"}
	if diff := cmp.Diff(want, got.InvolvedObject); diff != "" || got.Name != EventName("data", "milan", string(event.UID)) {
		t.Errorf("Event %s (-want +got):\n%s", got.Name, diff)
	}
	claim.Namespace = "elsewhere"
	if _, skip = LocalEvent(event, claim, eventInput()); skip == nil {
		t.Error("an Event about a claim of another namespace came back")
	}
}
