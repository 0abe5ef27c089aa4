// Package vkoptions keeps the default VkOptionsTemplate, by which virtual kubelets are run unless their VirtualNode names
// another one, in step with the configuration. The template belongs to the controller manager's Deployment, so it goes
// with the release.
package vkoptions

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
	"liqo.io/liqo/pkg/kube/keep"
)

// Options is what the default template is made from.
type Options struct {
	// Config of the controller manager.
	Config *v1alpha1.ControllerManager
	// Namespace of Liqo.
	Namespace string
	// Deployment of the controller manager, in Namespace; it owns the template.
	Deployment string
}

// Register makes the manager write the template once it leads.
func Register(mgr ctrl.Manager, o Options) error {
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		return ensure(ctx, mgr.GetAPIReader(), mgr.GetClient(), o)
	}))
}

// Template is the default VkOptionsTemplate of a configuration.
func Template(c *v1alpha1.ControllerManager, namespace string) *offloadingv1beta1.VkOptionsTemplate {
	vk := c.VirtualKubelet
	args := withDefaults(vk.Extra.Args, c.Offloading)
	if reflect := c.Networking.ReflectIPs; reflect != nil && !*reflect {
		args = append([]string{"--disable-ip-reflection=true"}, args...)
	}
	if c.Networking.Enabled {
		args = append([]string{"--networking=true"}, args...)
	}
	spec := offloadingv1beta1.VkOptionsTemplateSpec{
		CreateNode:              c.Offloading.CreateNode,
		DisableNetworkCheck:     c.Offloading.DisableNetworkCheck,
		ContainerImage:          vk.Image,
		MetricsEnabled:          c.Metrics.Enabled,
		LabelsNotReflected:      c.Offloading.Reflection.Skip.Labels,
		AnnotationsNotReflected: c.Offloading.Reflection.Skip.Annotations,
		ReflectorsConfig: map[string]offloadingv1beta1.ReflectorConfig{
			"pod":            c.Offloading.Reflection.Pod,
			"configmap":      c.Offloading.Reflection.ConfigMap,
			"secret":         c.Offloading.Reflection.Secret,
			"service":        c.Offloading.Reflection.Service.ReflectorConfig,
			"ingress":        c.Offloading.Reflection.Ingress.ReflectorConfig,
			"networkpolicy":  c.Offloading.Reflection.NetworkPolicy,
			"endpointslice":  c.Offloading.Reflection.EndpointSlice,
			"serviceaccount": c.Offloading.Reflection.ServiceAccount,
			"event":          c.Offloading.Reflection.Event,

			"persistentvolumeclaim": c.Offloading.Reflection.PersistentVolumeClaim,
		},
		Resources:            vk.Extra.Resources,
		ExtraArgs:            args,
		ExtraAnnotations:     vk.Extra.Annotations,
		ExtraLabels:          vk.Extra.Labels,
		NodeExtraAnnotations: vk.VirtualNode.Extra.Annotations,
		NodeExtraLabels:      vk.VirtualNode.Extra.Labels,
		Replicas:             &vk.Replicas,
		ImagePullSecrets:     vk.ImagePullSecrets,
		PullPolicy:           vk.PullPolicy,
		Tolerations:          vk.Extra.Tolerations,
		PriorityClassName:    vk.Extra.PriorityClassName,
	}
	if !c.Storage.Enabled {
		spec.ReflectorsConfig["persistentvolumeclaim"] = offloadingv1beta1.ReflectorConfig{}
	}
	if c.Metrics.Enabled {
		spec.MetricsAddress = net.JoinHostPort("", strconv.Itoa(vk.Metrics.Port))
	}
	return &offloadingv1beta1.VkOptionsTemplate{
		ObjectMeta: metav1.ObjectMeta{
			Name: offloadingv1beta1.DefaultVkOptionsTemplate, Namespace: namespace, Labels: c.Common.GlobalLabels,
		},
		Spec: spec,
	}
}

// withDefaults puts what the configuration says about offloading before the user's arguments, which win.
func withDefaults(args []string, o v1alpha1.Offloading) []string {
	type flag struct{ name, value string }
	defaults := []flag{{"--enable-apiserver-support", "true"}}
	if lifetime := o.ServiceAccountTokens.MaxLifetime; lifetime != nil {
		defaults = append(defaults, flag{"--service-account-token-max-lifetime", lifetime.Duration.String()})
	}
	if share := o.Reflection.MaxRemovals; share != nil {
		defaults = append(defaults, flag{"--max-removals", strconv.Itoa(*share)})
	}
	var all []string
	for _, flag := range defaults {
		if !slices.ContainsFunc(args, func(arg string) bool { return arg == flag.name || strings.HasPrefix(arg, flag.name+"=") }) {
			all = append(all, flag.name+"="+flag.value)
		}
	}
	return append(all, args...)
}

// ensure writes the template unless it is there already as wanted.
func ensure(ctx context.Context, reader client.Reader, writer client.Client, o Options) error {
	var deployment appsv1.Deployment
	if err := reader.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: o.Deployment}, &deployment); err != nil {
		return fmt.Errorf("getting Deployment %s/%s, which owns the default VkOptionsTemplate: %w", o.Namespace, o.Deployment, err)
	}
	want := Template(o.Config, o.Namespace)
	want.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&deployment, appsv1.SchemeGroupVersion.WithKind("Deployment"))}
	// Only the controller blocks its deletion: setting finalizers on the Deployment is not ours to do.
	want.OwnerReferences[0].BlockOwnerDeletion = nil
	_, err := keep.Keeper{Client: writer, Reader: reader}.Keep(ctx, keep.Wanted{Object: want, Ours: keep.Whoever})
	return err
}
