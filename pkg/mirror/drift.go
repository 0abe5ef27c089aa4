package mirror

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// maxManager bounds the name of a field manager, as API servers do; this one comes from the peer.
const maxManager = 128

// drifted tells whether the live object was in step before, so that somebody at the provider must have changed it. Of an
// object that was never seen in step nobody knows.
func (t *task) drifted() bool {
	return t.fingerprint != "" && t.state.settled(t.fingerprint)
}

// news tells whether that is to be told once it is put back, because it was not told lately.
func (t *task) news() bool { return t.drifted() && t.state.mayTell(t.options().Clock.Now()) }

// meddler reads who changed the first of the fields that are to be put back. It is asked before they are, because the answer
// is gone afterwards; that it cannot be had keeps nobody from putting them back.
func (t *task) meddler(ctx context.Context, c client.WithWatch, changes []reflection.Change) string {
	call, cancel := t.call(ctx)
	defer cancel()
	live := t.runner.twin.NewObject()
	if err := c.Get(call, t.remoteKey(), live); err != nil {
		return ""
	}
	return lastManager(live.GetManagedFields(), changes[0].Path)
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
	return changes, lastManager(live.GetManagedFields(), field)
}

// putBack tells that somebody's change at the provider was undone. No changes stand for content of which nobody knows.
func (t *task) putBack(changes []reflection.Change, manager string) {
	t.state.tells(t.options().Clock.Now())
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

// lastManager is the one other than us who wrote a field last, as far as the record of managed fields tells; empty if it
// does not. A field that was removed is in nobody's record: then it is whoever wrote anything last.
func lastManager(entries []metav1.ManagedFieldsEntry, path []string) string {
	var owner, latest metav1.ManagedFieldsEntry
	for i := range entries {
		entry := entries[i]
		if entry.Manager == FieldManager || entry.Subresource != "" {
			continue
		}
		if owns(&entry, path) && !before(entry.Time, owner.Time) {
			owner = entry
		}
		if !before(entry.Time, latest.Time) {
			latest = entry
		}
	}
	if owner.Manager == "" {
		owner = latest
	}
	return strings.ToValidUTF8(owner.Manager[:min(len(owner.Manager), maxManager)], "")
}

func before(a, b *metav1.Time) bool { return stamp(a).Before(stamp(b)) }

func stamp(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// owns tells whether an entry holds the field, something in it, or something that it is in.
func owns(entry *metav1.ManagedFieldsEntry, path []string) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var set fieldpath.Set
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return false
	}
	found := false
	set.Iterate(func(p fieldpath.Path) { found = found || along(p, path) })
	return found
}

// along tells whether one path leads to the other.
func along(p fieldpath.Path, path []string) bool {
	for i := range min(len(p), len(path)) {
		if p[i].FieldName == nil || *p[i].FieldName != path[i] {
			return false
		}
	}
	return true
}
