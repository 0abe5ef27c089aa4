package compat

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"liqo.io/liqo/pkg/cli"
	"liqo.io/liqo/pkg/cli/session"
)

// command is one of liqoctl, as commands.json has it.
type command struct {
	Aliases []string `json:"aliases"`
	Flags   map[string]struct {
		Default string `json:"default"`
		Short   string `json:"short"`
		Type    string `json:"type"`
	} `json:"flags"`
}

// kindsOfFlags are the types of flags that take the same words, by the one that stands for them.
var kindsOfFlags = map[string]string{
	"clusterID": "string", "cidr": "string", "quantity": "string", "bytesBase64": "string",
	"stringMap": "stringToString", "cidrList": "strings", "stringSlice": "strings", "stringArray": "strings",
	"int32": "int", "int64": "int", "uint16": "int",
}

// Scripts for Liqo v1 find the commands, aliases and flags that they use, with the short names and defaults.
func TestCommandsAreThoseOfV1(t *testing.T) {
	content, err := os.ReadFile("testdata/commands.json")
	if err != nil {
		t.Fatal(err)
	}
	var table map[string]command
	if err := json.Unmarshal(content, &table); err != nil {
		t.Fatal(err)
	}
	liqoctl := cli.New(session.New(genericiooptions.NewTestIOStreamsDiscard(), "liqoctl", func(string) string { return "" }))
	liqoctl.InitDefaultCompletionCmd()
	facts, missing, flags := 0, 0, 0
	var differences []string
	for _, path := range slices.Sorted(maps.Keys(table)) {
		v1 := table[path]
		facts += 1 + len(v1.Aliases) + len(v1.Flags)
		here, rest, err := liqoctl.Find(strings.Fields(strings.TrimPrefix(path, "liqoctl")))
		if err != nil || len(rest) > 0 {
			differences, missing = append(differences, path), missing+1
			continue
		}
		for _, alias := range v1.Aliases {
			if alias != here.Name() && !slices.Contains(here.Aliases, alias) {
				differences = append(differences, path+" alias "+alias)
			}
		}
		unlike := v1.flagsUnlike(path, here)
		flags += len(unlike)
		differences = append(differences, unlike...)
	}
	t.Logf("of %d commands of Liqo v1.2, %d are missing; of the others %d flags differ", len(table), missing, flags)
	exceptions{"commands-exceptions.tsv", 27}.explain(t, facts, differences)
}

// flagsUnlike are the flags of a command that are not as in v1.
func (v1 command) flagsUnlike(path string, here *cobra.Command) (differences []string) {
	here.InitDefaultHelpFlag()
	for _, name := range slices.Sorted(maps.Keys(v1.Flags)) {
		want, flag := v1.Flags[name], here.Flag(name)
		say := func(what string) { differences = append(differences, path+" --"+name+what) }
		if flag == nil {
			say("")
			continue
		}
		if short := strings.TrimPrefix(want.Short, "-"); short != "" && short != flag.Shorthand {
			say(" -" + short)
		}
		if kind(want.Type) != kind(flag.Value.Type()) {
			say(": " + flag.Value.Type() + ", not " + want.Type)
		}
		if got := flag.DefValue; want.Default != "" && want.Default != got && !zero(want.Default, got) {
			say(": by default " + got + ", not " + want.Default)
		}
	}
	return differences
}

func kind(of string) string {
	if one := kindsOfFlags[of]; one != "" {
		return one
	}
	return of
}

// zero tells whether all of the texts stand for nothing.
func zero(texts ...string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !slices.Contains([]string{"", "0", "0s", "false", "[]"}, text) })
}
