package vkoptions

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

func configuration(image string, metrics bool) *v1alpha1.ControllerManager {
	c := &v1alpha1.ControllerManager{}
	c.VirtualKubelet.Image, c.VirtualKubelet.Replicas, c.VirtualKubelet.PullPolicy = image, 2, corev1.PullIfNotPresent
	c.VirtualKubelet.Metrics.Port, c.Metrics.Enabled = 5872, metrics
	c.Offloading.CreateNode = true
	c.Offloading.Reflection.Secret = offloadingv1beta1.ReflectorConfig{NumWorkers: 3, Type: offloadingv1beta1.AllowList}
	c.Offloading.Reflection.Ingress.StatusBack = true
	c.Offloading.Reflection.Skip.Labels, c.Offloading.Reflection.Skip.Annotations = []string{"team"}, []string{"note"}
	return c
}

func TestTemplate(t *testing.T) {
	for name, tc := range map[string]struct {
		metrics bool
		address string
	}{
		"metrics are served on the configured port": {true, ":5872"},
		"without metrics there is no address":       {false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := Template(configuration("vk:1", tc.metrics), "liqo").Spec
			got := []any{spec.ContainerImage, *spec.Replicas, spec.CreateNode, spec.MetricsAddress, spec.ReflectorsConfig["secret"].Type, spec.ReflectorsConfig["ingress"].StatusBack,
				spec.LabelsNotReflected, spec.AnnotationsNotReflected}
			want := []any{"vk:1", int32(2), true, tc.address, offloadingv1beta1.AllowList, true, []string{"team"}, []string{"note"}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheUsersArgumentsWin(t *testing.T) {
	for name, tc := range map[string]struct{ args, want []string }{
		"nothing said":        {nil, []string{"--enable-apiserver-support=true", "--service-account-token-max-lifetime=10m0s"}},
		"support turned off":  {[]string{"--enable-apiserver-support=false"}, []string{"--service-account-token-max-lifetime=10m0s", "--enable-apiserver-support=false"}},
		"support named alone": {[]string{"--enable-apiserver-support"}, []string{"--service-account-token-max-lifetime=10m0s", "--enable-apiserver-support"}},
		"something else": {[]string{"--home-api-server-host=api"},
			[]string{"--enable-apiserver-support=true", "--service-account-token-max-lifetime=10m0s", "--home-api-server-host=api"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := configuration("vk:1", false)
			c.VirtualKubelet.Extra.Args = tc.args
			c.Offloading.ServiceAccountTokens.MaxLifetime = &metav1.Duration{Duration: 10 * time.Minute}
			if diff := cmp.Diff(tc.want, Template(c, "liqo").Spec.ExtraArgs); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Virtual kubelets look at Configurations only where there may be some.
func TestTheNetworkIsOffUnlessItIsOn(t *testing.T) {
	for _, enabled := range []bool{false, true} {
		c := configuration("vk:1", false)
		c.Networking.Enabled = enabled
		if got := slices.Contains(Template(c, "liqo").Spec.ExtraArgs, "--networking=true"); got != enabled {
			t.Errorf("with networking.enabled=%v the argument is there: %v", enabled, got)
		}
	}
}

func TestEnsureWritesOnlyWhatDiffers(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	writes := 0
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: "liqo", UID: "u1"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(deployment).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
			writes++
			return c.Create(ctx, o, opts...)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.UpdateOption) error {
			writes++
			return c.Update(ctx, o, opts...)
		},
	}).Build()
	for _, step := range []struct {
		image  string
		writes int
	}{{"vk:1", 1}, {"vk:1", 1}, {"vk:2", 2}, {"vk:2", 2}} {
		o := Options{Config: configuration(step.image, false), Namespace: "liqo", Deployment: "manager"}
		if err := ensure(t.Context(), c, c, o); err != nil {
			t.Fatal(err)
		}
		live := &offloadingv1beta1.VkOptionsTemplate{}
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: "liqo", Name: offloadingv1beta1.DefaultVkOptionsTemplate}, live); err != nil {
			t.Fatal(err)
		}
		if live.Spec.ContainerImage != step.image || writes != step.writes || live.OwnerReferences[0].UID != "u1" {
			t.Errorf("with image %s: live image %s, owners %v, %d writes, want %d", step.image, live.Spec.ContainerImage, live.OwnerReferences, writes, step.writes)
		}
	}
	if err := ensure(t.Context(), c, c, Options{Config: configuration("vk", false), Namespace: "liqo", Deployment: "other"}); err == nil {
		t.Error("a missing owner is no error")
	}
}
