package reflection

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// D10: what the provider's API server does not keep is told once and written no more, by this engine or the next one. An admission
// policy plays the server that does not know the field.
func TestD10DroppedField(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "service")
	w.policy("has(object.spec.trafficDistribution) ? [JSONPatch{op: 'remove', path: '/spec/trafficDistribution'}] : []")
	fixture.Await(w, fixture.Patience, "the provider to drop the field", func(ctx context.Context) (bool, string) {
		probe := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": w.twin, "name": "probe"},
			"spec": map[string]any{"trafficDistribution": "PreferSameZone", "ports": []any{map[string]any{"port": int64(80)}}},
		}}
		err := env.Milan.Client.Create(ctx, probe, client.DryRunAll)
		_, kept, _ := unstructured.NestedString(probe.Object, "spec", "trafficDistribution")
		return err == nil && !kept, fmt.Sprintf("kept: %v, error %v", kept, err)
	})

	start := env.Milan.Recorder.Now(t)
	shop := specimens["service"].make("zoned").(*corev1.Service)
	shop.Spec.TrafficDistribution = ptr.To(corev1.ServiceTrafficDistributionPreferSameZone)
	w.put(shop)
	w.told(offloadingv1beta1.ReasonPartiallyReflected, "spec.trafficDistribution")
	w.noted("zoned", "spec.trafficDistribution")
	w.mark("first")
	writes := w.writes(start, "zoned")
	if diff := cmp.Diff([]string{"create", "patch"}, writes); diff != "" {
		t.Errorf("writes: %s", diff)
	}

	start = env.Milan.Recorder.Now(t)
	w.restart()
	w.mark("second")
	if writes := w.writes(start, "zoned"); len(writes) > 0 {
		t.Errorf("writes after a restart: %v", writes)
	}
	told := slices.DeleteFunc(slices.Collect(strings.Lines(w.events.all())), func(event string) bool {
		return !strings.HasPrefix(event, offloadingv1beta1.ReasonPartiallyReflected)
	})
	if len(told) != 1 {
		t.Errorf("told: %v", told)
	}
	for _, problem := range w.engine.Problems() {
		t.Errorf("problem: %+v", problem)
	}
}

// noted waits until the copy carries a note of dropped fields.
func (w *world) noted(name, note string) {
	w.Helper()
	fixture.Await(w, fixture.Patience, "the copy to note "+note, func(ctx context.Context) (bool, string) {
		remote := w.remote(ctx, name)
		if remote == nil {
			return false, "there is no copy"
		}
		return reflection.NoteOf(remote) == note, fmt.Sprint(remote.GetAnnotations())
	})
}

// mark lets something else cross: what was queued before has had its turn.
func (w *world) mark(name string) {
	w.Helper()
	w.put(specimens["service"].make(name))
	w.converged(name)
}
