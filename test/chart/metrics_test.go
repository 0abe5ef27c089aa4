package chart

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/virtualnode"
	"liqo.io/liqo/pkg/reflection"
)

const (
	allMonitored = "{metrics: {enabled: true, prometheusOperator: {enabled: true}}}"
	metricsFile  = "liqo/templates/metrics.yaml"
)

// metricsObjects are what the chart renders about metrics, by kind.
func metricsObjects(t *testing.T, values string) map[string]*unstructured.Unstructured {
	t.Helper()
	rendered, err := render(t, "{networking: {enabled: false}, "+strings.TrimPrefix(values, "{")) // the network has a monitor of its own
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*unstructured.Unstructured{}
	for _, document := range strings.Split("\n"+rendered[metricsFile], "\n---") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			t.Fatal(err)
		}
		if len(object.Object) == 0 {
			continue
		}
		if all[object.GetKind()] != nil {
			t.Fatalf("two objects of kind %s", object.GetKind())
		}
		all[object.GetKind()] = object
	}
	return all
}

func typed[T any](t *testing.T, object *unstructured.Unstructured) *T {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	out := new(T)
	if err := json.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestMetricsAreRenderedAsAskedFor(t *testing.T) {
	reader := []string{"ClusterRole", "Service"}
	told := []string{"ClusterRole", "ClusterRoleBinding", "Secret", "Service", "ServiceAccount", "ServiceMonitor"}
	for name, tc := range map[string]struct {
		values string
		want   []string
	}{
		"by default nothing listens":                    {"{}", nil},
		"nor is anybody told of what does not listen":   {"{metrics: {prometheusOperator: {enabled: true}}}", nil},
		"with metrics there is a Service and a role":    {"{metrics: {enabled: true}}", reader},
		"the operator is told of the controller":        {"{metrics: {enabled: true}, controllerManager: {metrics: {serviceMonitor: {enabled: true}}}}", told},
		"or of the controller and the virtual kubelets": {allMonitored, append([]string{"PodMonitor"}, told...)},
	} {
		t.Run(name, func(t *testing.T) {
			got := slices.Sorted(maps.Keys(metricsObjects(t, tc.values)))
			slices.Sort(tc.want)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("kinds, -want +got:\n%s", diff)
			}
		})
	}
}

// By one value all components serve metrics over plain HTTP; nobody is given a token then, nor rights to ask who somebody is.
func TestMetricsOverPlainHTTP(t *testing.T) {
	const plain = "metrics: {enabled: true, plainHTTP: true, prometheusOperator: {enabled: true}}"
	rendered, err := render(t, plain)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		file, text string
		count      int
	}{
		{"liqo/templates/config.yaml", "plainHTTP: true\n", 1},
		{"liqo/templates/config.yaml", "- --metrics-plain-http\n", 2}, // gateways of both ends
		{"liqo/templates/fabric.yaml", "- --metrics-plain-http\n", 1},
		{metricsFile, "scheme: http\n", 4},
	} {
		if got := strings.Count(rendered[want.file], want.text); got != want.count {
			t.Errorf("%s: %q is there %d times, want %d", want.file, want.text, got, want.count)
		}
	}
	for file, content := range rendered {
		for _, never := range []string{"scheme: https", "kubernetes.io/service-account-token", "tlsConfig:", "# To know who reads metrics."} {
			if strings.Contains(content, never) {
				t.Errorf("%s: there is %q in it", file, never)
			}
		}
	}
	if kinds := slices.Sorted(maps.Keys(metricsObjects(t, "{"+plain+"}"))); !slices.Equal(kinds, []string{"ClusterRole", "PodMonitor", "Service", "ServiceMonitor"}) {
		t.Errorf("there are %v", kinds)
	}
	usual, err := render(t, strings.ReplaceAll(plain, "plainHTTP: true, ", ""))
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range usual {
		if strings.Contains(content, "--metrics-plain-http") || strings.Contains(content, "plainHTTP: true") || strings.Contains(content, "scheme: http\n") {
			t.Errorf("%s: plain HTTP without being asked for", file)
		}
	}
}

