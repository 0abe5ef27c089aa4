// Package writers tells who wrote a field of an object, by the API server's record of managed fields.
package writers

import (
	"bytes"
	"cmp"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// maxName bounds the name of a field manager, as API servers do; it may come from a peer.
const maxName = 128

// Last is the field manager other than self who wrote a field last, as far as the record tells; empty if it does not. A field that was
// removed is in nobody's record: then it is whoever wrote anything last. The name is bounded, and to be quoted where it is shown.
func Last(entries []metav1.ManagedFieldsEntry, field []string, self string) string {
	var owner, latest metav1.ManagedFieldsEntry
	for i := range entries {
		entry := entries[i]
		if entry.Manager == self || entry.Subresource != "" {
			continue
		}
		if some(&entry, false, func(p fieldpath.Path) bool { return along(p, field) }) && !before(entry.Time, owner.Time) {
			owner = entry
		}
		if !before(entry.Time, latest.Time) {
			latest = entry
		}
	}
	if owner.Manager == "" {
		owner = latest
	}
	return strings.ToValidUTF8(owner.Manager[:min(len(owner.Manager), maxName)], "")
}

// Of are the field managers that hold a field or something in it. A record that cannot be read may stand for anything.
func Of(object metav1.Object, field []string) []string {
	var writers []string
	entries := object.GetManagedFields()
	for i := range entries {
		if some(&entries[i], true, func(p fieldpath.Path) bool { return len(p) >= len(field) && along(p, field) }) {
			writers = append(writers, cmp.Or(entries[i].Manager, "without a name"))
		}
	}
	return writers
}

func before(a, b *metav1.Time) bool { return stamp(a).Before(stamp(b)) }

func stamp(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}

// some tells whether is is true of one of the paths of an entry; broken is the answer for one that cannot be read.
func some(entry *metav1.ManagedFieldsEntry, broken bool, is func(fieldpath.Path) bool) (found bool) {
	if entry.FieldsV1 == nil {
		return false
	}
	var set fieldpath.Set
	if err := set.FromJSON(bytes.NewReader(entry.FieldsV1.GetRawBytes())); err != nil {
		return broken
	}
	set.Iterate(func(p fieldpath.Path) { found = found || is(p) })
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
