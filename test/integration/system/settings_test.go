package system

import (
	"context"
	"fmt"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
)

// Every knob of reflection changes while the virtual kubelet runs, and no pod is touched by it.
func TestSettingsChangeAtRunTime(t *testing.T) {
	peered(t)
	namespace := offloaded(t)
	named := func(name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"stays": "here", "travels": "far"}}
	}
	for _, o := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: named("used"), Data: map[string]string{"a": "b"}},
		&corev1.ConfigMap{ObjectMeta: named("unused"), Data: map[string]string{"a": "b"}},
	} {
		fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(), o))
	}
	user := pod(namespace, "user")
	user.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "used"}}}}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), user))
	before := awaitPods(t, env.Milan, namespace, 1)

	template := &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: fixture.Namespace, Name: offloadingv1beta1.DefaultVkOptionsTemplate}}
	fixture.Must(t, "reading the VkOptionsTemplate", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(template), template))
	original := template.DeepCopy().Spec
	set := func(change func(*offloadingv1beta1.VkOptionsTemplateSpec)) {
		t.Helper()
		old := template.DeepCopy()
		template.Spec = *original.DeepCopy()
		change(&template.Spec)
		fixture.Must(t, "changing the VkOptionsTemplate", env.Rome.Client.Patch(context.WithoutCancel(t.Context()), template, client.MergeFrom(old)))
	}
	t.Cleanup(func() { set(func(*offloadingv1beta1.VkOptionsTemplateSpec) {}) })
	configMaps := func(workers int32, policy offloadingv1beta1.ReflectionType) func(*offloadingv1beta1.VkOptionsTemplateSpec) {
		return func(s *offloadingv1beta1.VkOptionsTemplateSpec) {
			s.ReflectorsConfig = maps.Clone(s.ReflectorsConfig)
			s.ReflectorsConfig["configmap"] = offloadingv1beta1.ReflectorConfig{NumWorkers: workers, Type: policy}
		}
	}
	there := func(what string, want map[string]bool) {
		t.Helper()
		fixture.Await(t, fixture.Patience, what, func(ctx context.Context) (bool, string) {
			seen := map[string]bool{}
			for name := range want {
				err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{})
				if client.IgnoreNotFound(err) != nil {
					return false, err.Error()
				}
				seen[name] = !apierrors.IsNotFound(err)
			}
			return maps.Equal(seen, want), fmt.Sprint(seen)
		})
	}
	there("everything crosses with DenyList", map[string]bool{"used": true, "unused": true})
	set(configMaps(3, offloadingv1beta1.Referenced))
	there("only what the pod uses stays with Referenced", map[string]bool{"used": true, "unused": false})
	set(configMaps(3, offloadingv1beta1.AllowList))
	there("nothing stays with AllowList", map[string]bool{"used": false, "unused": false})
	set(configMaps(0, offloadingv1beta1.DenyList))
	fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: named("late")}))
	set(func(s *offloadingv1beta1.VkOptionsTemplateSpec) {
		configMaps(3, offloadingv1beta1.DenyList)(s)
		s.LabelsNotReflected = []string{"stays"}
	})
	there("everything crosses again", map[string]bool{"used": true, "unused": true, "late": true})
	fixture.Await(t, fixture.Patience, "the label to stay at home", func(ctx context.Context) (bool, string) {
		live := &corev1.ConfigMap{}
		err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "used"}, live)
		_, stays := live.Labels["stays"]
		return err == nil && !stays && live.Labels["travels"] == "far", fmt.Sprint(live.Labels, err)
	})
	if after := awaitPods(t, env.Milan, namespace, 1); !maps.Equal(before, after) {
		t.Error("a pod was replaced")
	}
}
