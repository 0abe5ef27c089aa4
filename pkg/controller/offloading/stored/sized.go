package stored

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// kind is one that consumers write in their twins.
type kind struct {
	schema.GroupVersion
	kind, resource string
	// copies is how many objects are stored for each: what the provider makes of it is as large.
	copies int64
	// secret kinds are watched in twins alone.
	secret bool
}

var kinds = []kind{
	{GroupVersion: schema.GroupVersion{Version: "v1"}, kind: "ConfigMap", resource: "configmaps", copies: 1, secret: true},
	{GroupVersion: schema.GroupVersion{Version: "v1"}, kind: "Secret", resource: "secrets", copies: 1, secret: true},
	{GroupVersion: schema.GroupVersion{Version: "v1"}, kind: "Service", resource: "services", copies: 1},
	{GroupVersion: schema.GroupVersion{Version: "v1"}, kind: "PersistentVolumeClaim", resource: "persistentvolumeclaims", copies: 1},
	{GroupVersion: schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}, kind: "Ingress", resource: "ingresses", copies: 1},
	{GroupVersion: schema.GroupVersion{Group: "networking.k8s.io", Version: "v1"}, kind: "NetworkPolicy", resource: "networkpolicies", copies: 1},
	{GroupVersion: offloadingv1beta1.GroupVersion, kind: "ShadowPod", resource: "shadowpods", copies: 2},
	{GroupVersion: offloadingv1beta1.GroupVersion, kind: "ShadowEndpointSlice", resource: "shadowendpointslices", copies: 2},
}

// sized is what is kept of an object as it comes from the API server: which it is, and of how many bytes.
type sized struct {
	metav1.TypeMeta
	metav1.ObjectMeta
	bytes int64
}

// UnmarshalJSON reads an object past all that it says.
func (s *sized) UnmarshalJSON(data []byte) error {
	var read struct {
		metav1.TypeMeta
		Metadata struct {
			Namespace, Name, ResourceVersion string
			// Annotations of a bookmark say that the first list is in.
			Annotations map[string]string
		} `json:"metadata"`
	}
	if err := json.Unmarshal(data, &read); err != nil {
		return fmt.Errorf("reading an object: %w", err)
	}
	s.TypeMeta, s.bytes = read.TypeMeta, int64(len(data))
	s.ObjectMeta = metav1.ObjectMeta{Namespace: read.Metadata.Namespace, Name: read.Metadata.Name, ResourceVersion: read.Metadata.ResourceVersion}
	if end, is := read.Metadata.Annotations[metav1.InitialEventsAnnotationKey]; is {
		s.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: end}
	}
	return nil
}

// DeepCopyObject makes it an object.
func (s *sized) DeepCopyObject() runtime.Object {
	return &sized{TypeMeta: s.TypeMeta, ObjectMeta: *s.ObjectMeta.DeepCopy(), bytes: s.bytes}
}

type sizedList struct {
	metav1.TypeMeta
	metav1.ListMeta `json:"metadata"`
	Items           []sized `json:"items"`
}

// DeepCopyObject makes it an object.
func (l *sizedList) DeepCopyObject() runtime.Object {
	copied := &sizedList{TypeMeta: l.TypeMeta, ListMeta: *l.ListMeta.DeepCopy()}
	for i := range l.Items {
		item, _ := l.Items[i].DeepCopyObject().(*sized)
		copied.Items = append(copied.Items, *item)
	}
	return copied
}

// source lists and watches objects of a kind for what is kept of them.
type source struct {
	kind
	client rest.Interface
	params runtime.ParameterCodec
}

// sources are those of all kinds.
func sources(config *rest.Config, httpClient *http.Client) ([]source, error) {
	scheme := runtime.NewScheme()
	for _, k := range kinds {
		scheme.AddKnownTypeWithName(k.WithKind(k.kind), &sized{})
		scheme.AddKnownTypeWithName(k.WithKind(k.kind+"List"), &sizedList{})
		metav1.AddToGroupVersion(scheme, k.GroupVersion)
	}
	codecs := serializer.NewCodecFactory(scheme).WithoutConversion()
	var all []source
	for _, k := range kinds {
		of := rest.CopyConfig(config)
		of.APIPath = "/apis"
		if k.Group == "" {
			of.APIPath = "/api"
		}
		of.ContentConfig = rest.ContentConfig{GroupVersion: &k.GroupVersion, NegotiatedSerializer: codecs, ContentType: runtime.ContentTypeJSON}
		client, err := rest.RESTClientForConfigAndClient(of, httpClient)
		if err != nil {
			return nil, fmt.Errorf("preparing to weigh %s: %w", k.resource, err)
		}
		all = append(all, source{kind: k, client: client, params: runtime.NewParameterCodec(scheme)})
	}
	return all, nil
}

// request for the objects of consumers in a namespace, or in all.
func (s source) request(namespace string, o metav1.ListOptions) *rest.Request {
	o.LabelSelector = offloadingv1beta1.OriginLabel
	return s.client.Get().NamespaceIfScoped(namespace, namespace != "").Resource(s.resource).VersionedParams(&o, s.params)
}

func (s source) list(ctx context.Context, namespace string, o metav1.ListOptions) (runtime.Object, error) {
	list := &sizedList{}
	if err := s.request(namespace, o).Do(ctx).Into(list); err != nil {
		return nil, fmt.Errorf("listing %s: %w", s.resource, err)
	}
	return list, nil
}

func (s source) watch(ctx context.Context, namespace string, o metav1.ListOptions) (watch.Interface, error) {
	o.Watch = true
	w, err := s.request(namespace, o).Watch(ctx)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", s.resource, err)
	}
	return w, nil
}
