// Package marks notes on an object that is made of another one what the other one asked for, so that a later pass can tell what is
// asked for anew from what somebody made of it since, and what is asked for no more from what was never ours.
package marks

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// Of all labels and annotations of an object.
const (
	// Label begins the marks of labels.
	Label = 'l'
	// Annotation begins the marks of annotations.
	Annotation = 'a'
	// Metadata are both.
	Metadata = string(Label) + string(Annotation)
)

const (
	// length of a mark: the letter of its kind, and 66 bits of a digest.
	length = 12
	// maxBytes bounds a note. Of objects with very many labels and annotations it does not list those: what of them vanishes stays.
	maxBytes = 16 << 10
	// maxAnnotations is how long the keys and values of all annotations of an object may be together.
	maxAnnotations = 256 << 10
)

// Of is the mark of one thing that is asked for.
func Of(kind rune, words ...string) string {
	text := []byte{'['}
	for i, word := range words {
		if i > 0 {
			text = append(text, ' ')
		}
		text = strconv.AppendQuote(text, word)
	}
	sum := sha256.Sum256(append(text, ']'))
	return string(kind) + base64.RawURLEncoding.EncodeToString(sum[:9])[:length-1]
}

// OfMap are the marks of labels or annotations.
func OfMap(kind rune, wanted map[string]string) sets.Set[string] {
	marks := sets.New[string]()
	for key, value := range wanted {
		marks.Insert(Of(kind, key, value))
	}
	return marks
}

// Followed is what labels or annotations become: what is wanted is there, what was asked for before, is wanted no more and was not
// changed since is gone, and what is somebody else's stays.
func Followed(kind rune, have, wanted map[string]string, before sets.Set[string]) map[string]string {
	now := make(map[string]string, len(have)+len(wanted))
	for key, value := range have {
		if _, keep := wanted[key]; keep || !before.Has(Of(kind, key, value)) {
			now[key] = value
		}
	}
	maps.Copy(now, wanted)
	return now
}

// Read reads the note; false if there is none.
func Read(annotations map[string]string) (sets.Set[string], bool) {
	note, known := annotations[offloadingv1beta1.AskedAnnotation]
	marks := sets.New[string]()
	for ; len(note) >= length; note = note[length:] {
		marks.Insert(note[:length])
	}
	return marks, known
}

// Write writes the note among the annotations, as far as there is room for it.
func Write(annotations map[string]string, marks sets.Set[string]) {
	delete(annotations, offloadingv1beta1.AskedAnnotation)
	room := maxAnnotations - len(offloadingv1beta1.AskedAnnotation)
	for key, value := range annotations {
		room -= len(key) + len(value)
	}
	room = min(room, maxBytes)
	if length*len(marks) > room {
		marks = marks.Difference(Only(marks, Metadata))
	}
	if length*len(marks) <= room {
		annotations[offloadingv1beta1.AskedAnnotation] = strings.Join(slices.Sorted(maps.Keys(marks)), "")
	}
}

// Only are the marks that are of one of the kinds.
func Only(marks sets.Set[string], kinds string) sets.Set[string] {
	only := sets.New[string]()
	for mark := range marks {
		if strings.ContainsRune(kinds, rune(mark[0])) {
			only.Insert(mark)
		}
	}
	return only
}
