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
	"liqo.io/liqo/pkg/cli/target"
)

const tenant = "liqo-tenant-milan"

// rolledOut is a Deployment of one pod in the tenant namespace, and that pod, which waits for a reason unless that is empty.
func rolledOut(name string, labels map[string]string, image, waits string) (*appsv1.Deployment, *corev1.Pod) {
	spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name + "-1", Labels: labels}, Spec: spec}
	if waits != "" {
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main",
			State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waits, Message: "back-off"}}}}
	}
	return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name},
		Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec}}}, pod
}

// waits waits for an installation, and compares what comes of it.
func waits(t *testing.T, cluster *target.Cluster, code failure.Code, want []string) {
	t.Helper()
	timeout := 20 * time.Second
	if code == failure.Timeout {
		timeout = 10 * time.Second
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	err := install.Wait(ctx, cluster, nil)
	if (err == nil) != (code == 0) || err != nil && failure.CodeOf(err) != code {
		t.Fatalf("got %v", err)
	}
	for _, text := range want {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("%q does not say %q", err, text)
		}
	}
}

// An installation has not succeeded while a virtual kubelet cannot have its image, or still runs the one before.
func TestVirtualKubeletsAreWaitedFor(t *testing.T) {
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
			deployment, pod := rolledOut("milan", labels, test.image, test.reason)
			deployment.Status = appsv1.DeploymentStatus{Replicas: 1, UpdatedReplicas: 1, AvailableReplicas: test.available}
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: []client.Object{
				&offloadingv1beta1.VkOptionsTemplate{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo", Name: offloadingv1beta1.DefaultVkOptionsTemplate},
					Spec: offloadingv1beta1.VkOptionsTemplateSpec{ContainerImage: "vk:new"}},
				&offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "milan"}},
				deployment, pod,
			}}).Cluster
			waits(t, cluster, test.code, test.want)
		})
	}
}

// Nor has it while a gateway to a peer cannot have its image: the earlier one has the tunnel meanwhile.
func TestGatewaysAreWaitedFor(t *testing.T) {
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
			deployment, pod := rolledOut("gw-milan", labels, test.image, test.reason)
			// Those of before are available while the next one is not.
			deployment.Status = appsv1.DeploymentStatus{Replicas: test.replicas, UpdatedReplicas: 1, AvailableReplicas: 1}
			gateway := &networkingv1beta1.GatewayServer{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: "milan"}}
			gateway.Spec.ServerTemplateRef.Name = test.template
			objects := []client.Object{gateway, pod, deployment}
			installed := fixture.Installed("rome", "", true)
			for _, object := range installed {
				if config, ok := object.(*corev1.ConfigMap); ok && config.Data["config.yaml"] != "" {
					config.Data["config.yaml"] = `networking: {enabled: true, gatewayTemplates: {server: {spec: {deployment: {spec: {template: {spec: {containers: [{image: "gw:new"}]}}}}}}}}`
				}
			}
			cluster := fixture.New(t, fixture.Options{Name: "rome", Objects: append(objects, installed...)}).Cluster
			waits(t, cluster, test.code, test.want)
		})
	}
}
