package install_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/charts"
	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	ipamv1alpha1 "liqo.io/liqo/pkg/apis/ipam/v1alpha1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/install"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/version"
)

// releases is Helm without a cluster.
type releases struct {
	present *helm.Release
	calls   []string
	values  map[string]any
	// adopts is whether the last rendering was of a release that takes something over.
	adopts bool
	// fails is how Install ends.
	fails error
}

// manifest is what tells a release of ours.
const manifest = `kind: Deployment
metadata: {name: liqo-controller-manager, labels: {app.kubernetes.io/part-of: liqo, app.kubernetes.io/component: controller-manager}}
spec: {template: {spec: {containers: [{name: controller-manager, args: [--config=/etc/liqo/config.yaml]}]}}}`

func (r *releases) Get(context.Context, string) (*helm.Release, error) {
	if r.present != nil && r.present.Manifest == "" {
		r.present.Manifest = manifest
	}
	return r.present, nil
}

func (r *releases) Install(_ context.Context, request helm.Request) (*helm.Release, error) {
	r.calls, r.values = append(r.calls, "install"), request.Values
	return &helm.Release{Revision: 1}, r.fails
}

func (r *releases) Upgrade(_ context.Context, request helm.Request) (*helm.Release, error) {
	r.calls, r.values = append(r.calls, "upgrade"), request.Values
	return &helm.Release{Revision: r.present.Revision + 1}, nil
}

func (r *releases) Uninstall(context.Context, string, time.Duration) error {
	r.calls = append(r.calls, "uninstall")
	return nil
}

func (r *releases) Template(_ context.Context, request helm.Request) (string, error) {
	r.adopts = request.Adopts
	rendered, err := request.Chart.Render(request.Name, "liqo", request.Values)
	return rendered["liqo/templates/clusterid.yaml"], err
}

var worker = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.10.0.0/24"}}}

// options are for a cluster of which all but the service CIDR can be detected.
func options(t *testing.T, r *releases, change func(*fixture.Options)) install.Options {
	t.Helper()
	o := fixture.Options{Name: "rome", Objects: []client.Object{worker}}
	if change != nil {
		change(&o)
	}
	cluster := fixture.New(t, o).Cluster
	cluster.Config.Host = "https://10.0.0.1:6443"
	return install.Options{Cluster: cluster, Chart: charts.Liqo(), Helm: r, Wishes: install.Wishes{ServiceCIDR: "10.11.0.0/16"}, ClusterID: "rome"}
}

