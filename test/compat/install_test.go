package compat

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/charts"
	"liqo.io/liqo/pkg/cli/action/install"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/helm"
	"liqo.io/liqo/pkg/cli/progress"
)

// nothing is Helm where no release is; whatever is applied fails the test.
type nothing struct{ helm.Client }

func (nothing) Get(context.Context, string) (*helm.Release, error) { return nil, nil }

// prepare does what 'liqoctl install' does before anything is applied, and returns what it warns of.
func prepare(t *testing.T, values map[string]any) (warnings []string, err error) {
	t.Helper()
	worker := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{PodCIDRs: []string{"10.10.0.0/24"}}}
	cluster := fixture.New(t, fixture.Options{Name: "rome", Objects: []client.Object{worker}}).Cluster
	cluster.Config.Host = "https://10.0.0.1:6443"
	recorder := &progress.Recorder{}
	_, err = install.Prepare(t.Context(), install.Options{
		Cluster: cluster, Chart: charts.Liqo(), Helm: nothing{}, Observer: recorder, ClusterID: "rome",
		Wishes: install.Wishes{ServiceCIDR: "10.11.0.0/16"}, Values: []map[string]any{values},
	})
	for _, line := range recorder.Lines() {
		if warning, is := strings.CutPrefix(line, "rome: warning: "); is {
			warnings = append(warnings, warning)
		}
	}
	return warnings, err
}

// 'liqoctl install' takes the default values of Liqo v1 as a file: its empty ranges and address say nothing.
func TestTheDefaultValuesOfV1AreInstalled(t *testing.T) {
	warnings, err := prepare(t, whole(values(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0], "no effect of metricAgent.enabled: ") || !strings.Contains(warnings[0], "no effect of proxy.enabled: ") {
		t.Errorf("users are warned of %q", warnings)
	}
}

// Each of these is one value that users of Liqo v1 have: it is taken, and told in one warning if it has no effect, or refused with one sentence.
func TestOneValueOfV1IsEnough(t *testing.T) {
	for values, want := range map[string]string{
		"telemetry: {enabled: false}":      "no effect of telemetry.enabled: ",
		"proxy: {enabled: false}":          "no effect of proxy.enabled: ",
		"webhook: {replicas: 2}":           "no effect of webhook.replicas: ",
		"openshiftConfig: {enabled: true}": "no effect of openshiftConfig.enabled: ",
		"networking: {gatewayTemplates: {wireguard: {implementation: userspace}}}": "no effect of networking.gatewayTemplates.wireguard.implementation: ",
		"metricAgent: {enabled: false}":                                            "no effect of metricAgent.enabled: ",
		"crdReplicator: {pod: {resources: {limits: {cpu: 1}}}}":                    "no effect of crdReplicator.pod.resources.limits: ",
		"ipam: {internal: {replicas: 2}}":                                          "no effect of ipam.internal.replicas: ",
		"networking: {fabric: {config: {nftablesMonitor: true}}}":                  "no effect of networking.fabric.config.nftablesMonitor: ",
		"networking: {gateway: {mssclamp: {value: 1300}}}":                         "no effect of networking.gateway.mssclamp.value: ",
		"reflection: {configmap: {type: AllowList}}":                               "deprecated reflection.configmap.type: ",
		"ipam: {podCIDR: 10.10.0.0/16}":                                            "",
		"offloading: {runtimeClass: {labels: {a: b}}}":                             "",
		"controllerManager: {replicas: 2}":                                         "",
		"networking: {fabric: {image: {name: ghcr.io/liqotech/fabric}}}":           "",
		"tag: v1.2.0": "refused: rendering Helm release liqo/liqo: image ghcr.io/liqotech/",
		"controllerManager: {image: {version: v1.0.1}}":                                        "refused: rendering Helm release liqo/liqo: image ghcr.io/liqotech/liqo-controller-manager:v1.0.1 is of Liqo v1, ",
		"virtualKubelet: {image: {version: 1.2.0-rc.1}}":                                       "refused: rendering Helm release liqo/liqo: image ghcr.io/liqotech/virtual-kubelet:1.2.0-rc.1 is of Liqo v1, ",
		"networking: {fabric: {image: {name: ghcr.io/liqotech/fabric, version: v1.1.2}}}":      "refused: rendering Helm release liqo/liqo: image ghcr.io/liqotech/liqo-fabric:v1.1.2 is of Liqo v1, ",
		"controllerManager: {image: {name: mirror.example/manager, version: v1.2.0}}":          "maybe of Liqo v1 controllerManager.image: Its tag is that of a program of v1, which does not run here; if it is one, give an image of this Liqo.",
		"networking: {fabric: {image: {name: mirror.example/liqotech/fabric, version: mine}}}": "maybe of Liqo v1 networking.fabric.image: Its name is that of a program of v1, ",
		"tag: v2.0.0": "",
		"networking: {gatewayTemplates: {replicas: 2}}":                         "refused: the values do not fit the chart: at '/networking/gatewayTemplates/replicas': maximum: got 2, want 1",
		"virtualKubelet: {extra: {args: [--enable-storage, --klog.verbose=4]}}": "refused: rendering Helm release liqo/liqo: virtualKubelet.extra.args[1]: virtual-kubelet has no flag --klog.verbose",
		"controllerManager: {pod: {extraArgs: [--cluster-labels=a=b]}}":         "refused: rendering Helm release liqo/liqo: controllerManager.pod.extraArgs[0]: liqo-controller-manager has no flag --cluster-labels",
		"telemetri: {enabled: false}":                                           "refused: the values do not fit the chart: there is no value telemetri (did you mean telemetry?)",
		"proxy: {enable: false}":                                                "refused: the values do not fit the chart: there is no value proxy.enable (did you mean proxy.enabled?)",
	} {
		t.Run(values, func(t *testing.T) {
			warnings, err := prepare(t, given(t, values))
			got := strings.TrimPrefix(strings.Join(warnings, "\n"), "values of Liqo v1 that are otherwise here: ")
			if err != nil {
				got = "refused: " + err.Error()
			}
			if (want == "") != (got == "") || !strings.HasPrefix(got, want) || strings.Contains(got, "\n") {
				t.Errorf("%q, want %q", got, want)
			}
			if err != nil && failure.CodeOf(err) != failure.Usage {
				t.Errorf("exit code %d", failure.CodeOf(err))
			}
		})
	}
}
