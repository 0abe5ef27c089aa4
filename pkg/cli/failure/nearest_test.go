package failure_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"liqo.io/liqo/pkg/cli/failure"
)

func TestNearest(t *testing.T) {
	peers := []string{"milan", "milano-2", "rome", "turin"}
	cases := map[string]struct {
		word string
		want []string
	}{
		"a letter changed":     {"miran", []string{"milan"}},
		"letters left out":     {"mln", []string{"milan"}},
		"the likest is first":  {"milano", []string{"milan", "milano-2"}},
		"capitals":             {"ROME", []string{"rome"}},
		"nothing like it":      {"copenhagen", nil},
		"nothing is no typo":   {"", nil},
		"short and unlike all": {"xy", nil},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			if diff := cmp.Diff(test.want, failure.Nearest(test.word, peers)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