func TestValuesLaterOnesWin(t *testing.T) {
	r := &releases{present: &helm.Release{Revision: 3, Status: "deployed", Values: map[string]any{
		"ipam":              map[string]any{"podCIDRs": []any{"10.20.0.0/16"}, "serviceCIDR": "10.99.0.0/16"},
		"controllerManager": map[string]any{"replicas": 2, "config": map[string]any{"defaultLimitsEnforcement": "Soft"}},
		"tag":               "v1",
	}}}
	o := options(t, r, nil)
	o.ClusterLabels, o.EnableMetrics, o.ReservedSubnets = map[string]string{"region": "europe"}, true, []string{"10.3.0.0/16"}
	o.SharingPercentage = new(int32(40))
	o.Values = []map[string]any{{"tag": "v2", "pullPolicy": "Always"}, {"pullPolicy": "Never"}}
	o.Set, o.SetString = []string{"controllerManager.replicas=3,webhook.port=9444"}, []string{"virtualKubelet.extra.annotations.x=1"}
	plan, err := install.Prepare(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiServer": map[string]any{"address": "https://10.0.0.1:6443"},
		"controllerManager": map[string]any{
			"replicas": int64(3), "config": map[string]any{"defaultLimitsEnforcement": "Soft"},
		},
		"discovery": map[string]any{"config": map[string]any{
			"clusterID": "rome", "clusterLabels": map[string]any{"liqo.io/provider": "generic", "region": "europe"},
		}},
		"ipam": map[string]any{
			"podCIDRs": []any{"10.20.0.0/16"}, "serviceCIDR": "10.11.0.0/16", "reservedSubnets": []any{"10.3.0.0/16"},
		},
		"metrics":        map[string]any{"enabled": true},
		"offloading":     map[string]any{"sharingPercentage": int64(40)},
		"pullPolicy":     "Never",
		"tag":            "v2",
		"virtualKubelet": map[string]any{"extra": map[string]any{"annotations": map[string]any{"x": "1"}}},
		"webhook":        map[string]any{"port": int64(9444)},
	}
	if diff := cmp.Diff(want, plan.Values); diff != "" {
		t.Error(diff)
	}
	o.ResetValues = true
	if plan, err = install.Prepare(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	if plan.Settings.PodCIDRs[0] != "10.10.0.0/16" || plan.Values["controllerManager"].(map[string]any)["config"] != nil {
		t.Errorf("the values of the present installation were not forgotten: %v", plan.Values)
	}
}

func TestBadValuesAndSettingsAreRefused(t *testing.T) {
	const next = ": correct the values; docs/reference/values.md lists them, and --reset-values forgets those of the present installation"
	cases := map[string]struct {
		change  func(*install.Options)
		cluster func(*fixture.Options)
		code    failure.Code
		want    string
	}{
		"an unknown key":                     {func(o *install.Options) { o.Set = []string{"gateway.enabled=true"} }, nil, failure.Usage, "the values do not fit the chart: there is no value gateway (did you mean networking.gateway?)" + next},
		"an unknown key deep inside":         {func(o *install.Options) { o.Set = []string{"apiServer.host=x"} }, nil, failure.Usage, "the values do not fit the chart: there is no value apiServer.host" + next},
		"an unknown key that is spelt alike": {func(o *install.Options) { o.Set = []string{"offloading.reflection.secrets.type=AllowList"} }, nil, failure.Usage, "the values do not fit the chart: there is no value offloading.reflection.secrets (did you mean offloading.reflection.secret?)" + next},
		"what only the program can tell": {func(o *install.Options) {
			o.Values = []map[string]any{{"offloading": map[string]any{"twinNamespaces": map[string]any{"network": map[string]any{"peers": []any{map[string]any{"cidr": "10.0.0.0/8"}}}}}}}
		}, nil, failure.Usage,
			"parsing the configuration: error unmarshaling JSON: while decoding JSON: json: unknown field \"cidr\"" + next},
		"what the chart refuses itself": {func(o *install.Options) {
			o.Set = []string{"reflection.secret.type=AllowList,offloading.reflection.secret.type=DenyList"}
		}, nil, failure.Usage,
			"rendering Helm release liqo/liqo: offloading.reflection.secret.type is DenyList, and reflection.secret.type, its deprecated name, AllowList: leave the second out" + next},
		"a value of another type": {func(o *install.Options) { o.Set = []string{"controllerManager.replicas=many"} }, nil, failure.Usage, "the values do not fit the chart: at '/controllerManager/replicas': got string, want integer" + next},
		"too few":                 {func(o *install.Options) { o.Set = []string{"controllerManager.replicas=0"} }, nil, failure.Usage, "the values do not fit the chart: at '/controllerManager/replicas': minimum: got 0, want 1" + next},
		"a word that is none of them": {func(o *install.Options) { o.Values = []map[string]any{{"pullPolicy": "Sometimes"}} }, nil, failure.Usage,
			"the values do not fit the chart: at '/pullPolicy': value must be one of 'Always', 'IfNotPresent', 'Never'" + next},
		"an assignment that is none":       {func(o *install.Options) { o.Set = []string{"tag"} }, nil, failure.Usage, "parsing --set tag: key \"tag\" has no value: write it as KEY=VALUE"},
		"a string assignment that is none": {func(o *install.Options) { o.SetString = []string{"a[x]=1"} }, nil, failure.Usage, ""},
		"a chart that is not there":        {func(o *install.Options) { o.ChartPath = "nowhere" }, nil, failure.Usage, "--local-chart-path: reading the chart: stat nowhere: no such file or directory: give the folder or archive of a chart"},
		"no chart at all":                  {func(o *install.Options) { o.Chart = nil }, nil, failure.Usage, "this program has no chart built in: give the folder or archive of a chart with --local-chart-path"},
		"a chart that is none":             {func(o *install.Options) { o.ChartPath = "." }, nil, failure.Usage, ""},
		"another cluster ID": {func(o *install.Options) { o.ClusterID = "oslo" }, func(o *fixture.Options) { o.ClusterID = "rome" }, failure.Precondition,
			"the cluster ID is rome and cannot be changed to oslo, because peers know the cluster by it: leave --cluster-id out, or uninstall first with 'liqoctl uninstall'"},
		"another cluster ID in values": {func(o *install.Options) { o.ClusterID, o.Set = "", []string{"discovery.config.clusterID=oslo"} }, func(o *fixture.Options) { o.ClusterID = "rome" }, failure.Precondition,
			"the cluster ID is rome and cannot be changed to oslo, because peers know the cluster by it: leave --cluster-id out, or uninstall first with 'liqoctl uninstall'"},
		"a cluster ID in values that is none": {func(o *install.Options) { o.ClusterID, o.Set = "", []string{"discovery.config.clusterID=Oslo"} }, nil, failure.Usage,
			"the cluster ID \"Oslo\" is not valid: use lower-case letters, digits and '-', and begin and end with a letter or digit, for example \"rome-1\": give another one with --cluster-id"},
		"a version that is not the chart's": {func(o *install.Options) { o.Version = "v9.9.9" }, nil, failure.Usage,
			"--version v9.9.9: this liqoctl has the chart of version " + version.Version + ": name the repository that has its chart with --repo-url, or use the liqoctl of that version; other images are chosen with --set tag=TAG"},
		"an image without a name": {func(o *install.Options) { o.Set = []string{"virtualKubelet.image.name="} }, nil, failure.Usage,
			"the values do not fit the chart: at '/virtualKubelet/image/name': '' does not match pattern '^[a-zA-Z0-9][-a-zA-Z0-9._/:]*$'" + next},
		"a range for nodes that pods have": {func(o *install.Options) { o.Set = []string{"networking.enabled=true,ipam.externalCIDR=10.10.3.0/24"} }, nil, failure.Precondition,
			"the external CIDR 10.10.3.0/24 and the pod CIDR 10.10.0.0/16 overlap: choose another one with --set ipam.externalCIDR=CIDR, or leave it out to have a free one found"},
		"a right that only the network module needs": {func(o *install.Options) { o.Set = []string{"networking.enabled=true"} }, func(o *fixture.Options) {
			o.Missing = []string{"create daemonsets.apps in namespace liqo"}
		}, failure.Precondition,
			"you are not allowed to: create daemonsets.apps in namespace liqo (cluster rome): ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"},
		"a right that is missing": {nil, func(o *fixture.Options) {
			o.Missing = []string{"create clusterroles.rbac.authorization.k8s.io", "create deployments.apps in namespace liqo"}
		}, failure.Precondition,
			"you are not allowed to: create clusterroles.rbac.authorization.k8s.io; create deployments.apps in namespace liqo (cluster rome): ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			r := &releases{}
			o := options(t, r, test.cluster)
			if test.change != nil {
				test.change(&o)
			}
			_, err := install.Prepare(context.Background(), o)
			if err == nil || failure.CodeOf(err) != test.code {
				t.Fatalf("got %v (code %d), want code %d", err, failure.CodeOf(err), test.code)
			}
			if test.want != "" && err.Error() != test.want {
				t.Error(cmp.Diff(test.want, err.Error()))
			}
			if len(r.calls) > 0 {
				t.Errorf("a check failed, and yet: %v", r.calls)
			}
		})
	}
}

