package settings

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// D9: a RuntimeClass and a ServiceAccount that the provider allows and does not have keep a pod pending in the provider's words, which
// are told once. The pod runs by itself when they are made. PriorityClasses do not cross, and StorageClasses are a matter of claims:
// see TestD8WhatTheProviderRefuses and TestClaimsThatAreRefused.
func TestD9WhatTheProviderAllowsAndDoesNotHave(t *testing.T) {
	w := env.Peered(t)
	name := fixture.Unique("absent")
	allowing := map[string]any{"offloading": map[string]any{"consumers": map[string]any{
		"runtimeClasses": []any{name}, "serviceAccounts": []any{name}}}}
	w.Milan.Reconfigure(t, nil, allowing)
	defer w.Milan.Reconfigure(t, allowing, nil)
	type missing struct {
		*world.RefusedPod
		made client.Object
	}
	var pods []missing
	for what, tc := range map[string]struct {
		annotations map[string]string
		words       string
		made        client.Object
	}{
		"RuntimeClass": {map[string]string{offloadingv1beta1.RemoteRuntimeClassAnnotation: name}, `RuntimeClass "` + name + `" not found`,
			&nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Handler: "absent"}},
		"ServiceAccount": {map[string]string{offloadingv1beta1.APIServerSupportAnnotation: "remote", offloadingv1beta1.RemoteServiceAccountAnnotation: name},
			`serviceaccount "` + name + `" not found`, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}},
	} {
		o := world.Obstacle{Words: tc.words, Reason: offloadingv1beta1.ReasonPodCreationFailed, Change: func(p *corev1.Pod) { p.Annotations = tc.annotations }}
		r := o.Meet(t, &env.Shared)
		t.Logf("namespace %s: %s", r.Namespace, what)
		if what == "ServiceAccount" {
			tc.made.SetNamespace(r.Namespace)
		}
		pods = append(pods, missing{r, tc.made})
	}
	for _, p := range pods {
		p.Says(t)
		if told, all := p.Told(t.Context()); told != 1 {
			t.Errorf("it was told %d times in %s:\n%s", told, p.Namespace, all)
		}
		env.Provide(t, p.made)
	}
	for _, p := range pods {
		world.AwaitPods(t, env.Rome, p.Namespace, 1)
		world.AwaitPods(t, env.Milan, p.Namespace, 1)
	}
}
