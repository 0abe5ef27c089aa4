package cli

import (
	"os"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"liqo.io/liqo/pkg/cli/session"
)

// The README says which commands of Liqo v1 are not there yet: those that we name a way around for, and no command that there is.
func TestTheReadmeSaysWhatOnlyV1Has(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	root := New(session.New(genericiooptions.NewTestIOStreamsDiscard(), "liqoctl", func(string) string { return "" }))
	for verb := range ofV1 {
		if !strings.Contains(string(readme), "`"+verb+"`") {
			t.Errorf("the README does not say that %s is not there yet", verb)
		}
		for _, command := range root.Commands() {
			if command.Name() == verb {
				t.Errorf("%s is there", verb)
			}
		}
	}
	for kind, aliases := range kindsOfV1 {
		if !strings.Contains(string(readme), "`"+kind+"`") {
			t.Errorf("the README does not say that %s is not there yet", kind)
		}
		for _, verb := range []string{"create", "delete", "get"} {
			for _, word := range append([]string{kind}, aliases...) {
				if command, _, err := root.Find([]string{verb, word}); err == nil && command.Name() == kind {
					t.Errorf("%s %s is there", verb, word)
				}
			}
		}
	}
}