// A file with all defaults, as of Liqo v1, has empty ranges and an empty address: that says nothing, and what is detected or given by flags counts.
func TestEmptyValuesSayNothing(t *testing.T) {
	empty := map[string]any{
		"apiServer": map[string]any{"address": ""}, "ipam": map[string]any{"podCIDRs": []any{}, "podCIDR": "", "serviceCIDR": "", "externalCIDR": ""},
		"discovery": map[string]any{"config": map[string]any{"clusterID": "", "clusterLabels": map[string]any{}}},
	}
	for sentence, test := range map[string]struct {
		change func(*install.Options)
		pods   string
	}{
		"in a file": {func(o *install.Options) { o.Values = []map[string]any{empty} }, "10.10.0.0/16"},
		"in a file, with flags": {func(o *install.Options) {
			o.Values, o.Wishes.PodCIDRs = []map[string]any{empty}, []string{"10.10.0.0/17"}
		}, "10.10.0.0/17"},
		"one by one": {func(o *install.Options) { o.Set = []string{"ipam.podCIDRs={},ipam.serviceCIDR=,apiServer.address="} }, "10.10.0.0/16"},
		"the one range of v1": {func(o *install.Options) {
			o.Values, o.Set = []map[string]any{empty}, []string{"ipam.podCIDR=10.10.0.0/17"}
		}, "10.10.0.0/17"},
		"under one that is not": {func(o *install.Options) {
			o.Values, o.Set = []map[string]any{empty}, []string{"ipam.podCIDRs={10.10.0.0/17}"}
		}, "10.10.0.0/17"},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := options(t, &releases{}, nil)
			test.change(&o)
			plan, err := install.Prepare(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			ipam := plan.Values["ipam"].(map[string]any)
			got := []any{ipam["podCIDRs"], ipam["serviceCIDR"], plan.Values["apiServer"].(map[string]any)["address"]}
			if diff := cmp.Diff([]any{[]any{test.pods}, "10.11.0.0/16", "https://10.0.0.1:6443"}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What has no effect here is told once, before anything is applied.
func TestValuesOfV1AreTold(t *testing.T) {
	r, recorder := &releases{}, &progress.Recorder{}
	o := options(t, r, nil)
	o.Observer, o.Set = recorder, []string{"telemetry.enabled=false,webhook.replicas=2,reflection.secret.type=AllowList"}
	if _, err := install.Prepare(context.Background(), o); err != nil {
		t.Fatal(err)
	}
	const want = "rome: warning: values of Liqo v1 that are otherwise here: no effect of telemetry.enabled: There is no telemetry, so nothing is sent to anybody. | " +
		"no effect of webhook.replicas: Webhooks are part of the controller manager and answer on all of its pods, so give it as many with controllerManager.replicas. | " +
		"deprecated reflection.secret.type: it is offloading.reflection.secret.type now, which takes it."
	told := 0
	for _, line := range recorder.Lines() {
		if strings.Contains(line, "otherwise here") {
			told++
			if diff := cmp.Diff(want, line); diff != "" {
				t.Error(diff)
			}
		}
	}
	if told != 1 || len(r.calls) > 0 {
		t.Errorf("told %d times: %v %v", told, recorder.Lines(), r.calls)
	}
}

func TestInstallingIsToldStepByStep(t *testing.T) {
	webhook := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "liqo-webhook", Labels: map[string]string{"liqo.io/webhook": "true"}},
		Webhooks:   []admissionregistrationv1.ValidatingWebhook{{Name: "a", ClientConfig: admissionregistrationv1.WebhookClientConfig{CABundle: []byte("ca")}}},
	}
	own := version.Version
	for sentence, test := range map[string]struct {
		present *helm.Release
		calls   []string
		lines   []string
	}{
		"a first installation": {nil, []string{"install"}, []string{"rome: done: Liqo " + own + " is to be installed", "rome: done: Liqo " + own + " installed"}},
		"an upgrade": {&helm.Release{Revision: 1, Status: "deployed", AppVersion: "v0.9.0"}, []string{"upgrade"},
			[]string{"rome: done: Liqo v0.9.0 is installed, and is to be brought to " + own, "rome: done: Liqo upgraded to " + own}},
		"a removal that was interrupted is finished first": {&helm.Release{Revision: 1, Status: "uninstalling", AppVersion: "v0.9.0"}, []string{"uninstall", "install"},
			[]string{"rome: done: Liqo v0.9.0 is installed, and is to be brought to " + own, "rome: Upgrading Liqo to " + own + ": waiting: an interrupted removal to be finished", "rome: done: Liqo upgraded to " + own}},
	} {
		t.Run(sentence, func(t *testing.T) {
			r, recorder := &releases{present: test.present}, &progress.Recorder{}
			o := options(t, r, func(o *fixture.Options) { o.ClusterID, o.Objects = "rome", append(o.Objects, webhook.DeepCopy()) })
			o.ClusterID, o.Observer, o.Timeout = "", recorder, 20*time.Second
			report, err := install.Run(context.Background(), o)
			if err != nil {
				t.Fatal(err)
			}
			detected := "rome: done: provider generic, pod CIDR 10.10.0.0/16 (the nodes' ranges, widened), service CIDR 10.11.0.0/16 (--service-cidr), API server https://10.0.0.1:6443 (the kubeconfig)"
			want := append([]string{"rome: done: Kubernetes v1.36.3 answers, and you may install", test.lines[0], detected, "rome: done: The values fit the chart"}, test.lines[1:]...)
			want = append(want, "rome: done: All pods are ready", "rome: done: The webhooks answer",
				"rome: done: The API server knows Liqo's kinds, which its policies decide by")
			if diff := cmp.Diff(want, recorder.Lines()); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.calls, r.calls); diff != "" {
				t.Error(diff)
			}
			if report.ClusterID != "rome" || report.Version != own {
				t.Errorf("report %+v", report)
			}
		})
	}
}

func TestThePlanCanBeRendered(t *testing.T) {
	plan, err := install.Prepare(context.Background(), options(t, &releases{}, nil))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := plan.Render(context.Background())
	if err != nil || !strings.Contains(manifest, `CLUSTER_ID: "rome"`) {
		t.Errorf("%s, %v", manifest, err)
	}
}

func TestMadeUpIDsAreClusterIDs(t *testing.T) {
	seen := map[string]bool{}
	for i := range 1000 {
		id := install.MadeUpID(strconv.Itoa(i))
		if identity.ValidateClusterID(id) != nil || seen[id] || id != install.MadeUpID(strconv.Itoa(i)) {
			t.Errorf("%s is no cluster ID, or that of another cluster", id)
		}
		seen[id] = true
	}
}

// slice is what is left of a peering of rome with milan, at rome, or at milan with the label of a copy.
func slice(copied bool) *authv1beta1.ResourceSlice {
	rome, milan := corev1beta1.ClusterID("rome"), corev1beta1.ClusterID("milan")
	s := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"},
		Spec: authv1beta1.ResourceSliceSpec{ConsumerClusterID: &rome, ProviderClusterID: &milan}}
	if copied {
		s.Labels = map[string]string{corev1beta1.ReplicatedLabel: "true"}
	}
	return s
}

