package agent

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
)

// Cluster is a connection to the API server of an agent's cluster.
type Cluster struct {
	clients map[schema.GroupVersion]rest.Interface
}

// Connect makes a connection.
func Connect(config *rest.Config) (*Cluster, error) {
	scheme := runtime.NewScheme()
	c := &Cluster{clients: map[schema.GroupVersion]rest.Interface{}}
	for version, add := range map[schema.GroupVersion]func(*runtime.Scheme) error{
		networkingv1beta1.GroupVersion: networkingv1beta1.AddToScheme, ipamv1alpha1.GroupVersion: ipamv1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
		own := rest.CopyConfig(config)
		own.GroupVersion, own.APIPath = &version, "/apis"
		own.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
		// The server's priority and fairness protects it, not a limit of ours.
		own.QPS = -1
		client, err := rest.RESTClientFor(own)
		if err != nil {
			return nil, fmt.Errorf("connecting to the cluster: %w", err)
		}
		c.clients[version] = client
	}
	return c, nil
}

// Object names an object, or a part of it.
type Object struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Namespace is "" for what is in none.
	Namespace, Name string
	// Part is a subresource, or "".
	Part string
}

// Apply has the API server put fields into an object, as their owner; the object is made if it is not there. Fields of a part, such as its
// status, are those of the object as a whole.
func (c *Cluster) Apply(ctx context.Context, owner string, to Object, metadata map[string]any, fields map[string]any) error {
	named := map[string]any{"name": to.Name}
	if to.Namespace != "" {
		named["namespace"] = to.Namespace
	}
	for key, value := range metadata {
		named[key] = value
	}
	whole := map[string]any{"apiVersion": to.Resource.GroupVersion().String(), "kind": to.Kind, "metadata": named}
	for key, value := range fields {
		whole[key] = value
	}
	body, err := json.Marshal(whole)
	if err != nil {
		return fmt.Errorf("writing %s %s: %w", to.Kind, to.Name, err)
	}
	request := c.clients[to.Resource.GroupVersion()].Patch(types.ApplyPatchType).NamespaceIfScoped(to.Namespace, to.Namespace != "").
		Resource(to.Resource.Resource).Name(to.Name).Param("fieldManager", owner).Param("force", "true").Body(body)
	if to.Part != "" {
		request = request.SubResource(to.Part)
	}
	if err := request.Do(ctx).Error(); err != nil {
		return fmt.Errorf("writing %s %s: %w", to.Kind, to.Name, err)
	}
	return nil
}

// selecting narrows a list or a watch down to the object of a name, if there is one.
func selecting(name string) func(*metav1.ListOptions) {
	return func(options *metav1.ListOptions) {
		if name != "" {
			options.FieldSelector = metav1.ObjectNameField + "=" + name
		}
	}
}