// Whoever reads our metrics with the account of the chart can do nothing else.
func TestTheReaderOfMetricsMayDoNothingElse(t *testing.T) {
	objects := metricsObjects(t, allMonitored)
	want := []rbacv1.PolicyRule{{NonResourceURLs: []string{"/metrics"}, Verbs: []string{"get"}}}
	role := typed[rbacv1.ClusterRole](t, objects["ClusterRole"])
	if diff := cmp.Diff(want, role.Rules); diff != "" {
		t.Errorf("rules, -want +got:\n%s", diff)
	}
	binding := typed[rbacv1.ClusterRoleBinding](t, objects["ClusterRoleBinding"])
	account := typed[corev1.ServiceAccount](t, objects["ServiceAccount"])
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}}
	if diff := cmp.Diff(subjects, binding.Subjects); diff != "" || binding.RoleRef.Name != role.Name {
		t.Errorf("the role %s is bound to, -want +got:\n%s", binding.RoleRef.Name, diff)
	}
	secret := typed[corev1.Secret](t, objects["Secret"])
	if secret.Type != corev1.SecretTypeServiceAccountToken || secret.Annotations[corev1.ServiceAccountNameKey] != account.Name {
		t.Errorf("the Secret is of type %s and for account %q", secret.Type, secret.Annotations[corev1.ServiceAccountNameKey])
	}
}

// monitor is the part of a ServiceMonitor or a PodMonitor that must fit what runs.
type monitor struct {
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector            metav1.LabelSelector `json:"selector"`
		NamespaceSelector   namespaces           `json:"namespaceSelector"`
		Endpoints           []endpoint           `json:"endpoints"`
		PodMetricsEndpoints []endpoint           `json:"podMetricsEndpoints"`
	} `json:"spec"`
}

type namespaces struct {
	Any        bool
	MatchNames []string
}

// relabeling keeps or drops what is to be scraped, before it is.
type relabeling struct {
	SourceLabels  []string
	Regex, Action string
}

type endpoint struct {
	Port, Scheme, Interval, ScrapeTimeout string
	Relabelings                           []relabeling
	Authorization                         struct{ Credentials reference }
	TLSConfig                             struct {
		ServerName         string
		InsecureSkipVerify bool
		CA                 struct{ Secret, ConfigMap *reference }
	}
}

type reference struct{ Name, Key string }

func TestMonitorsFitWhatRuns(t *testing.T) {
	objects := metricsObjects(t, `{fullnameOverride: other, metrics: {enabled: true, prometheusOperator: {enabled: true}},
		controllerManager: {metrics: {service: {labels: {a: b}, annotations: {c: d}}, serviceMonitor: {interval: 15s, scrapeTimeout: 5s, labels: {release: p}}}},
		virtualKubelet: {metrics: {podMonitor: {interval: 1m, scrapeTimeout: 10s, labels: {release: q}}}}}`)
	service, controller, kubelet := typed[corev1.Service](t, objects["Service"]), typed[monitor](t, objects["ServiceMonitor"]), typed[monitor](t, objects["PodMonitor"])
	if service.Labels["a"] != "b" || service.Annotations["c"] != "d" || controller.Labels["release"] != "p" || kubelet.Labels["release"] != "q" {
		t.Error("labels or annotations of the values are missing")
	}
	token := struct{ Credentials reference }{reference{"liqo-metrics-reader", "token"}}
	wantController := endpoint{Port: service.Spec.Ports[0].Name, Scheme: "https", Interval: "15s", ScrapeTimeout: "5s", Authorization: token}
	wantController.TLSConfig.ServerName = "other-controller-manager.liqo.svc"
	wantController.TLSConfig.CA.Secret = &reference{"liqo-webhook-certs", "ca.crt"}
	if diff := cmp.Diff([]endpoint{wantController}, controller.Spec.Endpoints); diff != "" {
		t.Errorf("ServiceMonitor, -want +got:\n%s", diff)
	}
	matches(t, controller.Spec.Selector, service.Labels)
	deployment, err := virtualnode.Render(virtualnode.Rendering{
		VirtualNode: &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"},
			Spec: offloadingv1beta1.VirtualNodeSpec{ClusterID: corev1beta1.ClusterID("milan")}},
		Template: &offloadingv1beta1.VkOptionsTemplateSpec{MetricsEnabled: true, MetricsAddress: ":5872"},
	})
	if err != nil {
		t.Fatal(err)
	}
	matches(t, kubelet.Spec.Selector, deployment.Spec.Template.Labels)
	ports := deployment.Spec.Template.Spec.Containers[0].Ports
	wantKubelet := endpoint{Port: ports[len(ports)-1].Name, Scheme: "https", Interval: "1m", ScrapeTimeout: "10s", Authorization: token}
	wantKubelet.Relabelings = ofTenants
	wantKubelet.TLSConfig.CA.ConfigMap = &reference{"kube-root-ca.crt", "ca.crt"}
	if diff := cmp.Diff([]endpoint{wantKubelet}, kubelet.Spec.PodMetricsEndpoints); diff != "" || !kubelet.Spec.NamespaceSelector.Any {
		t.Errorf("PodMonitor, -want +got:\n%s", diff)
	}
}