func TestTheClusterIDIsTheSameAtEveryTry(t *testing.T) {
	for sentence, test := range map[string]struct {
		left   client.Object
		wanted string
		want   string
		err    string
	}{
		"a new cluster":                        {nil, "", "made up", ""},
		"a new cluster with a name":            {nil, "oslo", "oslo", ""},
		"a consumer that was uninstalled":      {slice(false), "", "rome", ""},
		"a provider that was uninstalled":      {slice(true), "", "milan", ""},
		"the same name as before":              {slice(false), "rome", "rome", ""},
		"another name while peerings are left": {slice(false), "oslo", "", "peers know this cluster as rome, says ResourceSlice liqo-tenant-milan/milan"},
	} {
		t.Run(sentence, func(t *testing.T) {
			o := options(t, &releases{}, func(o *fixture.Options) {
				if test.left != nil {
					o.Objects = append(o.Objects, test.left)
				}
			})
			o.ClusterID = test.wanted
			if test.want == "made up" {
				uid, err := o.Cluster.UID(context.Background())
				if err != nil || uid == "" {
					t.Fatal(uid, err)
				}
				test.want = install.MadeUpID(string(uid))
			}
			for range 2 {
				plan, err := install.Prepare(context.Background(), o)
				if test.err != "" {
					if err == nil || !strings.Contains(err.Error(), test.err) || failure.CodeOf(err) != failure.Precondition {
						t.Errorf("got %v, want %q", err, test.err)
					}
				} else if err != nil || plan.ClusterID != test.want {
					t.Errorf("%v, error %v, want %s", plan, err, test.want)
				}
			}
		})
	}
}

