package chart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
)

func keyed(labels, annotations map[string]string) metav1.ObjectMeta {
	meta := consumers("x")
	for key, value := range labels {
		meta.Labels[key] = value
	}
	for key, value := range annotations {
		meta.Annotations[key] = value
	}
	return meta
}

// kept are objects of each kind whose keys are looked at, with these.
func kept(meta metav1.ObjectMeta) map[string]runtime.Object {
	named := func(kind, version string) metav1.TypeMeta { return metav1.TypeMeta{APIVersion: version, Kind: kind} }
	asClaim := claim(nil)
	asClaim.ObjectMeta = meta
	return map[string]runtime.Object{
		"secrets":                &corev1.Secret{TypeMeta: named("Secret", "v1"), ObjectMeta: meta},
		"configmaps":             &corev1.ConfigMap{TypeMeta: named("ConfigMap", "v1"), ObjectMeta: meta},
		"services":               &corev1.Service{TypeMeta: named("Service", "v1"), ObjectMeta: meta},
		"ingresses":              &networkingv1.Ingress{TypeMeta: named("Ingress", "networking.k8s.io/v1"), ObjectMeta: meta},
		"networkpolicies":        &networkingv1.NetworkPolicy{TypeMeta: named("NetworkPolicy", "networking.k8s.io/v1"), ObjectMeta: meta},
		"persistentvolumeclaims": asClaim,
		"shadowendpointslices":   &discoveryv1.EndpointSlice{TypeMeta: named("ShadowEndpointSlice", "offloading.liqo.io/v1beta1"), ObjectMeta: meta},
	}
}

const allowing = "{profile: hardened, offloading: {consumers: {objectKeys: [backup.example.com/, pool]}}}"

// What holds for pods, claims and Services holds for ConfigMaps and Secrets, labels of Services included: in profile hardened, they have no
// keys by which something of the provider's own acts on them in whatever namespace they are: fills them from its vault, copies other
// namespaces' Secrets into them, shows them in its Grafana, scrapes or announces them.
func TestWhereLittleIsAllowedObjectsHaveNoPrivilegedKeys(t *testing.T) {
	const hardened = "profile: hardened"
	objects := map[string]*validation{}
	for _, values := range []string{"", hardened, allowing} {
		objects[values] = policyNamed(t, values, "admissionpolicies.yaml", "liqo-consumer-objects")
	}
	// Annotations of Services and Ingresses are looked at where their exposure is.
	exposure := map[string]*validation{"services": policyNamed(t, hardened, "exposurepolicies.yaml", "liqo-consumer-exposure"),
		"ingresses": policyNamed(t, hardened, "exposurepolicies.yaml", "liqo-consumer-ingresses")}
	policy := func(values, resource string, now, old runtime.Object) string {
		operation := admission.Create
		if old != nil {
			operation = admission.Update
		}
		return objects[values].asked(t, operation, resource, "", now, old)
	}
	labels := []string{"grafana_dashboard", "grafana_datasource", "cilium.example.com/public-pool", "sidecar.example.com/sync", "app.kubernetes.io.example.com/name",
		"eviltrick.liqo.io", "evil-liqo.io/a", "recurring-job.longhorn.io/backup", "appendix"}
	annotations := []string{"vault.security.banzaicloud.io/vault-role", "replicator.v1.mittwald.de/replicate-from", "reflector.v1.k8s.emberstack.com/reflects",
		"kubed.appscode.com/sync", "cert-manager.io/inject-ca-from-secret"}
	for _, key := range labels {
		for resource, object := range kept(keyed(map[string]string{key: "1"}, nil)) {
			before := kept(keyed(nil, nil))[resource]
			if policy(hardened, resource, object, nil) == "" || policy(hardened, resource, object, before) == "" {
				t.Errorf("%s with label %s are not refused", resource, key)
			}
			// What somebody at the provider said of it does not hinder the consumer; nor is it refused where much is allowed.
			if why := policy(hardened, resource, object, object); why != "" {
				t.Errorf("%s that have label %s cannot be changed: %s", resource, key, why)
			}
			if why := policy("", resource, object, nil); why != "" {
				t.Errorf("by default %s with label %s are refused: %s", resource, key, why)
			}
		}
	}
	for _, key := range annotations {
		for resource, object := range kept(keyed(nil, map[string]string{key: "x"})) {
			why := policy(hardened, resource, object, nil)
			if exposed := exposure[resource]; exposed != nil {
				why += exposed.asked(t, admission.Create, resource, "", object, nil)
			}
			if why == "" {
				t.Errorf("%s with annotation %s are not refused", resource, key)
			}
		}
	}
	ordinary := keyed(map[string]string{"app": "web", "app.kubernetes.io/name": "web", "helm.sh/chart": "web-1", "offloading.liqo.io/destination": "milan"}, map[string]string{"note": "1"})
	for resource, object := range kept(ordinary) {
		if why := policy(hardened, resource, object, nil); why != "" {
			t.Errorf("%s with ordinary keys are refused: %s", resource, why)
		}
	}
	for resource, object := range kept(keyed(map[string]string{"backup.example.com/daily": "yes", "pool": "a"}, nil)) {
		if why := policy(allowing, resource, object, nil); why != "" {
			t.Errorf("%s with keys that the provider allows are refused: %s", resource, why)
		}
	}
}
