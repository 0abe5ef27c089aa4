package shadowpods

import (
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/peer"
)

const twinNamespace = "shop-rome"

// sample is a ShadowPod as an API server shows it.
func sample() *offloadingv1beta1.ShadowPod {
	return &offloadingv1beta1.ShadowPod{
		TypeMeta: metav1.TypeMeta{APIVersion: offloadingv1beta1.GroupVersion.String(), Kind: "ShadowPod"},
		ObjectMeta: metav1.ObjectMeta{Namespace: twinNamespace, Name: "p", UID: "u", ResourceVersion: "7", Generation: 1,
			CreationTimestamp: metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), Labels: map[string]string{"app": "shop"},
			Annotations:   map[string]string{corev1beta1.OriginUIDAnnotation: "v"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "somebody", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`)}}},
		Spec: offloadingv1beta1.ShadowPodSpec{Pod: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "app", Image: "registry.example.com/shop/app:1.2.3", ImagePullPolicy: corev1.PullIfNotPresent,
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}}}},
			TerminationGracePeriodSeconds: new(int64(30)), Tolerations: []corev1.Toleration{{Key: corev1.TaintNodeNotReady}}}},
	}
}

// overHTTP are the clients of a server.
func overHTTP(t *testing.T, handle http.HandlerFunc) peer.Clients {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, QPS: -1, UserAgent: "test", Transport: &http.Transport{DisableKeepAlives: true}}
	kube := kubernetes.NewForConfigOrDie(config)
	return peer.Clients{Kube: kube, REST: kube.CoreV1().RESTClient(), Dynamic: dynamic.NewForConfigOrDie(config), User: "rome"}
}

// What is sent by hand is what the dynamic client sends, and refusals are understood.
func TestCreateShadowOverHTTP(t *testing.T) {
	type call struct {
		Path string
		Body map[string]any
	}
	shadow := sample()
	shadow.ObjectMeta = metav1.ObjectMeta{Name: shadow.Name, Namespace: shadow.Namespace, Labels: shadow.Labels, Annotations: shadow.Annotations}
	for name, refuses := range map[string]bool{"one that is made": false, "one that is there": true} {
		t.Run(name, func(t *testing.T) {
			var got []call
			clients := overHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				c := call{Path: r.Method + " " + r.URL.String()}
				body, _ := io.ReadAll(r.Body)
				if err := json.Unmarshal(body, &c.Body); err != nil {
					t.Errorf("%s is no JSON: %v", body, err)
				}
				if meta, ok := c.Body["metadata"].(map[string]any); ok {
					delete(meta, "creationTimestamp") // an empty one is dropped or null
				}
				got = append(got, c)
				w.Header().Set("Content-Type", "application/json")
				if refuses {
					w.WriteHeader(http.StatusConflict)
					_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","message":"there is one","reason":"AlreadyExists","code":409}`))
					return
				}
				w.WriteHeader(http.StatusCreated)
				_, _ = w.Write([]byte(`{"kind":"ShadowPod","apiVersion":"offloading.liqo.io/v1beta1","metadata":{"name":"p","uid":"u7"}}`))
			})
			before := shadow.DeepCopy()
			for _, c := range []peer.Clients{clients, {Kube: clients.Kube, Dynamic: clients.Dynamic, User: clients.User}} {
				uid, err := Create(t.Context(), c, shadow)
				if refuses != apierrors.IsAlreadyExists(err) || refuses != (uid == "") || !refuses && uid != "u7" {
					t.Errorf("got UID %q, error %v", uid, err)
				}
				if refuses && !strings.HasSuffix(err.Error(), ": there is one") {
					t.Errorf("the server's words are lost: %v", err)
				}
			}
			if len(got) != 2 {
				t.Fatalf("there were %d requests", len(got))
			}
			if diff := cmp.Diff(got[1], got[0]); diff != "" {
				t.Errorf("-dynamic +by hand:\n%s", diff)
			}
			if _, there := got[0].Body["status"]; there {
				t.Error("a status was sent")
			}
			if diff := cmp.Diff(before, shadow); diff != "" {
				t.Errorf("the ShadowPod was changed (-before +after):\n%s", diff)
			}
		})
	}
}

