// Package addon applies what a lab cluster needs beside its programs: the
// API server's rights at the kubelets, those of flannel, DNS, the default storage class and, where
// the declaration asks for one, an ingress controller.
package addon

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"text/template"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"liqo.io/liqo/test/lab/image"
	"liqo.io/liqo/test/lab/ingress"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/volume"
)

//go:embed manifests
var manifests embed.FS

// fieldManager owns the fields that the lab applies.
const fieldManager = "liqo-lab"

// FlannelUser is who flannel is to the API server.
const FlannelUser = "lab:flannel"

// RealLabel marks the nodes that run pods, as opposed to simulated and virtual ones.
const RealLabel = "lab.liqo.io/node"

// Apply brings the add-ons of a cluster to the API server. DNS and storage need
// a real node and are left out without one.
func Apply(ctx context.Context, config *rest.Config, cluster spec.Cluster) error {
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to cluster %s: %w", cluster.Name, err)
	}
	finder, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to cluster %s: %w", cluster.Name, err)
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(finder))
	objects, err := Objects(cluster)
	if err != nil {
		return err
	}
	for _, o := range objects {
		kind := o.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return fmt.Errorf("finding the resource of %s in cluster %s: %w", kind.Kind, cluster.Name, err)
		}
		_, err = client.Resource(mapping.Resource).Namespace(o.GetNamespace()).
			Apply(ctx, o.GetName(), o, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
		if err != nil {
			return fmt.Errorf("applying %s %s to cluster %s: %w", o.GetKind(), o.GetName(), cluster.Name, err)
		}
	}
	return nil
}

// Objects renders the add-ons of a cluster.
func Objects(cluster spec.Cluster) ([]*unstructured.Unstructured, error) {
	names := []string{"rbac.yaml"}
	if len(cluster.NodesOf(spec.Real)) > 0 {
		names = append(names, "coredns.yaml")
	}
	if cluster.CNI == spec.Flannel {
		names = append(names, "flannel.yaml")
	}
	if cluster.IngressClass != "" {
		names = append(names, "ingress.yaml")
	}
	var objects []*unstructured.Unstructured
	for _, name := range names {
		data, err := render(name, cluster)
		if err != nil {
			return nil, err
		}
		decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
		for {
			var o unstructured.Unstructured
			err := decoder.Decode(&o.Object)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("parsing the manifest %s: %w", name, err)
			}
			objects = append(objects, &o)
		}
	}
	return objects, nil
}

func render(name string, cluster spec.Cluster) ([]byte, error) {
	t, err := template.New(name).Delims("[[", "]]").Option("missingkey=error").ParseFS(manifests, "manifests/"+name)
	if err != nil {
		return nil, fmt.Errorf("parsing the template %s: %w", name, err)
	}
	var out bytes.Buffer
	values := map[string]string{
		"DNS": cluster.DNSAddress().String(), "Image": image.CoreDNS, "Provisioner": volume.Provisioner,
		"IngressClass": cluster.IngressClass, "IngressController": ingress.Controller, "IngressImage": image.Ingress,
	}
	if err := t.Execute(&out, values); err != nil {
		return nil, fmt.Errorf("rendering %s: %w", name, err)
	}
	return out.Bytes(), nil
}
