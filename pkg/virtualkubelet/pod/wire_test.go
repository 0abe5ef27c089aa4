package pod

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/peer"
)

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
	_, shadow, _ := inStep(1)
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
				uid, err := createShadow(t.Context(), c, shadow)
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
	_, shadow, _ := inStep(1)
	shadow.ManagedFields = managed("somebody")
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
			byHand, err := watchShadows(t.Context(), clients.REST, twinNamespace, options)
			if err != nil {
				t.Fatal(err)
			}
			got := all(t, byHand)
			reference, err := clients.Dynamic.Resource(shadowPods).Namespace(twinNamespace).Watch(t.Context(), options)
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
			held, ok := holdShadow(event.Object)
			if !ok {
				t.Fatalf("a %T is not held", event.Object)
			}
			shadow := held.shadow()
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
	_, err := watchShadows(context.Background(), clients.REST, twinNamespace, metav1.ListOptions{})
	if !apierrors.IsResourceExpired(err) {
		t.Errorf("got %v", err)
	}
}
