package greed

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// madeOf waits until a ShadowPod has its Pod, or is refused for good; nil if it is.
func madeOf(t *testing.T, shadow *offloadingv1beta1.ShadowPod) *corev1.Pod {
	t.Helper()
	pod, why := &corev1.Pod{}, ""
	fixture.Await(t, fixture.Patience, "the Pod of "+shadow.Name+", or a refusal", func(ctx context.Context) (bool, string) {
		if err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(shadow), pod); err == nil {
			why = ""
			return true, ""
		}
		live := &offloadingv1beta1.ShadowPod{}
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(shadow), live)
		for _, c := range live.Status.Conditions {
			if c.Reason == offloadingv1beta1.ReasonForeignReference || c.Reason == offloadingv1beta1.ReasonPodRefused {
				why = c.Reason + ": " + c.Message
				return true, ""
			}
		}
		return false, fmt.Sprint(live.Status, err)
	})
	if why != "" {
		t.Logf("%s: refused: %s", shadow.Name, why)
		return nil
	}
	return pod
}

// T9: "a pod uses only what its consumer brought, to pull images too". A provider that gives the default account of its namespaces the
// credentials of its registry, as OpenShift and many others do, does not give them to the consumers' pods.
func TestPodsPullWithNoCredentialsOfTheProvider(t *testing.T) {
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "10", "pods", "100"))
	namespace := c.Twin(t)
	env.Milan.AwaitServiceAccount(t, namespace)
	fixture.Must(t, "preparing the provider", env.Milan.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "providers-registry"},
		Type: corev1.SecretTypeDockerConfigJson, StringData: map[string]string{corev1.DockerConfigJsonKey: "{}"}}))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"imagePullSecrets":[{"name":"providers-registry"}]}`))
	fixture.Must(t, "preparing the provider", env.Milan.Client.Patch(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "default"}}, patch))
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	named := c.Shadow(namespace, "named", world.Container(func(*corev1.Container) {}))
	named.Spec.Pod.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "providers-registry"}}
	fixture.Must(t, "creating a ShadowPod", user.Create(t.Context(), named))
	if pod := madeOf(t, named); pod != nil {
		t.Fatalf("control: by its name the Secret can be used: %v", pod.Spec.ImagePullSecrets)
	}
	// API servers look the account up in a cache.
	fixture.Await(t, fixture.Patience, "the account to be known", func(ctx context.Context) (bool, string) {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
		err := env.Milan.Client.Create(ctx, probe, client.DryRunAll)
		return err == nil && len(probe.Spec.ImagePullSecrets) > 0, fmt.Sprint(err)
	})
	unnamed := c.Shadow(namespace, "unnamed", world.Container(func(one *corev1.Container) { one.Image = "registry.of.the.provider/payroll:1" }))
	fixture.Must(t, "creating a ShadowPod", user.Create(t.Context(), unnamed))
	if pod := madeOf(t, unnamed); pod != nil && len(pod.Spec.ImagePullSecrets) > 0 && pod.Spec.ImagePullSecrets[0].Name == "providers-registry" {
		t.Errorf("a consumer's pod that names no Secret pulls %s with the provider's Secret %s", pod.Spec.Containers[0].Image, pod.Spec.ImagePullSecrets[0].Name)
	}
}

// injected has the provider's admission put a volume with a Secret and a sidecar that mounts it into each pod of a namespace.
func injected(t *testing.T, namespace string) {
	t.Helper()
	fixture.Must(t, "preparing the provider", env.Milan.Client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "vault"},
		StringData: map[string]string{"password": "of the provider"}}))
	name := fixture.Unique("injector")
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
		ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy, FailurePolicy: ptr.To(admissionregistrationv1.Fail),
		MatchConstraints: &admissionregistrationv1.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}}}}},
		},
		Mutations: []admissionregistrationv1.Mutation{{PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{
			Expression: `(has(object.spec.volumes) ? [] : [JSONPatch{op: "add", path: "/spec/volumes", value: []}]) + [
				JSONPatch{op: "add", path: "/spec/volumes/-", value: {"name": dyn("vault-secrets"), "secret": dyn({"secretName": "vault"})}},
				JSONPatch{op: "add", path: "/spec/containers/-", value: {"name": dyn("sidecar"), "image": dyn("c"),
					"volumeMounts": dyn([{"name": "vault-secrets", "mountPath": "/vault"}])}}]`}}},
	}}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name}}
	for _, o := range []client.Object{policy, binding} {
		fixture.Must(t, "the provider's injector", env.Milan.Client.Create(t.Context(), o))
		t.Cleanup(func() { _ = env.Milan.Client.Delete(context.WithoutCancel(t.Context()), o) })
	}
	fixture.Await(t, fixture.Patience, "the injector to work", func(ctx context.Context) (bool, string) {
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
		err := env.Milan.Client.Create(ctx, probe, client.DryRunAll)
		return err == nil && len(probe.Spec.Containers) == 2, fmt.Sprint(err)
	})
}

// T10: what the provider's admission puts into pods (sidecars with their tokens, certificates, the secrets of a vault) is not the consumer's:
// a container of its does not mount a volume that its pod does not have, nor reads what another one has by its processes.
func TestPodsMountNothingThatAdmissionPutsIn(t *testing.T) {
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "10", "pods", "100"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	injected(t, namespace)
	thief := c.Shadow(namespace, "thief", world.Container(func(one *corev1.Container) {
		one.VolumeMounts = []corev1.VolumeMount{{Name: "vault-secrets", MountPath: "/stolen"}}
	}))
	if err := user.Create(t.Context(), thief); err != nil {
		t.Logf("refused: %v", err)
	} else if pod := madeOf(t, thief); pod != nil {
		t.Errorf("container %s of the consumer mounts volume %s (Secret vault), which the provider's admission put in for a container of its own: %v",
			pod.Spec.Containers[0].Name, pod.Spec.Containers[0].VolumeMounts[0].Name, pod.Spec.Volumes)
	}
	peeper := c.Shadow(namespace, "peeper", world.Container(func(*corev1.Container) {}))
	peeper.Spec.Pod.ShareProcessNamespace = ptr.To(true)
	fixture.Must(t, "creating a ShadowPod", user.Create(t.Context(), peeper))
	fixture.Await(t, fixture.Patience, "the provider to refuse what would see its sidecar's processes", func(ctx context.Context) (bool, string) {
		live := &offloadingv1beta1.ShadowPod{}
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(peeper), live)
		if err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(peeper), &corev1.Pod{}); err == nil {
			t.Fatal("containers of the consumer see the processes, and so the files, of the provider's sidecar")
		}
		said := fmt.Sprint(live.Status.Conditions, err)
		return strings.Contains(said, "PodNotAllowed"), said
	})
}

// T25: a consumer opens streams into the containers that it brought, those for debugging among them, and into no sidecar that the provider put beside
// them, nor what its administrator debugs with.
func TestNoStreamsIntoTheProvidersSidecars(t *testing.T) {
	c := env.NewTenant(t)
	c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "10", "pods", "100"))
	namespace := c.Twin(t)
	user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
	injected(t, namespace)
	shadow := c.Shadow(namespace, "web", world.Container(func(*corev1.Container) {}))
	fixture.Must(t, "creating a ShadowPod", user.Create(t.Context(), shadow))
	pod := madeOf(t, shadow)
	if pod == nil || len(pod.Spec.Containers) != 2 {
		t.Fatal("there is no sidecar")
	}
	into := func(container string) error {
		return user.Kube.CoreV1().RESTClient().Post().Namespace(namespace).Resource("pods").Name("web").SubResource("exec").
			Param("container", container).Param("command", "id").Param("stdout", "true").Do(t.Context()).Error()
	}
	fixture.Await(t, fixture.Patience, "the pod to be on a node", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		own := into("a")
		return err == nil && pod.Spec.NodeName != "" && own != nil && !apierrors.IsForbidden(own), fmt.Sprint(err, own)
	})
	// Nothing runs on simulated nodes, so the stream itself cannot open; it must be admission that says no.
	if err := into("sidecar"); err == nil || !apierrors.IsForbidden(err) {
		t.Errorf("kubectl exec -c sidecar of the consumer is not refused: %v", err)
	}
	fixture.Must(t, "debugging as the provider", env.Milan.Client.SubResource("ephemeralcontainers").Patch(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}},
		client.RawPatch(types.StrategicMergePatchType, []byte(`{"spec":{"ephemeralContainers":[{"name":"theirs","image":"c"}]}}`))))
	patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"pod":{"ephemeralContainers":[{"name":"own","image":"c"},{"name":"theirs","image":"c"}]}}}`))
	fixture.Must(t, "debugging as the consumer", user.Patch(t.Context(), shadow, patch))
	fixture.Await(t, fixture.Patience, "the consumer to enter what it debugs with", func(context.Context) (bool, string) {
		own := into("own")
		return own != nil && !apierrors.IsForbidden(own), fmt.Sprint(own)
	})
	if err := into("theirs"); err == nil || !apierrors.IsForbidden(err) {
		t.Errorf("kubectl exec of the consumer into what the provider debugs with is not refused: %v", err)
	}
}
