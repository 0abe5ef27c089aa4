package outages

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// metricsAPI is a metrics API whose figures the test writes.
var metricsAPI = &apiextensionsv1.CustomResourceDefinition{
	ObjectMeta: metav1.ObjectMeta{
		Name: "pods.metrics.k8s.io", Annotations: map[string]string{apiextensionsv1.KubeAPIApprovedAnnotation: "unapproved, a test's"},
	},
	Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "metrics.k8s.io", Scope: apiextensionsv1.NamespaceScoped,
		Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "pods", Kind: "PodMetrics", ListKind: "PodMetricsList"},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
			Name: "v1beta1", Served: true, Storage: true,
			Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
				Type: "object", XPreserveUnknownFields: ptr.To(true),
			}},
		}},
	},
}

// What pods of the virtual node use is read from the provider's metrics API with the rights of the virtual kubelet, when somebody asks who
// may, and said to be missing where there is none.
func TestWhatPodsUseIsRead(t *testing.T) {
	w := env.Peered(t)
	namespace := env.Offloaded(t)
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), world.Pod(namespace, "one")))
	world.AwaitPods(t, env.Rome, namespace, 1)
	page, token := w.Kubelet.Endpoint()+"/metrics/resource", env.TokenOf(t, "system:kubelet-api-admin")
	answers := func(what string, good func(status int, body string) bool) {
		t.Helper()
		// It is read once in 10 s.
		fixture.Await(t, fixture.Patience+10*time.Second, "/metrics/resource to show "+what, func(ctx context.Context) (bool, string) {
			status, body, err := world.Scrape(ctx, page, token)
			return err == nil && good(status, body), fmt.Sprint(status, body, err)
		})
	}
	answers("that there is no metrics API", func(status int, body string) bool {
		return status == http.StatusBadGateway && strings.Contains(body, "it serves no metrics API (metrics.k8s.io)")
	})
	if status, body, err := world.Scrape(t.Context(), page, env.TokenOf(t, "")); err != nil || status != http.StatusForbidden {
		t.Errorf("who may not read the node's metrics is answered %d %s, error %v", status, body, err)
	}

	definition := metricsAPI.DeepCopy()
	fixture.Must(t, "making a metrics API", env.Milan.Client.Create(t.Context(), definition))
	t.Cleanup(func() { _ = env.Milan.Client.Delete(context.WithoutCancel(t.Context()), metricsAPI.DeepCopy()) })
	used := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "metrics.k8s.io/v1beta1", "kind": "PodMetrics",
		"metadata":  map[string]any{"namespace": namespace, "name": "one"},
		"timestamp": metav1.Now().UTC().Format(time.RFC3339), "window": "15s",
		"containers": []any{map[string]any{"name": "a", "usage": map[string]any{"cpu": "250m", "memory": "48Mi"}}},
	}}
	fixture.Await(t, fixture.Patience, "figures to be taken", func(ctx context.Context) (bool, string) {
		err := client.IgnoreAlreadyExists(env.Milan.Client.Create(ctx, used.DeepCopy()))
		return err == nil, fmt.Sprint(err)
	})
	series := fmt.Sprintf(`container_memory_working_set_bytes{container="a",namespace=%q,pod="one"} 5.0331648e+07 `, namespace)
	answers("what the container uses", func(status int, body string) bool { return status == http.StatusOK && strings.Contains(body, series) })
	env.Settled(t)
	start := env.Rome.Recorder.Now(t)
	answers("the same again", func(status int, body string) bool { return status == http.StatusOK && strings.Contains(body, series) })
	for _, write := range env.Rome.Recorder.Since(t, start, fixture.OfLiqo) {
		if write.Resource == "pods" || write.Resource == "nodes" {
			t.Errorf("reading made a write: %+v", write)
		}
	}

	fixture.Must(t, "taking the metrics API away", env.Milan.Client.Delete(t.Context(), metricsAPI.DeepCopy()))
	answers("that the figures are old", func(status int, body string) bool {
		return status == http.StatusOK && strings.Contains(body, series) && strings.Contains(body, "\nresource_scrape_error 1\n")
	})
	one := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "one"}}
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), one))
	answers("nothing of a pod that is gone", func(_ int, body string) bool { return !strings.Contains(body, namespace) })
}