func TestReadValues(t *testing.T) {
	values, err := install.ReadValues(context.Background(), strings.NewReader("tag: x"), []string{"-"})
	if diff := cmp.Diff([]map[string]any{{"tag": "x"}}, values); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

// A first installation that failed leaves no name that another one could not have; one that runs, or that peers know, does.
func TestAFirstInstallationThatFailedCanBeNamedAnew(t *testing.T) {
	down := func(o *fixture.Options) {
		for _, object := range o.Objects {
			if deployment, ok := object.(*appsv1.Deployment); ok {
				deployment.Status = appsv1.DeploymentStatus{Replicas: 1}
			}
		}
	}
	peer := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "liqo-tenant-milan", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "milan"}}}
	offloading := &offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
	ip := func(labels map[string]string) client.Object {
		return &ipamv1alpha1.IP{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: labels}}
	}
	for sentence, test := range map[string]struct {
		revision int
		status   string
		change   func(*fixture.Options)
		calls    []string // none if it is refused
	}{
		"Helm failed":                     {1, "failed", nil, []string{"uninstall", "install"}},
		"it was interrupted":              {1, "pending-install", nil, []string{"uninstall", "install"}},
		"it never ran":                    {1, "deployed", down, []string{"uninstall", "install"}},
		"it runs":                         {1, "deployed", nil, nil},
		"an upgrade failed":               {2, "failed", nil, nil},
		"it failed, and peers know of it": {1, "failed", func(o *fixture.Options) { o.Objects = append(o.Objects, peer) }, nil},
		"it failed, and a user offloads":  {1, "failed", func(o *fixture.Options) { o.Objects = append(o.Objects, offloading) }, nil},
		"it failed, and a user has an IP": {1, "failed", func(o *fixture.Options) { o.Objects = append(o.Objects, ip(nil)) }, nil},
		"it failed, and has an IP itself": {1, "failed", func(o *fixture.Options) {
			o.Objects = append(o.Objects, ip(map[string]string{corev1beta1.ManagedLabel: "true"}))
		}, []string{"uninstall", "install"}},
	} {
		t.Run(sentence, func(t *testing.T) {
			r := &releases{present: &helm.Release{Revision: test.revision, Status: test.status, Values: map[string]any{
				"discovery": map[string]any{"config": map[string]any{"clusterID": "keen-otter-123456"}},
			}}}
			o := options(t, r, func(o *fixture.Options) {
				o.Objects = append(o.Objects, fixture.Installed("keen-otter-123456", "", false)...)
				if test.change != nil {
					test.change(o)
				}
			})
			plan, err := install.Prepare(t.Context(), o)
			if test.calls == nil {
				if failure.CodeOf(err) != failure.Precondition || !strings.Contains(err.Error(), "the cluster ID is keen-otter-123456 and cannot be changed to rome") {
					t.Errorf("got %v", err)
				}
				if made := strings.Contains(sentence, "a user"); made != strings.Contains(err.Error(), "web would go with the installation that is removed for that: leave --cluster-id out") {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if _, err := plan.Apply(ctx); len(r.calls) > 0 || err == nil {
				t.Errorf("an interrupted command went on: %v, %v", err, r.calls)
			}
			ctx, cancel = context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, _ = plan.Apply(ctx) // What it then waits for does not come.
			if diff := cmp.Diff(test.calls, r.calls); diff != "" {
				t.Error(diff)
			}
			if id := r.values["discovery"].(map[string]any)["config"].(map[string]any)["clusterID"]; id != "rome" {
				t.Errorf("it is installed as %v", id)
			}
		})
	}
}

// What an earlier 'install PROVIDER' said counts no longer than that; a label that somebody made up stays.
func TestTheProviderLabelFollows(t *testing.T) {
	for sentence, test := range map[string]struct {
		before string
		wish   install.Provider
		want   string
	}{
		"kind was said, and is not any more": {"kind", install.Auto, "generic"},
		"another one is said":                {"kind", install.K3s, "k3s"},
		"a word of the user's":               {"my-metal", install.Auto, "my-metal"},
		"nothing was said":                   {"", install.Auto, "generic"},
	} {
		t.Run(sentence, func(t *testing.T) {
			labels := map[string]any{"region": "europe"}
			if test.before != "" {
				labels["liqo.io/provider"] = test.before
			}
			o := options(t, &releases{present: &helm.Release{Revision: 1, Status: "deployed", Values: map[string]any{
				"discovery": map[string]any{"config": map[string]any{"clusterLabels": labels}},
			}}}, nil)
			o.Wishes.Provider, o.Wishes.PodCIDRs = test.wish, []string{"10.10.0.0/16"}
			plan, err := install.Prepare(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			got := plan.Values["discovery"].(map[string]any)["config"].(map[string]any)["clusterLabels"]
			if diff := cmp.Diff(map[string]any{"region": "europe", "liqo.io/provider": test.want}, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
