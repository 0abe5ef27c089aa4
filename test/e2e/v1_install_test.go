package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"helm.sh/helm/v3/pkg/storage/driver"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/helm"
)

const (
	liqo = "liqo" // its release and its namespace
	// installs is how long an installation may take.
	installs = 4 * time.Minute
)

// TestComingFromV1 brings Liqo to a cluster as users of Liqo v1 do, with liqoctl and with plain Helm: with their values, where definitions of v1 are
// left, a release of it, or its controllers. What does not work is said in one sentence, and nothing is half there.
func TestComingFromV1(t *testing.T) {
	the.claimed(t)
	c := the.naples
	purge := func(t *testing.T) {
		t.Helper()
		the.liqoctl(t, unhurried, "uninstall", "--purge", "--kubeconfig", c.kubeconfig, "--skip-confirm").succeeds(t)
		eventually(t, patience, c.name+" to be as it was before Liqo", the.asBefore(c))
	}
	purge(t)
	defer func() {
		purge(t)
		if the.installed {
			the.runsLiqoctl(t, installs, the.installArgs(t, c)...).succeeds(t)
		}
	}()
	for _, step := range []struct {
		name string
		test func(*testing.T, *side)
	}{
		{"a release of v1", releaseOfV1},
		{"controllers of v1", controllersOfV1},
		{"values that cannot be", refusedValuesOfV1},
		{"values", valuesOfV1},
		{"definitions that v1 left", definitionsOfV1},
	} {
		if !t.Run(step.name, func(t *testing.T) { the.recordFailure(t); step.test(t, c) }) {
			return
		}
	}
}

// plainHelm does what 'helm upgrade --install' does with the chart and a file of values.
func plainHelm(t *testing.T, c *side, values map[string]any) error {
	t.Helper()
	flags := genericclioptions.NewConfigFlags(false)
	flags.KubeConfig = &c.kubeconfig
	releases, err := helm.New(flags, liqo, nil)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := helm.LoadPath(filepath.Join(root, "charts", "liqo"))
	if err != nil {
		t.Fatal(err)
	}
	there, err := releases.Get(t.Context(), liqo)
	if err != nil {
		t.Fatal(err)
	}
	request := helm.Request{Name: liqo, Chart: loaded, Values: values, Timeout: time.Minute}
	if there != nil {
		_, err = releases.Upgrade(t.Context(), request)
		return err
	}
	_, err = releases.Install(t.Context(), request)
	return err
}

// told are the values that say what cluster this is, and what images it has.
func (s *suite) told(t *testing.T, c *side) map[string]any {
	t.Helper()
	declared, _ := s.lab.Spec().Cluster(c.name)
	return map[string]any{
		"tag": s.tag, "discovery": map[string]any{"config": map[string]any{"clusterID": c.name}},
		"ipam": map[string]any{"podCIDR": declared.PodCIDR.String(), "serviceCIDR": declared.ServiceCIDR.String()},
	}
}

// byLiqoctl are the arguments that install with a file of values.
func (s *suite) byLiqoctl(t *testing.T, c *side, values string) []string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, []byte(values), 0o600); err != nil {
		t.Fatal(err)
	}
	declared, _ := s.lab.Spec().Cluster(c.name)
	return []string{
		"install", "--kubeconfig", c.kubeconfig, "--cluster-id", c.name, "--pod-cidr", declared.PodCIDR.String(), "--service-cidr", declared.ServiceCIDR.String(),
		"--reset-values", "--values", file, "--set", "tag=" + s.tag, "--timeout", "3m",
	}
}