// ofTenants leaves nothing but the pods of tenant namespaces.
var ofTenants = []relabeling{{SourceLabels: []string{"__meta_kubernetes_namespace"}, Regex: corev1beta1.TenantNamespacePrefix + ".+", Action: "keep"}}

// Prometheus sends the token of liqo-metrics-reader, which never ends, to each pod that a monitor selects, whoever answers there. So no
// monitor that carries it selects what a consumer can make: a pod with Liqo's own labels in a twin namespace, and a port named metrics.
func TestNoPodOfAConsumerIsSentTheTokenOfTheReaderOfMetrics(t *testing.T) {
	for _, more := range []string{"", ", profile: hardened", ", virtualKubelet: {nodeIdentity: serviceAccount}", ", offloading: {consumers: {podLabelPrefixes: ['*']}}"} {
		values := "{networking: {enabled: true}, metrics: {enabled: true, prometheusOperator: {enabled: true}}" + more + "}"
		allowed := configuration(t, values).Offloading.Consumers
		keys := reflection.Keys{Labels: allowed.PodLabelPrefixes, Annotations: allowed.PodAnnotationPrefixes}
		rendered, err := render(t, values)
		if err != nil {
			t.Fatal(err)
		}
		seen := 0
		for _, document := range strings.Split("\n"+rendered[metricsFile], "\n---") {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
				t.Fatal(err)
			}
			if object.GetKind() != "PodMonitor" {
				continue
			}
			seen++
			m := typed[monitor](t, object)
			if !m.Spec.NamespaceSelector.Any {
				if diff := cmp.Diff(namespaces{MatchNames: []string{"liqo"}}, m.Spec.NamespaceSelector); diff != "" {
					t.Errorf("%s: PodMonitor %s, -want +got:\n%s", values, m.Name, diff)
				}
				continue
			}
			// What a consumer writes on its ShadowPod, and what of it the provider leaves on the Pod.
			left, _, refused := keys.Allowed(m.Spec.Selector.MatchLabels, nil)
			if refused == "" || len(left) == len(m.Spec.Selector.MatchLabels) {
				t.Errorf("%s: a consumer's pod may have the labels of PodMonitor %s", values, m.Name)
			}
			for _, e := range m.Spec.PodMetricsEndpoints {
				if diff := cmp.Diff(ofTenants, e.Relabelings); diff != "" {
					t.Errorf("%s: PodMonitor %s, -want +got:\n%s", values, m.Name, diff)
				}
			}
		}
		if seen != 3 {
			t.Errorf("%s: %d PodMonitors, not 3", values, seen)
		}
	}
}

func matches(t *testing.T, selector metav1.LabelSelector, set labels.Set) {
	t.Helper()
	parsed, err := metav1.LabelSelectorAsSelector(&selector)
	if err != nil || parsed.Empty() || !parsed.Matches(set) {
		t.Errorf("%s does not select %v (%v)", parsed, set, err)
	}
}

func TestSelfSignedCertificatesAreNotVerified(t *testing.T) {
	objects := metricsObjects(t, "{metrics: {enabled: true, prometheusOperator: {enabled: true}}, virtualKubelet: {nodeIdentity: serviceAccount}}")
	for kind, want := range map[string]bool{"PodMonitor": true, "ServiceMonitor": false} {
		m := typed[monitor](t, objects[kind])
		for _, e := range append(m.Spec.Endpoints, m.Spec.PodMetricsEndpoints...) {
			if e.TLSConfig.InsecureSkipVerify != want {
				t.Errorf("%s verifies nothing: %v, want %v", kind, e.TLSConfig.InsecureSkipVerify, want)
			}
		}
	}
}
