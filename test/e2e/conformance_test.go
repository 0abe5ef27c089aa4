package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/conformance/upstream"
	"liqo.io/liqo/test/lab/binary"
	"liqo.io/liqo/test/lab/step"
)

const (
	// conformanceTests is how many of Kubernetes' tests run at a time: as many as leave time for the last ones.
	conformanceTests = 10
	conformanceTime  = 20 * time.Minute
	// frameworkLabel is on every namespace that Kubernetes' tests make.
	frameworkLabel = "e2e-framework"
)

// addressed are parts of the names of tests that give a pod at the provider the address under which this cluster sees another one there, or that
// have the API server call a pod itself. Where Liqo connects the networks neither has a way: how this cluster sees the provider means nothing to the
// provider, and the lab's API servers do not run on nodes.
var addressed = []string{"Lifecycle Hook", "serve a basic image on each replica", "Granular Checks: Pods", "DNS for pods for Hostname"}

// TestConformance runs forty of Kubernetes' own tests with all of their pods on the virtual node; `make conformance` runs them all.
func TestConformance(t *testing.T) {
	the.alone(t)
	steps := step.NewLines(t.Output(), clock.RealClock{})
	programs, err := binary.Ensure(t.Context(), upstream.Programs, steps)
	if err != nil {
		t.Fatal(err)
	}
	cache, err := binary.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	archives, err := upstream.Archives(t.Context(), programs, filepath.Join(cache, "images"), steps)
	if err != nil {
		t.Fatal(err)
	}
	if err := the.breaks(t).Load(t.Context(), archives, provider); err != nil {
		t.Fatal(err)
	}
	report := &upstream.Report{Processes: conformanceTests}
	report.Tests = slices.DeleteFunc(upstream.Tests(), func(test upstream.Test) bool {
		needs := func(part string) bool { return strings.Contains(test.Name, part) }
		return !test.Quick || the.world.connects() && slices.ContainsFunc(addressed, needs)
	})
	r := upstream.Run{
		Programs: programs, Processes: conformanceTests, Folder: t.TempDir(), Timeout: conformanceTime,
		IgnoredTaints: []string{offloadingv1beta1.VirtualNodeTaint},
	}
	r = r.Of(report.Tests, func(test upstream.Test) bool { return test.Fails != "" })
	for _, node := range the.rome.ownNodes() {
		t.Cleanup(func() { the.kubectl(t, the.rome, soon, "uncordon", node).succeeds(t) })
		the.kubectl(t, the.rome, soon, "cordon", node).succeeds(t)
	}
	if report.Virtual, report.Pods, err = upstream.OnVirtualNode(t.Context(), the.rome.config, the.milan.config, t.TempDir(), r); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s", report.Markdown())
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if len(report.Pods.Remote) == 0 {
		t.Error("no pod started at the provider")
	}
	eventually(t, 2*patience, "the tests' namespaces to be gone", func(ctx context.Context) (bool, string) {
		list := &corev1.NamespaceList{}
		if err := the.rome.List(ctx, list, client.HasLabels{frameworkLabel}); err != nil {
			return false, err.Error()
		}
		return len(list.Items) == 0, fmt.Sprintf("%d namespaces", len(list.Items))
	})
}
