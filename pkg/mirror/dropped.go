package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// dropped is what the provider's API server is known not to keep of one content, as long as it has one version.
type dropped struct {
	content [sha256.Size]byte
	version string
	fields  []string
}

// compare decides what to do with the live object, without the fields that are known to be dropped. What is there stays wanted: an
// API server that drops a field does not hold it.
func (t *task) compare(live reflection.Object) decision {
	t.keep(live)
	d := t.decide(live)
	if d.action != change || t.kind().WriteOnly() {
		return d
	}
	fields, rest := reflection.Missing(live, t.wanted, d.changes)
	switch {
	case len(fields) == 0:
		return d
	case t.state.drops(t.content(), t.options().Peer.Version(), fields):
		t.wanted = reflection.Noted(rest, reflection.NoteFor(fields))
		t.fingerprint += "/without " + strings.Join(fields, ",")
	default:
		// What was noted earlier is no difference until it is known to be true no more.
		t.wanted = reflection.Noted(t.wanted, reflection.NoteOf(live))
	}
	return t.decide(live)
}

// tryDropped finds out, by a dry run, whether the provider's API server would drop what a live object lacks, if it lacks nothing
// else. If so this is told, remembered and noted on the remote object, and nothing is written for it any more. What somebody took
// out of an object that held it is not meant.
func (t *task) tryDropped(ctx context.Context, c client.WithWatch, d decision, live reflection.Object) (known bool, err error) {
	if t.kind().WriteOnly() || t.drifted() {
		return false, nil
	}
	fields, rest := reflection.Missing(live, t.wanted, d.changes)
	if len(fields) == 0 || decide(t.kind(), t.options().Home, t.options().Remote, rest, live).action != leave {
		return false, nil
	}
	answer, err := t.patch(ctx, c, t.stepsTo(d, live), client.DryRunAll)
	switch {
	case err != nil && reconcile.Classify(err) == reconcile.Transient:
		return false, t.failed("trying to change", err)
	case err != nil:
		return false, nil // The write itself will be refused likewise, or admission there knows no dry runs.
	}
	lacking, _ := reflection.Missing(answer, t.wanted, t.decide(answer).changes)
	if !slices.Equal(lacking, fields) {
		return false, nil
	}
	version := t.options().Peer.Version()
	t.state.learn(dropped{content: t.content(), version: version, fields: fields})
	t.runner.engine.reporter.failed(t.kind().Name, t.namespace, offloadingv1beta1.ReasonPartiallyReflected)
	if note := reflection.NoteFor(fields); note != reflection.NoteOf(live) {
		t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonPartiallyReflected, fmt.Sprintf(
			"Reflected to cluster %q without %s: %s does not know that or has it turned off", t.options().Remote, note, kubernetes(version)))
	}
	t.enqueue(t.name)
	return true, nil
}

// stepsTo are the steps of a patch that makes the changes to the live object, and to no other.
func (t *task) stepsTo(d decision, live reflection.Object) []any {
	list := append(testOwner(t.options().Home, t.options().Remote), testLive(live), testOrigin(t.wanted))
	return append(list, steps(d.changes, true)...)
}

// content identifies what is wanted.
func (t *task) content() [sha256.Size]byte {
	wanted := reflection.Noted(t.wanted, "-")
	data, err := json.Marshal(wanted)
	if err != nil {
		return [sha256.Size]byte{} // It could not be sent either.
	}
	return sha256.Sum256(data)
}

// drops tells whether all these fields of a content are known to be dropped.
func (s *state) drops(content [sha256.Size]byte, version string, fields []string) bool {
	known := s.dropped
	return known.content == content && known.version == version &&
		!slices.ContainsFunc(fields, func(field string) bool { return !slices.Contains(known.fields, field) })
}

// learn takes note of what is dropped.
func (s *state) learn(d dropped) {
	s.dropped = d
}

// refit looks at all objects again if the provider's API server has another version now, which may keep other fields.
func (e *Engine) refit() {
	version := e.options.Peer.Version()
	before := e.version
	e.version = version
	if before != "" && version != before {
		e.each(func(r *runner) { r.reconsider("") })
	}
}

// kubernetes names the provider's API server, by its version if that is known.
func kubernetes(version string) string {
	if version == "" {
		return "the provider's Kubernetes"
	}
	return "the provider's Kubernetes (" + version + ")"
}
