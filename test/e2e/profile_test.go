package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// Profiles of the chart.
const (
	compatible = "compatible"
	hardened   = "hardened"
)

// profileArgs are the values of the profile. With hardened, they are also what the pages have administrators of providers set for the
// application of the examples: its domain, and the clusters that its pods talk with.
func (s *suite) profileArgs() []string {
	args := []string{"--set", "profile=" + s.profile}
	if s.profile != hardened {
		return args
	}
	// Pods of the examples say little of what they take.
	args = append(args, "--set", "offloading.consumers.ingressHostSuffixes={example.com}", "--set", "controllerManager.config.defaultLimitsEnforcement=None")
	for i, c := range s.lab.Spec().Clusters {
		args = append(args, "--set", fmt.Sprintf("offloading.twinNamespaces.network.peers[%d].ipBlock.cidr=%s", i, c.PodCIDR))
	}
	return args
}

// runs has all clusters run with a profile, whatever they ran with before.
func (s *suite) runs(t *testing.T, profile string) {
	t.Helper()
	s.solitary(t, "another profile")
	s.profile = profile
	s.sideBySide(t, 4*time.Minute, s.sides(), func(c *side) []string { return append(s.installArgs(t, c), "--reset-values") })
	s.installed = true
}

// says waits until an Event of an object tells something.
func (c *side) says(t *testing.T, about corev1.ObjectReference, reason, text string) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("Event %s of %s %s/%s with %q", reason, about.Kind, about.Namespace, about.Name, text),
		func(ctx context.Context) (bool, string) {
			events := &corev1.EventList{}
			if err := c.List(ctx, events, client.InNamespace(about.Namespace)); err != nil {
				return false, err.Error()
			}
			var seen []string
			for _, e := range events.Items {
				if e.InvolvedObject.Kind != about.Kind || e.InvolvedObject.Name != about.Name {
					continue
				}
				if e.Reason == reason && strings.Contains(e.Message, text) {
					return true, "it is there"
				}
				seen = append(seen, e.Reason+": "+e.Message)
			}
			return false, strings.Join(seen, "; ")
		})
}

// hardenedExamples applies the examples of all pages to a namespace and shows that they do with profile hardened what the pages say; what
// is refused says so at home.
func hardenedExamples(t *testing.T) {
	// The example of accounts binds its Role to an account of this namespace.
	const namespace = "shop"
	twin := offloadedByExample(t, namespace)
	the.rome.creates(t,
		&corev1.ConfigMap{ObjectMeta: named(namespace, "unmarked"), Data: map[string]string{"a": "b"}},
		podOf(namespace, "gallery", withData(script(forever), "photos")), needy(namespace), tracing(namespace))
	for _, example := range []string{
		"reflection/skip.yaml", "reflection/shop.yaml", "reflection/allow.yaml", "reflection/nodeport.yaml",
		"pods/runtimeclass.yaml", "pods/spread.yaml", "pods/job.yaml", "pods/web.yaml", "storage/claim.yaml", "storage/statefulset.yaml",
		"serviceaccounts/lister.yaml", "serviceaccounts/disabled.yaml",
	} {
		the.rome.applies(t, namespace, example)
	}
	for app, count := range map[string]int{"hello": 1, "cache": 2, "web": 4, "db": 2, "gallery": 1, "hermit": 1, listerName: 1} {
		for _, pod := range the.rome.readyWithin(t, spread, namespace, app, count) {
			if pod.Status.PodIP == "" {
				t.Errorf("pod %s has no address", pod.Name)
			}
		}
	}
	if pod := completes(t, namespace, "report"); pod.Spec.NodeName != virtualNode {
		t.Errorf("the Job's pod ran on %s", pod.Spec.NodeName)
	}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: named(twin, "settings")}, &corev1.Secret{ObjectMeta: named(twin, "password")},
		&corev1.Service{ObjectMeta: named(twin, "front")}, &networkingv1.Ingress{ObjectMeta: named(twin, "front")},
		&corev1.ConfigMap{ObjectMeta: named(twin, "catalogue")}, &corev1.Secret{ObjectMeta: named(twin, reflection.TokenSecretName(listerName))},
	} {
		the.milan.sees(t, object, "the copy")
	}
	for _, object := range []client.Object{
		&corev1.ConfigMap{ObjectMeta: named(twin, "notes")}, &corev1.ConfigMap{ObjectMeta: named(twin, "unmarked")},
		&corev1.Secret{ObjectMeta: named(twin, reflection.TokenSecretName("hermit"))}, &corev1.Service{ObjectMeta: named(twin, "entrance")},
	} {
		if ok, seen := the.milan.gone(object)(t.Context()); !ok {
			t.Errorf("%T %s crossed: %s", object, object.GetName(), seen)
		}
	}
	entrance := corev1.ObjectReference{Kind: "Service", Namespace: namespace, Name: "entrance"}
	the.rome.says(t, entrance, offloadingv1beta1.ReasonFailedReflection, "ServiceTypeNotAllowed: consumers may make Services of type ClusterIP here")
	the.rome.says(t, corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "tracing"}, offloadingv1beta1.ReasonFailedReflection,
		"its administrator can, with the value offloading.consumers.capabilities")
	the.rome.shows(t, namespace, "tracing", offloadingv1beta1.ReasonPodRefused)
	the.rome.shows(t, namespace, "needy", offloadingv1beta1.ReasonReferencesPending, "unmarked")
}

// shows waits until the status of a pod has some words in it.
func (c *side) shows(t *testing.T, namespace, name string, words ...string) {
	t.Helper()
	eventually(t, soon, fmt.Sprintf("pod %s/%s to show %q", namespace, name, words), func(ctx context.Context) (bool, string) {
		pod := &corev1.Pod{}
		if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, pod); err != nil {
			return false, err.Error()
		}
		seen := pod.Status.String()
		for _, word := range words {
			if !strings.Contains(seen, word) {
				return false, seen
			}
		}
		return true, seen
	})
}

// needy is a pod with a ConfigMap that nobody said may cross.
func needy(namespace string) *corev1.Pod {
	spec := script(forever)
	spec.Containers[0].EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "unmarked"}}}}
	return podOf(namespace, "needy", spec)
}

// tracing is a pod with a capability that only providers of the other profile give.
func tracing(namespace string) *corev1.Pod {
	spec := script(forever)
	spec.Containers[0].SecurityContext = &corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_PTRACE"}}}
	return podOf(namespace, "tracing", spec)
}
