package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/image"
	"liqo.io/liqo/test/lab/step"
)

const (
	metricsServerImage    = "lab.liqo.io/metrics-server:1"
	metricsServerManifest = "testdata/metrics-server.yaml"
	// burner is idle, and busy while /tmp/burn is there.
	burner = `while true; do if [ -f /tmp/burn ]; then i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; else sleep 1; fi; done`
	// measured is how long a metrics-server takes to measure what has just changed, on a busy machine: it looks every 15 s, twice.
	measured = 2 * time.Minute
)

// TestAutoscaling has the real metrics-server measure pods in both clusters: kubectl top shows them, and a HorizontalPodAutoscaler scales by them.
func TestAutoscaling(t *testing.T) {
	the.alone(t)
	the.measures(t)
	const namespace, app = "scaled", "burner"
	the.offloaded(t, namespace)
	spec := script(burner)
	spec.NodeSelector = nil
	spec.Containers[0].Resources = corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("8Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"), corev1.ResourceMemory: resource.MustParse("32Mi")},
	}
	spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
		MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: selector(app),
		NodeTaintsPolicy: ptr.To(corev1.NodeInclusionPolicyHonor),
	}}
	scaled := deployment(namespace, app, 2, spec)
	the.rome.creates(t, scaled, &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: named(namespace, app),
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: app},
			MinReplicas:    ptr.To[int32](2), MaxReplicas: 4,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To[int32](60)},
			}}},
			Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: ptr.To[int32](0)}},
		},
	})
	pods := the.rome.ready(t, namespace, app, 2)
	if nodes := nodesOf(pods); len(nodes) != 2 || !slices.Contains(nodes, virtualNode) {
		t.Fatalf("the pods run on %v, want the virtual node and another one", nodes)
	}
	t.Run("kubectl top shows pods and nodes of both clusters", func(t *testing.T) {
		the.tops(t, measured, "every node and pod", []string{"node"}, func(used map[string]int64) bool {
			_, home := used[the.rome.ownNodes()[0]]
			_, remote := used[virtualNode]
			return home && remote
		})
		the.tops(t, measured, "both pods, idle", []string{"pod", "-n", namespace}, func(used map[string]int64) bool {
			return len(used) == 2 && used[pods[0].Name] < 60 && used[pods[1].Name] < 60
		})
	})
	burn := func(command ...string) {
		for i := range pods {
			the.kubectl(t, the.rome, soon, append([]string{"exec", "-n", namespace, pods[i].Name, "--"}, command...)...).succeeds(t)
		}
	}
	t.Run("it is scaled up by what pods at home and at the provider use", func(t *testing.T) {
		burn("touch", "/tmp/burn")
		the.tops(t, measured, "both pods, busy", []string{"pod", "-n", namespace}, func(used map[string]int64) bool {
			return used[pods[0].Name] > 100 && used[pods[1].Name] > 100
		})
		all := the.rome.readyWithin(t, 2*measured, namespace, app, 4)
		if nodes := nodesOf(all); len(nodes) != 2 {
			t.Errorf("the pods run on %v", nodes)
		}
		the.tops(t, measured, "the virtual node, busy", []string{"node"}, func(used map[string]int64) bool { return used[virtualNode] > 100 })
	})
	t.Run("it is scaled down when they rest", func(t *testing.T) {
		burn("rm", "/tmp/burn")
		eventually(t, 2*measured, "two pods to be left", func(ctx context.Context) (bool, string) {
			left, err := the.rome.pods(ctx, namespace, client.MatchingLabels{appLabel: app})
			return err == nil && len(left) == 2, fmt.Sprintf("%s, error %v", describe(left), err)
		})
	})
}

// measures runs the real metrics-server in rome and milan until the test ends.
func (s *suite) measures(t *testing.T) {
	t.Helper()
	programs, err := binary.Ensure(t.Context(), []string{binary.MetricsServer}, step.NewLines(t.Output(), clock.RealClock{}))
	if err != nil {
		t.Fatal(err)
	}
	packed := image.Image{
		Reference: metricsServerImage, Entrypoint: []string{"/metrics-server"}, User: "1000",
		Files: []image.File{{Path: "/metrics-server", Source: programs[binary.MetricsServer]}, {Path: "/tmp", Dir: true}},
	}
	archive, err := packed.Archive(filepath.Join(s.folder, "images"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.breaks(t).Load(t.Context(), []string{archive}, consumer, provider); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*side{s.rome, s.milan} {
		t.Cleanup(func() {
			if !kept(t) {
				s.kubectl(t, c, time.Minute, "delete", "-f", metricsServerManifest, "--wait").succeeds(t)
			}
		})
		s.kubectl(t, c, soon, "apply", "-f", metricsServerManifest).succeeds(t)
	}
	for _, c := range []*side{s.rome, s.milan} {
		s.kubectl(t, c, measured, "wait", "apiservice/v1beta1.metrics.k8s.io", "--for=condition=Available", "--timeout=100s").succeeds(t)
	}
}

// topLine is a line of kubectl top: a name, and thousandths of a processor.
var topLine = regexp.MustCompile(`(?m)^(\S+) +(\d+)m `)

// tops waits until kubectl top at rome shows, by name, what is expected, in thousandths of a processor.
func (s *suite) tops(t *testing.T, within time.Duration, what string, args []string, good func(used map[string]int64) bool) {
	t.Helper()
	eventually(t, within, "kubectl top to show "+what, func(context.Context) (bool, string) {
		out, err := perform(soon, s.kubectlCommand(s.rome, append([]string{"top"}, args...)...))
		used := map[string]int64{}
		for _, line := range topLine.FindAllStringSubmatch(out.stdout, -1) {
			used[line[1]], _ = strconv.ParseInt(line[2], 10, 64)
		}
		return err == nil && good(used), strings.TrimSpace(out.String())
	})
}

// nodesOf are the nodes on which pods run.
func nodesOf(pods []corev1.Pod) (nodes []string) {
	for i := range pods {
		nodes = append(nodes, pods[i].Spec.NodeName)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}
