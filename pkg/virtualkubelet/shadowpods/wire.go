package shadowpods

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	jsonserializer "k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// ShadowPods are sent and watched here without the detour over maps that the dynamic client makes: each pod is one creation and one
// event at least, and JSON is what they cost most.

// onlyMeta asks for the metadata of the object in an answer, from a server that can send that alone.
const onlyMeta = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"

// sentShadow is a ShadowPod without its status, which belongs to the provider: its empty form would fail the validation.
type sentShadow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              offloadingv1beta1.ShadowPodSpec `json:"spec"`
}

func shadowPath(namespace string) string {
	return path.Join("/apis", Resource.Group, Resource.Version, "namespaces", namespace, Resource.Resource)
}

// send makes a ShadowPod and returns its UID.
func send(ctx context.Context, client rest.Interface, shadow *offloadingv1beta1.ShadowPod, o metav1.CreateOptions) (types.UID, error) {
	body, err := json.Marshal(sentShadow{TypeMeta: shadow.TypeMeta, ObjectMeta: shadow.ObjectMeta, Spec: shadow.Spec})
	if err != nil {
		return "", failed("encoding", shadow, err)
	}
	result := client.Post().AbsPath(shadowPath(shadow.Namespace)).VersionedParams(&o, scheme.ParameterCodec).
		SetHeader("Content-Type", runtime.ContentTypeJSON).SetHeader("Accept", onlyMeta).Body(body).Do(ctx)
	// Only this one reads what the server says of a refusal.
	if err := result.Error(); err != nil {
		return "", failed("creating", shadow, err)
	}
	answer, err := result.Raw()
	if err != nil {
		return "", failed("creating", shadow, err)
	}
	var made struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
	}
	if err := utiljson.Unmarshal(answer, &made); err != nil {
		return "", failed("decoding", shadow, err)
	}
	return made.Metadata.UID, nil
}

// stream follows the ShadowPods of a namespace.
func stream(ctx context.Context, client rest.Interface, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	body, err := client.Get().AbsPath(shadowPath(namespace)).VersionedParams(&o, scheme.ParameterCodec).
		SetHeader("Accept", runtime.ContentTypeJSON).Stream(ctx)
	if err != nil {
		return nil, fmt.Errorf("watching the ShadowPods in namespace %q: %w", namespace, err)
	}
	e := &shadowEvents{}
	e.frames = streaming.NewDecoder(jsonserializer.Framer.NewFrameReader(body), e)
	return watch.NewStreamWatcher(events{e}, apierrors.NewClientErrorReporter(http.StatusInternalServerError, http.MethodGet, "ClientWatchDecoding")), nil
}

// shadowEvents decodes the stream of a watch. What bounds the length of an event is the decoder of frames.
type shadowEvents struct {
	frames streaming.Decoder
	is     watch.EventType
	object runtime.Object
}

// Decode implements runtime.Decoder, for one frame.
func (e *shadowEvents) Decode(frame []byte, _ *schema.GroupVersionKind, _ runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	var event struct {
		Type   watch.EventType `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	if err := utiljson.Unmarshal(frame, &event); err != nil {
		return nil, nil, fmt.Errorf("decoding an event of a watch: %w", err)
	}
	e.is = event.Type
	switch event.Type {
	case watch.Added, watch.Modified, watch.Deleted, watch.Bookmark:
		return nil, nil, e.take(event.Object)
	case watch.Error:
		status := &metav1.Status{}
		e.object = status
		if err := utiljson.Unmarshal(event.Object, status); err != nil {
			return nil, nil, fmt.Errorf("decoding the error of a watch: %w", err)
		}
		return nil, nil, nil
	default:
		return nil, nil, fmt.Errorf("decoding an event of a watch: type %q is not known", event.Type)
	}
}

// take decodes an object. One that does not fit is taken as the dynamic client takes it.
func (e *shadowEvents) take(object []byte) error {
	shadow := &offloadingv1beta1.ShadowPod{}
	e.object = shadow
	if utiljson.Unmarshal(object, shadow) == nil {
		return nil
	}
	raw := map[string]any{}
	if err := utiljson.Unmarshal(object, &raw); err != nil {
		return fmt.Errorf("decoding the object of a watch: %w", err)
	}
	e.object = Typed(&unstructured.Unstructured{Object: raw})
	return nil
}

// events is the face of shadowEvents towards the watch.
type events struct{ *shadowEvents }

// Decode implements watch.Decoder.
func (e events) Decode() (watch.EventType, runtime.Object, error) {
	if _, _, err := e.frames.Decode(nil, nil); err != nil {
		return "", nil, err
	}
	return e.is, e.object, nil
}

// Close implements watch.Decoder.
func (e events) Close() { _ = e.frames.Close() }
