package weight

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sync/semaphore"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func TestElements(t *testing.T) {
	for text, want := range map[string]int{
		``: 0, `{}`: 0, `[]`: 1, `[{}]`: 1, `[{},{}]`: 2, `{"a":[{"b":[1,2,3]},{}]}`: 5,
		`{"a":"[,,,]\",[,"}`: 0, `{"a":"\\","b":[1,2]}`: 2, `}}]],,`: 0, `[1,2`: 0,
		`{` + strings.Repeat(`"a":1,`, 63) + `"b":1}`: 0, `{` + strings.Repeat(`"a":1,`, 64) + `"b":1}`: 65,
	} {
		if got := Elements([]byte(text)); got != want {
			t.Errorf("%.60s: %d elements, not %d", text, got, want)
		}
	}
}

func keys(format string, count int) map[string]string {
	all := map[string]string{}
	for i := range count {
		all[fmt.Sprintf(format, i)] = ""
	}
	return all
}

// T41, T42, where API servers have no mutating policies: what has too many elements is refused before it is compared with its schema.
func TestTooManyElementsAreRefused(t *testing.T) {
	of := func(group, resource string) schema.GroupResource {
		return schema.GroupResource{Group: group, Resource: resource}
	}
	text := func(o any) []byte {
		raw, err := json.Marshal(o)
		if err != nil {
			t.Fatal(err)
		}
		return raw
	}
	containers := func(count int) []byte {
		return []byte(`{"spec":{"pod":{"containers":[{}` + strings.Repeat(`,{}`, count-1) + `]}}}`)
	}
	for name, tc := range map[string]struct {
		resource schema.GroupResource
		raw      []byte
		refused  bool
	}{
		"a pod":                           {of("offloading.liqo.io", "shadowpods"), containers(3), false},
		"80 000 containers":               {of("offloading.liqo.io", "shadowpods"), containers(80_000), true},
		"ports of a Service":              {of("", "services"), []byte(`{"spec":{"ports":[{}` + strings.Repeat(`,{}`, 1100) + `]}}`), true},
		"paths of an Ingress":             {of("networking.k8s.io", "ingresses"), []byte(`{"spec":{"rules":[{}` + strings.Repeat(`,{"http":{"paths":[{}]}}`, 2100) + `]}}`), true},
		"labels of a claim":               {of("", "persistentvolumeclaims"), text(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeName: "a"}, ObjectMeta: metav1.ObjectMeta{Labels: keys("/%d", 1100)}}), true},
		"ten thousand keys":               {of("", "configmaps"), text(&corev1.ConfigMap{Data: keys("key-%d", 10_000)}), false},
		"ten thousand keys, invalid ones": {of("", "configmaps"), text(&corev1.ConfigMap{Data: keys("/%d", 10_000)}), true},
		"an invalid key":                  {of("", "secrets"), text(&corev1.Secret{StringData: keys("/%d", 1)}), false},
		"what is no consumer's":           {of("apps", "deployments"), containers(80_000), false},
	} {
		if why := tooMany(tc.resource, tc.raw); (why != "") != tc.refused || tc.refused && !strings.HasPrefix(why, ReasonTooManyElements) {
			t.Errorf("%s: %q", name, why)
		}
	}
}

// reviewed is what an API server gets to hear.
func reviewed(t *testing.T, server *httptest.Server, raw, old []byte) (int, *admissionv1.AdmissionResponse) {
	t.Helper()
	review := &admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{UID: "1", Object: runtime.RawExtension{Raw: slices.Concat(raw)}, OldObject: runtime.RawExtension{Raw: slices.Concat(old)}}}
	review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.Post(server.URL+"/x", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	got := &admissionv1.AdmissionReview{}
	if answer.StatusCode == http.StatusOK {
		if err := json.NewDecoder(answer.Body).Decode(got); err != nil {
			t.Fatal(err)
		}
	}
	return answer.StatusCode, got.Response
}

// T40: no webhook decodes an object with more elements than any may have, and all of them together hold a bounded number of bytes.
func TestNoWebhookDecodesWhatIsTooMuch(t *testing.T) {
	inner, asked := webhook.NewServer(webhook.Options{WebhookMux: http.NewServeMux()}), 0
	bounded := Bounded(inner)
	bounded.Register("/x", &admission.Webhook{Handler: admission.HandlerFunc(func(context.Context, admission.Request) admission.Response {
		asked++
		return admission.Allowed("")
	})})
	listener := httptest.NewServer(inner.WebhookMux())
	defer listener.Close()
	if code, answer := reviewed(t, listener, []byte(`{"a":[1,2]}`), nil); code != http.StatusOK || !answer.Allowed || asked != 1 {
		t.Errorf("an ordinary object: %d, %v", code, answer)
	}
	for name, objects := range map[string][2]string{
		"900 000 elements":               {`{"a":[1` + strings.Repeat(`,1`, 900_000) + `]}`, ""},
		"900 000 elements that were":     {`{"a":[1]}`, `{"a":[1` + strings.Repeat(`,1`, 900_000) + `]}`},
		"900 000 elements of a deletion": {"", `{"a":[1` + strings.Repeat(`,1`, 900_000) + `]}`},
	} {
		if _, answer := reviewed(t, listener, []byte(objects[0]), []byte(objects[1])); answer == nil || answer.Allowed || asked != 1 {
			t.Errorf("%s: %v, decoded %d times", name, answer, asked)
		}
	}
	if code, _ := reviewed(t, listener, []byte(`{"a":"`+strings.Repeat(`x`, 8<<20)+`"}`), nil); code != http.StatusRequestEntityTooLarge {
		t.Errorf("8 MiB: %d", code)
	}
	chunked, err := http.Post(listener.URL+"/x", "application/json", struct{ *strings.Reader }{strings.NewReader("{}")})
	if err != nil {
		t.Fatal(err)
	}
	_ = chunked.Body.Close()
	if chunked.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a review that does not say how long it is: %d", chunked.StatusCode)
	}
}

// While as much as may be is in flight, further reviews wait, and those whose caller gives up are let go.
func TestReviewsInFlightAreBounded(t *testing.T) {
	inner := webhook.NewServer(webhook.Options{WebhookMux: http.NewServeMux()})
	bounded := &server{inner, semaphore.NewWeighted(100), 10}
	entered, leave := make(chan struct{}, 2), make(chan struct{})
	bounded.Register("/x", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		entered <- struct{}{}
		<-leave
	}))
	listener := httptest.NewServer(inner.WebhookMux())
	defer listener.Close()
	post := func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, listener.URL+"/x", strings.NewReader(strings.Repeat("x", 60)))
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	}
	first := make(chan error)
	go func() { first <- post(t.Context()) }()
	<-entered
	impatient, cancel := context.WithCancel(t.Context())
	second := make(chan error)
	go func() { second <- post(impatient) }()
	cancel()
	if err := <-second; err == nil {
		t.Error("60 of 100 bytes are in flight, and 60 more are let in")
	}
	close(leave)
	if err := <-first; err != nil {
		t.Error(err)
	}
	if err := post(t.Context()); err != nil || len(entered) != 1 {
		t.Errorf("afterwards: %v, %d let in", err, len(entered))
	}
}