// merged is b over a, at each depth.
func merged(a, b map[string]any) map[string]any {
	all := map[string]any{}
	for key, value := range a {
		all[key] = value
	}
	for key, value := range b {
		below, isMap := value.(map[string]any)
		if under, both := all[key].(map[string]any); both && isMap {
			value = merged(under, below)
		}
		all[key] = value
	}
	return all
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// defaultsOfV1 is the file of values that v1's users begin with.
func defaultsOfV1(t *testing.T) string {
	t.Helper()
	table, err := os.ReadFile(filepath.Join(root, "test", "compat", "testdata", "values.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{}
	for line := range bytes.Lines(table) {
		path, text, isRow := strings.Cut(strings.TrimSpace(string(line)), "\t")
		if !isRow || strings.HasPrefix(path, "#") {
			continue
		}
		var value any
		if err := json.Unmarshal([]byte(text), &value); err != nil {
			t.Fatalf("the default of %s: %v", path, err)
		}
		// The one dot in keys is that of liqo.io/type and the like.
		keys := strings.Split(strings.ReplaceAll(path, "liqo.io/", "liqo\x00io/"), ".")
		for i := len(keys) - 1; i >= 0; i-- {
			value = map[string]any{strings.ReplaceAll(keys[i], "\x00", "."): value}
		}
		all = merged(all, value.(map[string]any))
	}
	if len(all) < 20 {
		t.Fatalf("%d values of v1 are known", len(all))
	}
	text, err := yaml.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// runs waits until the controller manager that the last installation asked for runs.
func (c *side) runs(t *testing.T) {
	t.Helper()
	eventually(t, patience, "the controller manager to run", func(ctx context.Context) (bool, string) {
		manager := &appsv1.Deployment{ObjectMeta: named(liqo, "liqo-controller-manager")}
		if err := c.Get(ctx, client.ObjectKeyFromObject(manager), manager); err != nil {
			return false, err.Error()
		}
		s := manager.Status
		return s.ObservedGeneration >= manager.Generation && s.UpdatedReplicas == *manager.Spec.Replicas && s.AvailableReplicas == s.Replicas && s.Replicas == s.UpdatedReplicas,
			manager.Status.String()
	})
}

func valuesOfV1(t *testing.T, c *side) {
	for _, test := range []struct{ name, values, told string }{
		{"the whole default file", defaultsOfV1(t), "There is no proxy of the API server"},
		{"no telemetry", "telemetry: {enabled: false}", "There is no telemetry"},
		{"no proxy", "proxy: {enabled: false}", "There is no proxy of the API server"},
		{"two webhooks", "webhook: {replicas: 2}", "Webhooks are part of the controller manager"},
		{"WireGuard in user space", "networking: {gatewayTemplates: {wireguard: {implementation: userspace}}}", "networking.gatewayTemplates.wireguard.implementation"},
		{"OpenShift", "openshiftConfig: {enabled: true}", "No SecurityContextConstraints are made"},
		{"no metric agent", "metricAgent: {enabled: false}", "metricAgent.enabled"},
		{"labels of the CRD replicator", "crdReplicator: {pod: {labels: {team: infra}}}", "crdReplicator.pod.labels"},
		{"IPAM's Deployment", "ipam: {internal: {graphviz: true}}", "ipam.internal.graphviz"},
		{"an IPAM elsewhere", "ipam: {external: {enabled: true, url: 'ipam:6000'}}", "An IPAM of somebody else's cannot be asked here"},
		{"full masquerade", "networking: {fabric: {config: {fullMasquerade: true}}}", "networking.fabric.config.fullMasquerade"},
		{"requirements of the kernel", "requirements: {kernel: {disabled: true}}", "requirements.kernel.disabled"},
		{"users of AWS", "authentication: {awsConfig: {clusterName: eks}}", "No users of AWS IAM are made"},
		{"an older path of reflection", "reflection: {secret: {type: AllowList}}", "it is offloading.reflection.secret.type now"},
		{"two managers with labels and tolerations", "controllerManager: {replicas: 2, pod: {labels: {team: infra}}}\ncommon: {tolerations: [{operator: Exists}]}", ""},
		{"labels of the cluster", "discovery: {config: {clusterLabels: {region: south}}}", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			the.liqoctl(t, installs, the.byLiqoctl(t, c, test.values)...).succeeds(t).says(t, test.told)
			if err := plainHelm(t, c, merged(parsed(t, test.values), the.told(t, c))); err != nil {
				t.Fatal(err)
			}
			c.runs(t)
		})
	}
}

// untouched does what is to be refused, and sees that nothing changed.
func untouched(t *testing.T, c *side, refused func()) {
	t.Helper()
	before, err := c.inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	refused()
	after, err := c.inventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if was, is := strings.Join(before, "\n"), strings.Join(after, "\n"); was != is {
		t.Errorf("something changed; before:\n%s\nafter:\n%s", was, is)
	}
}

// refuses has both ways refuse with a sentence, code being liqoctl's.
func refuses(t *testing.T, c *side, values, sentence string, code int) {
	t.Helper()
	untouched(t, c, func() {
		the.liqoctl(t, installs, the.byLiqoctl(t, c, values)...).exits(t, code).says(t, sentence)
		if err := plainHelm(t, c, merged(parsed(t, values), the.told(t, c))); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("Helm says %v, %q wanted", err, sentence)
		}
	})
}

func refusedValuesOfV1(t *testing.T, c *side) {
	for values, sentence := range map[string]string{
		"telemtry: {enabled: false}":                           "telemtry",
		"controllerManager: {replicas: many}":                  "replicas",
		"controllerManager: {pod: {extraArgs: [--no-such=1]}}": "--no-such",
	} {
		t.Run(values, func(t *testing.T) { refuses(t, c, values, sentence, 2) })
	}
}

// goes deletes a namespace and waits until it is gone.
func goes(t *testing.T, c *side, name string) {
	t.Helper()
	c.deletes(t, namespaceOf(name))
	c.misses(t, namespaceOf(name), "namespace "+name)
}

// releaseOfV1 has the record of a release as Helm keeps it of v1: its chart has the same name as ours.
func releaseOfV1(t *testing.T, c *side) {
	c.creates(t, namespaceOf(liqo))
	defer goes(t, c, liqo)
	records := storage.Init(driver.NewSecrets(c.kube.CoreV1().Secrets(liqo)))
	err := records.Create(&release.Release{
		Name: liqo, Namespace: liqo, Version: 1, Info: &release.Info{Status: release.StatusDeployed},
		Chart:    &chart.Chart{Metadata: &chart.Metadata{APIVersion: chart.APIVersionV2, Name: liqo, Version: "v1.2.0", AppVersion: "v1.2.0"}},
		Manifest: "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: liqo-crd-replicator, namespace: liqo}\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	untouched(t, c, func() {
		the.liqoctl(t, installs, the.byLiqoctl(t, c, "{}")...).exits(t, 3).says(t, "is one of Liqo v1 (v1.2.0), which this Liqo does not upgrade")
	})
}

// controllersOfV1 has a Deployment of v1, without pods: its images are not to be had.
func controllersOfV1(t *testing.T, c *side) {
	labels := map[string]string{"app.kubernetes.io/name": "crd-replicator", "app.kubernetes.io/instance": "liqo-crd-replicator", "app.kubernetes.io/part-of": liqo}
	spec := script(forever)
	replicator := &appsv1.Deployment{ObjectMeta: named(liqo, "liqo-crd-replicator"), Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](0), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec},
	}}
	replicator.Labels = labels
	c.creates(t, namespaceOf(liqo), replicator)
	defer goes(t, c, liqo)
	refuses(t, c, "{}", "liqo-crd-replicator", 3)
}