// What is watched by hand is what the dynamic client shows.
func TestWatchShadowsOverHTTP(t *testing.T) {
	shadow := sample()
	whole, err := json.Marshal(shadow)
	if err != nil {
		t.Fatal(err)
	}
	const misfit = `{"apiVersion":"offloading.liqo.io/v1beta1","kind":"ShadowPod","metadata":{"name":"p","namespace":"shop-rome","uid":"u","resourceVersion":"5",` +
		`"annotations":{"a":"b"}},"spec":{"pod":"none"}}`
	const bookmark = `{"apiVersion":"offloading.liqo.io/v1beta1","kind":"ShadowPod","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}`
	for name, tc := range map[string]struct {
		frames []string
		// breaks says that the watch ends with an error that the client makes.
		breaks bool
	}{
		"objects come, change and go": {frames: []string{"ADDED " + string(whole), "MODIFIED " + string(whole), "DELETED " + string(whole)}},
		"an object does not fit":      {frames: []string{"ADDED " + misfit}},
		"the first list ends":         {frames: []string{"BOOKMARK " + bookmark}},
		"the version is too old": {frames: []string{
			`ERROR {"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"too old","reason":"Expired","code":410}`}},
		"a type is not known":         {frames: []string{"ADDED " + string(whole), "MADE " + string(whole)}, breaks: true},
		"an object is none":           {frames: []string{"ADDED []"}, breaks: true},
		"an event is longer than all": {frames: []string{`ADDED {"metadata":{"name":"` + strings.Repeat("x", 17<<20) + `"}}`}, breaks: true},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []string
			clients := overHTTP(t, func(w http.ResponseWriter, r *http.Request) {
				asked = append(asked, r.URL.Path+" "+r.URL.Query().Encode())
				w.Header().Set("Content-Type", "application/json")
				for _, frame := range tc.frames {
					kind, object, _ := strings.Cut(frame, " ")
					_, _ = fmt.Fprintf(w, `{"type":%q,"object":%s}`+"\n", kind, object)
				}
			})
			options := metav1.ListOptions{LabelSelector: "a=b", AllowWatchBookmarks: true, ResourceVersion: "3", TimeoutSeconds: new(int64(9)),
				SendInitialEvents: new(true), ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
			_, follow := Watch(clients, twinNamespace)
			byHand, err := follow(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			got := all(t, byHand)
			reference, err := In(clients, twinNamespace).Watch(t.Context(), options)
			if err != nil {
				t.Fatal(err)
			}
			want := all(t, reference)
			if len(asked) != 2 || asked[0] != asked[1] {
				t.Errorf("asked for %q", asked)
			}
			if tc.breaks {
				if last := got[len(got)-1]; last.Type != watch.Error || len(got) != len(want) {
					t.Errorf("the watch did not break: %v", got)
				}
				return
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("-dynamic +by hand:\n%s", diff)
			}
		})
	}
}

// all are the events of a watch that ends, their objects as they are held.
func all(t *testing.T, w watch.Interface) []watch.Event {
	t.Helper()
	defer w.Stop()
	var list []watch.Event
	for event := range w.ResultChan() {
		if _, raw := event.Object.(*unstructured.Unstructured); raw || event.Type != watch.Error {
			held, ok := Hold(event.Object)
			if !ok {
				t.Fatalf("a %T is not held", event.Object)
			}
			shadow := Of(held)
			if event.Type == watch.Bookmark {
				shadow = &offloadingv1beta1.ShadowPod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: shadow.ResourceVersion, Annotations: shadow.Annotations}}
			}
			event.Object = shadow
		}
		list = append(list, event)
	}
	return list
}

// A watch that is refused says so at once.
func TestWatchShadowsRefused(t *testing.T) {
	clients := overHTTP(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusGone)
		_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}`))
	})
	_, follow := Watch(clients, twinNamespace)
	_, err := follow(context.Background(), metav1.ListOptions{})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v", err)
	}
}

// What is read of a cache is what was put there.
func TestPack(t *testing.T) {
	shadow := sample()
	ended := shadow.DeepCopy()
	since := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))
	ended.Status = offloadingv1beta1.ShadowPodStatus{Phase: corev1.PodFailed,
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, FinishedAt: since}}}},
		Conditions:        []metav1.Condition{{Type: "Ready", Status: metav1.ConditionFalse, ObservedGeneration: 4, LastTransitionTime: since, Reason: "R", Message: "M"}}}
	for name, shadow := range map[string]*offloadingv1beta1.ShadowPod{"a ShadowPod": shadow, "one that ended": ended, "an empty one": {}} {
		t.Run(name, func(t *testing.T) {
			held, err := Pack(shadow)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(shadow, Of(held), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(offloadingv1beta1.ShadowPod{}, "TypeMeta")); diff != "" {
				t.Errorf("-put +got:\n%s", diff)
			}
		})
	}
	if Of(nil) != nil {
		t.Error("there is something where nothing is held")
	}
}

// A ShadowPod that cannot be read is held, so that its name is known to be taken, and is nobody's.
func TestHoldShadowThatDoesNotFit(t *testing.T) {
	held, ok := Hold(&unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "p", "namespace": twinNamespace, "uid": "u", "resourceVersion": "5", "annotations": map[string]any{corev1beta1.OriginUIDAnnotation: "v"}},
		"spec":     map[string]any{"pod": "none"},
	}})
	if !ok {
		t.Fatal("it is not held")
	}
	want := metav1.ObjectMeta{Name: "p", Namespace: twinNamespace, UID: "u", ResourceVersion: "5"}
	if diff := cmp.Diff(want, Of(held).ObjectMeta); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The label by which the provider counts is sent along, so that it need not be added.
func TestAShadowPodNamesItsCreator(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := offloadingv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"liqo.io:slice:a": capacity.UserLabel("liqo.io:slice:a"), "": ""} {
		shadow := &offloadingv1beta1.ShadowPod{
			TypeMeta:   metav1.TypeMeta{APIVersion: offloadingv1beta1.GroupVersion.String(), Kind: "ShadowPod"},
			ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "p"}}
		client := dynamicfake.NewSimpleDynamicClient(scheme)
		if _, err := Create(context.Background(), peer.Clients{Dynamic: client, User: user}, shadow); err != nil {
			t.Fatal(err)
		}
		made, err := client.Resource(Resource).Namespace("n").Get(context.Background(), "p", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got := made.GetLabels()[offloadingv1beta1.CreatorUserLabel]; got != want || len(shadow.Labels) > 0 {
			t.Errorf("user %q: label %q, want %q; the wanted object got %v", user, got, want, shadow.Labels)
		}
	}
}
