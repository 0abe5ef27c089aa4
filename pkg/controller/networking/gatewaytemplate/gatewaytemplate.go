// Package gatewaytemplate keeps the default WgGatewayServerTemplate and WgGatewayClientTemplate, by which gateways are rendered that name
// no other, in step with the configuration. Helm cannot make them: when it installs a release it does not know kinds yet which that release
// defines. They belong to the controller manager's Deployment, so they go with the release.
package gatewaytemplate

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/kube/keep"
)

// Options is what the default templates are made from.
type Options struct {
	// Templates of the configuration.
	Templates v1alpha1.GatewayTemplates
	// Labels that they get.
	Labels map[string]string
	// Namespace of Liqo.
	Namespace string
	// Deployment of the controller manager, in Namespace; it owns the templates.
	Deployment string
}

// Register makes the manager write the templates once it leads.
func Register(mgr ctrl.Manager, o Options) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return ensure(ctx, mgr.GetAPIReader(), mgr.GetClient(), o)
	}))
}

// Objects are the default templates; one that is empty in the configuration is none.
func Objects(o Options) ([]*unstructured.Unstructured, error) {
	version := networkingv1beta1.GroupVersion.String()
	var objects []*unstructured.Unstructured
	for _, of := range []struct {
		name, kind string
		content    runtime.RawExtension
	}{
		{networkingv1beta1.ServerTemplate, "WgGatewayServer", o.Templates.Server}, {networkingv1beta1.ClientTemplate, "WgGatewayClient", o.Templates.Client},
	} {
		if len(of.content.Raw) == 0 {
			continue
		}
		var content map[string]any
		if err := json.Unmarshal(of.content.Raw, &content); err != nil {
			return nil, fmt.Errorf("reading the template %s of the configuration: %w", of.name, err)
		}
		object := &unstructured.Unstructured{Object: map[string]any{
			"spec": map[string]any{"objectKind": map[string]any{"apiVersion": version, "kind": of.kind}, "template": content},
		}}
		object.SetAPIVersion(version)
		object.SetKind(of.kind + "Template")
		object.SetName(of.name)
		object.SetNamespace(o.Namespace)
		object.SetLabels(o.Labels)
		objects = append(objects, object)
	}
	return objects, nil
}

// ensure writes the templates unless they are there already as wanted.
func ensure(ctx context.Context, reader client.Reader, writer client.Client, o Options) error {
	objects, err := Objects(o)
	if err != nil || len(objects) == 0 {
		return err
	}
	var deployment appsv1.Deployment
	if err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Deployment}, &deployment); err != nil {
		return fmt.Errorf("getting Deployment %s/%s, which owns the templates of gateways: %w", o.Namespace, o.Deployment, err)
	}
	owner := metav1.NewControllerRef(&deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))
	// Only the controller blocks its deletion: setting finalizers on the Deployment is not ours to do.
	owner.BlockOwnerDeletion = nil
	keeper := keep.Keeper{Client: writer, Reader: reader}
	for _, want := range objects {
		want.SetOwnerReferences([]metav1.OwnerReference{*owner})
		if _, err := keeper.Keep(ctx, keep.Wanted{Object: want, Ours: keep.Whoever}); err != nil {
			return err
		}
	}
	return nil
}