// definitionsOfV1 has what v1 leaves: definitions that are in no release, with an object, and the namespace of volumes.
func definitionsOfV1(t *testing.T, c *side) {
	const kept = "kept"
	c.creates(t, namespaceOf(kept))
	defer c.deletes(t, namespaceOf(kept))
	// No peering, and nothing that is offloaded, stands in the way of uninstalling.
	template := &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: named(kept, "own"), Spec: offloadingv1beta1.VkOptionsTemplateSpec{ContainerImage: "a"}}
	c.creates(t, template)
	leave := func(t *testing.T) {
		t.Helper()
		the.liqoctl(t, unhurried, "uninstall", "--kubeconfig", c.kubeconfig, "--skip-confirm").succeeds(t)
		var definitions []string
		for name := range strings.Lines(the.kubectl(t, c, patience, "get", "crds", "--output", "name").succeeds(t).stdout) {
			if name = strings.TrimSpace(name); strings.HasSuffix(name, ".liqo.io") {
				definitions = append(definitions, name)
			}
		}
		if len(definitions) < 20 {
			t.Fatalf("these definitions are left: %v", definitions)
		}
		the.kubectl(t, c, patience, append(append([]string{"label"}, definitions...), "app.kubernetes.io/managed-by-")...).succeeds(t)
		the.kubectl(t, c, patience, append(append([]string{"annotate"}, definitions...), "meta.helm.sh/release-name-", "meta.helm.sh/release-namespace-")...).succeeds(t)
		// Ours goes with us; that of v1 stays.
		c.misses(t, namespaceOf(offloadingv1beta1.DefaultStorageNamespace), "what holds no volumes")
		volumes := namespaceOf(offloadingv1beta1.DefaultStorageNamespace)
		volumes.Labels = map[string]string{offloadingv1beta1.StorageProvisionerLabel: "true"}
		c.creates(t, volumes)
	}
	same := func(t *testing.T) {
		t.Helper()
		live := &offloadingv1beta1.VkOptionsTemplate{ObjectMeta: named(kept, "own")}
		c.reads(t, live)
		if live.UID != template.UID || !live.DeletionTimestamp.IsZero() {
			t.Errorf("the object is another one, or goes: %+v", live.ObjectMeta)
		}
	}
	t.Run("liqoctl takes them over", func(t *testing.T) {
		leave(t)
		the.liqoctl(t, installs, the.byLiqoctl(t, c, "{}")...).succeeds(t).says(t, "what an earlier Liqo left is taken over")
		same(t)
	})
	t.Run("plain Helm is told that they are the release's", func(t *testing.T) {
		leave(t)
		values := the.told(t, c)
		untouched(t, c, func() {
			if err := plainHelm(t, c, values); err == nil || !strings.Contains(err.Error(), "invalid ownership metadata") {
				t.Errorf("Helm says %v", err)
			}
		})
		// As docs/guide/migration.md says.
		definitions := filepath.Join(root, "charts", "liqo", "charts", "liqo-crds", "files")
		marks := []string{"meta.helm.sh/release-name=" + liqo, "meta.helm.sh/release-namespace=" + liqo}
		the.kubectl(t, c, patience, "label", "--overwrite", "--filename", definitions, "app.kubernetes.io/managed-by=Helm")
		the.kubectl(t, c, patience, append([]string{"annotate", "--overwrite", "--filename", definitions}, marks...)...)
		the.kubectl(t, c, patience, "label", "--overwrite", "namespace", "liqo-storage", "app.kubernetes.io/managed-by=Helm").succeeds(t)
		the.kubectl(t, c, patience, append([]string{"annotate", "--overwrite", "namespace", "liqo-storage"}, marks...)...).succeeds(t)
		if err := plainHelm(t, c, values); err != nil {
			t.Fatal(err)
		}
		c.runs(t)
		same(t)
	})
}
