package mirror

import (
	"context"
	"fmt"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/registry"
	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/kube/writers"
	"liqo.io/liqo/pkg/reflection"
)

// Values of the label result.
const (
	resultCreated = "created"
	resultUpdated = "updated"
	resultDeleted = "deleted"
	// resultBroughtBack is a write of the local status.
	resultBroughtBack = "broughtback"
)

// reporter tells what happened: Events to users, metrics to operators.
type reporter struct {
	recorder Recorder
	items    *prometheus.CounterVec
	errors   *prometheus.CounterVec
}

func newReporter(o Options) (*reporter, error) {
	constant := prometheus.Labels{"cluster_id": o.Remote, "node_name": o.NodeName}
	r := &reporter{
		recorder: o.Recorder,
		items: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_virtual_kubelet_reflection_item_counter", ConstLabels: constant,
			Help: "Writes that reflection made, at the provider unless the result is broughtback, by namespace, kind and result.",
		}, []string{"namespace", "reflector_resource", "result"}),
		errors: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "liqo_virtual_kubelet_reflection_error_counter", ConstLabels: constant,
			Help: "Failures of reflection, by namespace, kind and reason.",
		}, []string{"namespace", "reflector_resource", "reason"}),
	}
	for _, counter := range []**prometheus.CounterVec{&r.items, &r.errors} {
		var err error
		if *counter, err = registry.Ensure(o.Registerer, *counter); err != nil {
			return nil, fmt.Errorf("counting what reflection does: %w", err)
		}
	}
	return r, nil
}

func (r *reporter) done(kind, namespace, result string) {
	r.items.WithLabelValues(namespace, kind, result).Inc()
}

func (r *reporter) failed(kind, namespace, reason string) {
	r.errors.WithLabelValues(namespace, kind, reason).Inc()
}

// forget drops the series of a namespace that is no longer reflected.
func (r *reporter) forget(namespace string) {
	r.items.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
	r.errors.DeletePartialMatch(prometheus.Labels{"namespace": namespace})
}

func (r *reporter) event(object reflection.Object, kind, reason, message string) {
	if r.recorder != nil {
		r.recorder.Event(object.DeepCopyObject(), kind, reason, message)
	}
}

// NewErrorCounter returns the counter of failures of reflection to a provider through a virtual node, by namespace, kind and reason. It
// is the one that Engines of the same registerer count in.
func NewErrorCounter(registerer prometheus.Registerer, remote, node string) (*prometheus.CounterVec, error) {
	reporter, err := newReporter(Options{Remote: remote, NodeName: node, Registerer: registerer})
	if err != nil {
		return nil, err
	}
	return reporter.errors, nil
}

// drifted tells whether the live object was in step before, so that somebody at the provider must have changed it. Of an
// object that was never seen in step nobody knows.
func (t *task) drifted() bool {
	return t.fingerprint != "" && t.state.inStep == t.fingerprint
}

// news tells whether that is to be told once it is put back, because it was not told lately.
func (t *task) news() bool {
	return t.drifted() && restraint.Due(t.state.reverted, t.options().Clock.Now())
}

// meddler reads who changed the first of the fields that are to be put back. It is asked before they are, because the answer
// is gone afterwards; that it cannot be had keeps nobody from putting them back.
func (t *task) meddler(ctx context.Context, c client.WithWatch, changes []reflection.Change) string {
	call, cancel := t.call(ctx)
	defer cancel()
	live := t.runner.twin.NewObject()
	if err := c.Get(call, t.remoteKey(), live); err != nil {
		return ""
	}
	return writers.Last(live.GetManagedFields(), changes[0].Path, FieldManager)
}

// unseenMeddler is meddler for an object that can only be written, and tells which fields are to be put back: a dry run shows both.
func (t *task) unseenMeddler(ctx context.Context, c client.WithWatch) (changes []reflection.Change, manager string) {
	live, err := t.probe(ctx, c)
	if err != nil {
		return nil, ""
	}
	var field []string
	if changes = t.decide(live).changes; len(changes) > 0 {
		field = changes[0].Path
	}
	return changes, writers.Last(live.GetManagedFields(), field, FieldManager)
}

// putBack tells that somebody's change at the provider was undone. No changes stand for content of which nobody knows.
func (t *task) putBack(changes []reflection.Change, manager string) {
	t.state.reverted = t.options().Clock.Now()
	what, by := "The content", "somebody"
	if len(changes) > 0 {
		what = "Field " + strings.Join(changes[0].Path, ".")
	}
	if manager != "" {
		by = fmt.Sprintf("field manager %q", manager)
	}
	t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonRemoteChangeReverted,
		fmt.Sprintf("%s of %s/%s in cluster %q was changed by %s; it was put back", what, t.pair.twin, t.remoteName, t.options().Remote, by))
}
