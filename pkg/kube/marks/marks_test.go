package marks

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

func TestFollowed(t *testing.T) {
	type labels = map[string]string
	for name, tc := range map[string]struct {
		have, wanted, before, want labels
	}{
		"one more":                       {labels{"a": "1"}, labels{"a": "1", "b": "2"}, labels{"a": "1"}, labels{"a": "1", "b": "2"}},
		"another value":                  {labels{"a": "1"}, labels{"a": "2"}, labels{"a": "1"}, labels{"a": "2"}},
		"one less":                       {labels{"a": "1", "b": "2"}, labels{"a": "1"}, labels{"a": "1", "b": "2"}, labels{"a": "1"}},
		"somebody else's stays":          {labels{"a": "1", "x": "9"}, nil, labels{"a": "1"}, labels{"x": "9"}},
		"what somebody made of it stays": {labels{"a": "9"}, nil, labels{"a": "1"}, labels{"a": "9"}},
		"what is not known stays":        {labels{"a": "1"}, labels{"b": "2"}, nil, labels{"a": "1", "b": "2"}},
		"none":                           {nil, labels{"b": "2"}, nil, labels{"b": "2"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, Followed(Label, tc.have, tc.wanted, OfMap(Label, tc.before))); diff != "" {
				t.Error(diff)
			}
			if got := Followed(Label, tc.have, tc.wanted, OfMap(Annotation, tc.before)); len(got) < len(tc.have) {
				t.Errorf("marks of annotations took labels: %v", got)
			}
		})
	}
}

func TestTheNote(t *testing.T) {
	many := map[string]string{}
	for i := range 2000 {
		many[fmt.Sprint("key-", i)] = "v"
	}
	image := Of('i', "c", "nginx")
	for name, tc := range map[string]struct {
		annotations map[string]string
		marks, want sets.Set[string]
	}{
		"a few":                     {map[string]string{"x": "y"}, OfMap(Label, map[string]string{"a": "1", "b": "2"}), OfMap(Label, map[string]string{"b": "2", "a": "1"})},
		"nothing was asked for":     {map[string]string{}, sets.New[string](), sets.New[string]()},
		"very many labels":          {map[string]string{}, OfMap(Label, many).Insert(image), sets.New(image)},
		"annotations that are full": {map[string]string{"x": strings.Repeat("y", maxAnnotations-30)}, sets.New(image), nil},
	} {
		t.Run(name, func(t *testing.T) {
			Write(tc.annotations, tc.marks)
			got, known := Read(tc.annotations)
			if known != (tc.want != nil) || known && !got.Equal(tc.want) {
				t.Errorf("it says %v, %t", got, known)
			}
		})
	}
	annotations := map[string]string{offloadingv1beta1.AskedAnnotation: "nonsense"}
	if got, _ := Read(annotations); len(got) != 0 {
		t.Errorf("nonsense says %v", got)
	}
	if Of('i', "a", "b") == Of('i', "a\" \"b") || Of('i', "ab") == Of('t', "ab") {
		t.Error("different things have one mark")
	}
}

// The words of a mark are quoted as fmt does it: other marks would have all Pods written once more after an update.
func TestMarksStayTheSame(t *testing.T) {
	for _, words := range [][]string{nil, {""}, {"a"}, {"a", "b"}, {"a b", `"`, "ä\n\xff"}} {
		sum := sha256.Sum256(fmt.Appendf(nil, "%q", words))
		if got, want := Of(Label, words...), "l"+base64.RawURLEncoding.EncodeToString(sum[:9])[:length-1]; got != want {
			t.Errorf("%q: %s, want %s", words, got, want)
		}
	}
}
