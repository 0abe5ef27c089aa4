package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// applies applies an example of the documentation to a namespace, as a reader would.
func (c *side) applies(t *testing.T, namespace, example string) {
	t.Helper()
	file := filepath.Join(root, "docs", "examples", filepath.FromSlash(example))
	the.kubectl(t, c, soon, "apply", "-n", namespace, "-f", file).succeeds(t)
}

// TestExamples shows that the manifests of the documentation do what their page says, as far as no other test applies them.
func TestExamples(t *testing.T) {
	the.shared(t)
	t.Run("reflection", func(t *testing.T) { the.recordFailure(t); reflectionExamples(t) })
	t.Run("pods", func(t *testing.T) { the.recordFailure(t); podExamples(t) })
	t.Run("storage", func(t *testing.T) { the.recordFailure(t); storageExamples(t) })
}

// TestRuntimeClassExample shows it for a pod that asks for a virtual node. It may be any, so the test runs while there is one only.
func TestRuntimeClassExample(t *testing.T) {
	the.alone(t)
	const namespace = "example-runtimeclass"
	offloadedByExample(t, namespace)
	the.rome.applies(t, namespace, "pods/runtimeclass.yaml")
	if pods := the.rome.ready(t, namespace, "hello", 1); pods[0].Spec.NodeName != virtualNode {
		t.Errorf("a pod of RuntimeClass liqo runs on %s", pods[0].Spec.NodeName)
	}
}

func reflectionExamples(t *testing.T) {
	const namespace = "example-reflection"
	twin := the.offloaded(t, namespace)
	// What stays at home goes first: once the rest has crossed, it would have, too.
	the.rome.applies(t, namespace, "reflection/skip.yaml")
	the.rome.applies(t, namespace, "reflection/shop.yaml")
	the.rome.applies(t, namespace, "reflection/allow.yaml")
	the.rome.applies(t, namespace, "reflection/nodeport.yaml")
	settings := &corev1.ConfigMap{ObjectMeta: named(twin, "settings")}
	the.milan.holds(t, settings, func() string { return settings.Data["greeting"] }, "welcome")
	password := &corev1.Secret{ObjectMeta: named(twin, "password")}
	the.milan.holds(t, password, func() string { return string(password.Data["word"]) }, "sesame")
	front := &corev1.Service{ObjectMeta: named(namespace, "front")}
	the.rome.reads(t, front)
	remoteFront := &corev1.Service{ObjectMeta: named(twin, "front")}
	the.milan.sees(t, remoteFront, "the Service")
	if remoteFront.Spec.ClusterIP == "" || remoteFront.Spec.ClusterIP == front.Spec.ClusterIP {
		t.Errorf("the Service has address %q at the provider and %q at home; each cluster gives its own", remoteFront.Spec.ClusterIP, front.Spec.ClusterIP)
	}
	ingress := &networkingv1.Ingress{ObjectMeta: named(twin, "front")}
	the.milan.holds(t, ingress, func() string { return ingress.Spec.Rules[0].Host }, "shop.example.com")
	entrance := &corev1.Service{ObjectMeta: named(twin, "entrance")}
	the.milan.holds(t, entrance, func() string { return fmt.Sprint(entrance.Spec.Ports[0].NodePort) }, "30808")
	catalogue := &corev1.ConfigMap{ObjectMeta: named(twin, "catalogue")}
	the.milan.holds(t, catalogue, func() string { return catalogue.Data["book"] }, "The Betrothed")
	if ok, seen := the.milan.gone(&corev1.ConfigMap{ObjectMeta: named(twin, "notes")})(t.Context()); !ok {
		t.Errorf("a ConfigMap that is to stay at home crossed: %s", seen)
	}
}

// offloadedByExample creates a namespace that is offloaded as the page shows, and returns its twin's name.
func offloadedByExample(t *testing.T, namespace string) (twin string) {
	t.Helper()
	the.namespace(t, namespace)
	the.rome.applies(t, namespace, "pods/offloading.yaml")
	eventually(t, soon, "the namespace to be offloaded", func(ctx context.Context) (bool, string) {
		object := &offloadingv1beta1.NamespaceOffloading{}
		if err := the.rome.Get(ctx, client.ObjectKey{Namespace: namespace, Name: offloadingv1beta1.NamespaceOffloadingName}, object); err != nil {
			return false, err.Error()
		}
		return object.Status.OffloadingPhase == offloadingv1beta1.ReadyOffloadingPhaseType, string(object.Status.OffloadingPhase)
	})
	return twinOf(namespace)
}

func podExamples(t *testing.T) {
	const namespace = "example-pods"
	twin := offloadedByExample(t, namespace)
	the.rome.applies(t, namespace, "pods/spread.yaml")
	the.rome.applies(t, namespace, "pods/job.yaml")
	the.rome.ready(t, namespace, "cache", 2)
	if pods := the.milan.ready(t, twin, "cache", 2); pods[0].Spec.NodeName == pods[1].Spec.NodeName {
		t.Errorf("two pods that keep apart share node %s", pods[0].Spec.NodeName)
	}
	if pod := completes(t, namespace, "report"); pod.Spec.NodeName != virtualNode {
		t.Errorf("the Job's pod ran on %s", pod.Spec.NodeName)
	}
}

func storageExamples(t *testing.T) {
	const namespace = "example-storage"
	twin := the.offloaded(t, namespace)
	the.rome.applies(t, namespace, "storage/claim.yaml")
	the.rome.creates(t, podOf(namespace, "gallery", withData(script(forever), "photos")))
	the.rome.ready(t, namespace, "gallery", 1)
	for c, where := range map[*side]string{the.rome: namespace, the.milan: twin} {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: named(where, "photos")}
		c.holds(t, claim, func() string { return string(claim.Status.Phase) }, string(corev1.ClaimBound))
		if want := map[*side]string{the.rome: virtualClass, the.milan: "standard"}[c]; *claim.Spec.StorageClassName != want {
			t.Errorf("the claim at %s has class %s, want %s", c.name, *claim.Spec.StorageClassName, want)
		}
	}
}
