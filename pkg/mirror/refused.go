package mirror

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/jsonpatch"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/kube/writers"
	"liqo.io/liqo/pkg/reflection"
)

// refusal is what the provider refused lately, and why: it is not asked for again until the object or the settings change.
type refusal struct{ fingerprint, words string }

// relax gives up what the provider refused, if the kind works without it. It tells the user, once: the remote object carries a note
// of that, which outlives this process.
func (t *task) relax(err error, live reflection.Object) bool {
	if err == nil || t.kind().Relax == nil || t.wanted == nil || !apierrors.IsInvalid(err) && !apierrors.IsForbidden(err) {
		return false
	}
	relaxed, given := t.kind().Relax(t.wanted, err.Error())
	if relaxed == nil {
		return false
	}
	t.wanted = reflection.WithoutPart(relaxed, given)
	words := err.Error()
	if before := t.state.refused; before.fingerprint == t.fingerprint && !strings.Contains(before.words, words) {
		words = before.words + "\n" + words
	}
	t.state.refused = refusal{t.fingerprint, words}
	if note := reflection.RefusedPartOf(t.wanted); live != nil && note != "" && note == reflection.RefusedPartOf(live) {
		return true
	}
	t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonPartiallyReflected,
		fmt.Sprintf("Reflected to cluster %q in part, %s: %s", t.options().Remote, given, err))
	return true
}

// recall gives up at once what the provider refused before.
func (t *task) recall() {
	if t.kind().Relax == nil || t.wanted == nil {
		return
	}
	before := t.state.refused
	if before.words == "" || before.fingerprint != t.fingerprint {
		return
	}
	if relaxed, given := t.kind().Relax(t.wanted, before.words); relaxed != nil {
		t.wanted = reflection.WithoutPart(relaxed, given)
	}
}

// rehearse finds out, by a dry run, whether the provider takes the object that is to stand in for a live one which has to go first.
// What it would not take leaves the live one where it is: an old copy is better than none. A part that the provider refuses is no
// reason, if the live one has to go without that part, too: it may be what is in its way.
func (t *task) rehearse(ctx context.Context, c client.WithWatch, live reflection.Object, why string) error {
	err := t.tryCreate(ctx, c, t.wanted)
	if err != nil && t.kind().Relax != nil {
		relaxed, _ := t.kind().Relax(t.wanted, err.Error())
		if relaxed != nil && decide(t.kind(), t.options().Home, t.options().Remote, relaxed, live).action == replace {
			err = t.tryCreate(ctx, c, relaxed)
		}
	}
	switch {
	case err == nil, apierrors.IsAlreadyExists(err), replaceable(err):
		return nil
	case reconcile.Classify(err) == reconcile.Transient:
		return t.failed("trying to replace", err)
	default:
		return t.failed(fmt.Sprintf("the last copy stays, because %s cannot be changed in place, and what is to replace it is refused: replacing", why), err)
	}
}

// tryCreate creates an object like the wanted one in a dry run. The name is free, unlike that which is meant.
func (t *task) tryCreate(ctx context.Context, c client.WithWatch, wanted reflection.Object) error {
	sum := sha256.Sum256([]byte(t.remoteName))
	object := wanted.DeepCopyObject().(reflection.Object)
	object.SetName("liqo-try-" + hex.EncodeToString(sum[:8]))
	call, cancel := t.call(ctx)
	defer cancel()
	return c.Create(call, object, client.DryRunAll, client.FieldOwner(FieldManager))
}

// replaceable tells whether a refusal says nothing against replacing an object. Quotas count the live one too, and are asked last of
// all; a webhook that knows no dry runs cannot be asked.
func replaceable(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota") ||
		apierrors.IsBadRequest(err) && strings.Contains(err.Error(), "does not support dry run")
}

// dropped is what the provider's API server is known not to keep of one content, as long as it has one version.
type dropped struct {
	content [sha256.Size]byte
	version string
	fields  []string
}

// all tells whether all these fields of a content are known to be dropped.
func (d dropped) all(content [sha256.Size]byte, version string, fields []string) bool {
	return d.content == content && d.version == version &&
		!slices.ContainsFunc(fields, func(field string) bool { return !slices.Contains(d.fields, field) })
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
	case t.state.dropped.all(t.content(), t.options().Peer.Version(), fields):
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
	t.state.dropped = dropped{content: t.content(), version: version, fields: fields}
	t.runner.engine.reporter.failed(t.kind().Name, t.namespace, offloadingv1beta1.ReasonPartiallyReflected)
	if note := reflection.NoteFor(fields); note != reflection.NoteOf(live) {
		t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonPartiallyReflected, fmt.Sprintf(
			"Reflected to cluster %q without %s: %s does not know that or has it turned off", t.options().Remote, note, kubernetes(version)))
	}
	t.enqueue(t.name)
	return true, nil
}

// stepsTo are the steps of a patch that makes the changes to the live object, and to no other.
func (t *task) stepsTo(d decision, live reflection.Object) jsonpatch.Patch {
	patch := append(testOwner(t.options()), jsonpatch.Test(live.GetUID(), "metadata", "uid"), testOrigin(t.wanted))
	return append(patch, steps(d.changes, true)...)
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

// keep leaves a live object what is not worth making it anew for. It tells the user, once: the remote object carries a note of that,
// which outlives this process.
func (t *task) keep(live reflection.Object) {
	if t.kind().Keep == nil || t.wanted == nil || live == nil || !reflection.IsOurs(live, t.options().Home, t.options().Remote) ||
		reflection.OriginUID(live) != reflection.OriginUID(t.wanted) {
		return
	}
	kept, what := t.kind().Keep(live, t.wanted)
	if kept == nil {
		t.state.kept = ""
		return
	}
	t.wanted = kept
	news := t.state.kept != what
	t.state.kept = what
	if news && reflection.RefusedPartOf(live) != reflection.RefusedPartOf(kept) {
		t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonPartiallyReflected, fmt.Sprintf(
			"Reflected to cluster %q in part: %s; delete the object and create it anew to change that", t.options().Remote, what))
	}
}

// lacks tells the user what an object does not have at the provider, when it is made and when what it is noted to lack changes: not again and
// again while somebody there keeps deleting the object.
func (t *task) lacks(made reflection.Object) {
	if t.kind().Lacks == nil || t.local == nil {
		return
	}
	if what := t.kind().Lacks(t.local, made); what != "" && t.state.lacked.again(what, t.options().Clock.Now()) {
		t.runner.engine.reporter.event(t.local, corev1.EventTypeWarning, offloadingv1beta1.ReasonPartiallyReflected,
			fmt.Sprintf("Reflected to cluster %q in part: %s", t.options().Remote, what))
	}
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
