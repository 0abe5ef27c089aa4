package install_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/install"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
)

// An installation has not succeeded while a virtual kubelet cannot have its image, or still runs the one before.
func TestVirtualKubeletsAreWaitedFor(t *testing.T) {
	const tenant = "liqo-tenant-milan"
	labels := map[string]string{offloadingv1beta1.VirtualNodeLabel: "milan"}
	for sentence, test := range map[string]struct {
		image, reason string
		// available of the one pod that is wanted, updated.
		available int32
		code      failure.Code
		want      []string
	}{
		"it runs":                          {"vk:new", "", 1, 0, nil},
		"its image is not named well":      {"vk:new", "InvalidImageName", 0, failure.Failed, []string{"virtual kubelet liqo-tenant-milan/milan cannot be started", `image "vk:new" of pod milan-1 cannot be had: InvalidImageName`}},
		"its image cannot be pulled":       {"vk:new", "ImagePullBackOff", 0, failure.Timeout, []string{"timed out waiting for the virtual kubelets", `image "vk:new" of pod milan-1 cannot be had: ImagePullBackOff: back-off`}},
		"it was not told of the new image": {"vk:old", "", 1, failure.Timeout, []string{"the controller manager has not given it image vk:new yet"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "virtual-kubelet", Image: test.image}}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "milan-1", Labels: labels}, Spec: spec}
			if test.reason != "" {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "virtual-kubelet",
					State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: test.reason, Message: "back-off"}}}}
			}
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: []client.Object{
				&offloadingv1beta1.VkOptionsTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: offloadingv1beta1.DefaultVkOptionsTemplate},
					Spec: offloadingv1beta1.VkOptionsTemplateSpec{ContainerImage: "vk:new"}},
				&offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "milan"}},
				&appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "milan"},
					Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
						Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}},
					Status: appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: test.available}},
				pod,
			}}).Cluster
			timeout := 20 * time.Second
			if test.code == failure.Timeout {
				timeout = 10 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			err := install.Wait(ctx, cluster, nil)
			if (err == nil) != (test.code == 0) || err != nil && failure.CodeOf(err) != test.code {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}

// Nor has it while a gateway to a peer cannot have its image: the earlier one has the tunnel meanwhile.
func TestGatewaysAreWaitedFor(t *testing.T) {
	const tenant = "liqo-tenant-milan"
	labels := map[string]string{networkingv1beta1.GatewayNameLabel: "milan"}
	for sentence, test := range map[string]struct {
		image, reason, template string
		// replicas of the one pod that is wanted, updated and available.
		replicas int32
		code     failure.Code
		want     []string
	}{
		"it runs":                      {"gw:new", "", "", 1, 0, nil},
		"it has a template of its own": {"gw:mine", "", "mine", 1, 0, nil},
		"its image is not named well": {"gw:new", "InvalidImageName", "", 2, failure.Failed, []string{"the gateway liqo-tenant-milan/milan cannot be started",
			`image "gw:new" of pod gw-milan-1 cannot be had: InvalidImageName`, "the earlier gateway works meanwhile", "networking.gatewayTemplates.container.gateway.image"}},
		"its image cannot be pulled":       {"gw:new", "ImagePullBackOff", "", 2, failure.Timeout, []string{"timed out waiting for the gateways", `image "gw:new" of pod gw-milan-1`}},
		"it was not told of the new image": {"gw:old", "", "", 1, failure.Timeout, []string{"gateway liqo-tenant-milan/milan: the controller manager has not given it image gw:new yet"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "gateway", Image: test.image}}}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "gw-milan-1", Labels: labels}, Spec: spec}
			if test.reason != "" {
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "gateway",
					State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: test.reason, Message: "back-off"}}}}
			}
			gateway := &networkingv1beta1.GatewayServer{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "milan"}}
			gateway.Spec.ServerTemplateRef.Name = test.template
			objects := []client.Object{gateway, pod, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "gw-milan"},
				Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
					Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}},
				// Those of before are available while the next one is not.
				Status: appsv1.DeploymentStatus{Replicas: test.replicas, UpdatedReplicas: 1, AvailableReplicas: 1}}}
			installed := fixture.Installed("rome", "", true)
			for _, object := range installed {
				if config, ok := object.(*corev1.ConfigMap); ok && config.Data["config.yaml"] != "" {
					config.Data["config.yaml"] = `networking: {enabled: true, gatewayTemplates: {server: {spec: {deployment: {spec: {template: {spec: {containers: [{image: "gw:new"}]}}}}}}}}`
				}
			}
			cluster := fixture.New(t, fixture.Options{Name: "rome", Objects: append(objects, installed...)}).Cluster
			timeout := 20 * time.Second
			if test.code == failure.Timeout {
				timeout = 10 * time.Second
			}
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			err := install.Wait(ctx, cluster, nil)
			if (err == nil) != (test.code == 0) || err != nil && failure.CodeOf(err) != test.code {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q does not say %q", err, want)
				}
			}
		})
	}
}
