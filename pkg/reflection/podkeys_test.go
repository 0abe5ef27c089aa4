package reflection

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels of domains that nothing is known of pass with "*", those by which a pod gets something pass only if their prefix is named, and
// annotations have no such list.
func TestLabelsOfOwnDomainsCross(t *testing.T) {
	for name, tc := range map[string]struct {
		prefixes []string
		key      string
		label    bool
	}{
		"a database's":                                  {[]string{"*"}, "cnpg.io/cluster", true},
		"a broker's":                                    {[]string{"*"}, "strimzi.io/name", true},
		"one of a working group of Kubernetes":          {[]string{"*"}, "jobset.sigs.k8s.io/jobset-name", true},
		"one of Kubernetes' own controllers":            {[]string{"*"}, "apps.kubernetes.io/pod-index", true},
		"an own one":                                    {[]string{"*"}, "barn.garden.example/cluster", true},
		"one whose domain ends like a listed one":       {[]string{"*"}, "notistio.io/cluster", true},
		"one whose domain begins like a listed one":     {[]string{"*"}, "istio.io.garden.example/cluster", true},
		"an injector's":                                 {[]string{"*"}, "sidecar.istio.io/inject", false},
		"one of a listed domain itself":                 {[]string{"*"}, "istio.io/rev", false},
		"an identity":                                   {[]string{"*"}, "azure.workload.identity/use", false},
		"an identity without a domain":                  {[]string{"*"}, "aadpodidbinding", false},
		"a sidecar's without a domain":                  {[]string{"*"}, "gke-gcsfuse/volumes", false},
		"one that begins like it":                       {[]string{"*"}, "gke-gcsfuse-mine/volumes", true},
		"a runtime's, without a slash":                  {[]string{"*"}, "io.kubernetes.cri-o.Devices", false},
		"one of Kubernetes itself":                      {[]string{"*"}, "kubernetes.io/egress-bandwidth", false},
		"an injector's that the provider names besides": {[]string{"*", "sidecar.istio.io/"}, "sidecar.istio.io/inject", true},
		"another one of the same domain":                {[]string{"*", "sidecar.istio.io/"}, "security.istio.io/tlsMode", false},
		"that of our gateways":                          {[]string{"*"}, "networking.liqo.io/component", false},
		"that of our gateways, named":                   {[]string{"networking.liqo.io/"}, "networking.liqo.io/component", false},
		"that of virtual kubelets":                      {[]string{"*"}, "offloading.liqo.io/component", false},
		"another one of ours":                           {nil, "offloading.liqo.io/origin", true},
		"an own one where there is a list":              {[]string{"app.kubernetes.io/"}, "barn.garden.example/cluster", false},
	} {
		t.Run(name, func(t *testing.T) {
			labels, _, refused := Keys{Labels: tc.prefixes}.Allowed(map[string]string{tc.key: "x"}, nil)
			if (len(labels) == 1) != tc.label || (refused == "") != tc.label {
				t.Errorf("label %s with %v: %v, %q", tc.key, tc.prefixes, labels, refused)
			}
			if _, annotations, _ := (Keys{Annotations: []string{"*"}}).Allowed(nil, map[string]string{tc.key: "x"}); len(annotations) == 0 {
				t.Errorf("annotation %s does not pass although all do", tc.key)
			}
		})
	}
}

// What an API server wrote of its own doings stays at home, so that no provider has to refuse it.
func TestWhatAnAPIServerWroteStaysAtHome(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{"note": "x",
		"kubernetes.io/limit-ranger": "LimitRanger plugin set: cpu request for container main", "openshift.io/scc": "restricted-v2"}}}
	want := map[string]string{"note": "x", "liqo.io/origin-uid": "u"}
	if diff := cmp.Diff(want, RemoteAnnotations(pod, NotReflected{})); diff != "" {
		t.Error(diff)
	}
}

// The page for users lists the prefixes of labels that stay at home as the code does.
func TestTheListOfLabelsIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/reflection.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Labels that stay at home\n")
	section, _, _ = strings.Cut(section, "\n## ")
	told := map[string]bool{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(line, "|"); len(cells) == 4 {
			for _, key := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[2], -1) {
				told[key[1]] = true
			}
		}
	}
	known := map[string]bool{}
	for _, list := range [][]string{givingLabels, givingDomains, grantingKeys} {
		for _, prefix := range list {
			known[prefix] = true
		}
	}
	if diff := cmp.Diff(known, told); diff != "" {
		t.Errorf("docs/reflection.md tells other prefixes than the code has (-code +page):\n%s", diff)
	}
}

// The zone of the virtual node, which an API server puts on a pod as it binds it, stays at home, and the pod is told of it.
func TestTheZoneOfAVirtualNodeStaysAtHome(t *testing.T) {
	labels := map[string]string{corev1.LabelTopologyZone: "rome-1", corev1.LabelTopologyRegion: "rome", "app": "web"}
	zone := &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.labels['" + corev1.LabelTopologyZone + "']"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Labels: labels},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Env: []corev1.EnvVar{{Name: "ZONE", ValueFrom: zone}}}}}}
	shadow, refusal := ShadowPod(pod, PodInput{Home: "rome", Remote: "milan", Node: "milan", Namespace: "shop-rome"})
	if refusal != nil {
		t.Fatal(refusal)
	}
	for _, key := range BoundLabels {
		if value, there := shadow.Labels[key]; there {
			t.Errorf("label %s crosses: %q", key, value)
		}
	}
	if env := shadow.Spec.Pod.Containers[0].Env; shadow.Labels["app"] != "web" || env[len(env)-1].Value != "rome-1" {
		t.Errorf("labels %v, environment %v", shadow.Labels, env)
	}
}
