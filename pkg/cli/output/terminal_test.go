package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

// hostile are words of a peer that would do something to a terminal, each by other means.
var hostile = map[string]string{
	"escape sequences": "denied\x1b]52;c;Y3VybCBldmlsLmV4YW1wbGUgfCBzaA==\x07\x1b[2K\x1b[1G\x1b[32m✔\x1b[0m milan: All is well\r\n✔ The peering is ended\u009b2J",
	"bytes that are no UTF-8, and control of eight bits": "denied\x9b2J\x9d0;title\x9c",
	"another order of what is read":                      "denied \u202eegdirb\u202c \u2066milan\u2069 \u200fa\u061c",
	"separators of lines":                                "denied\u2028✔ milan: All is well\u2029\v\f\u0085",
	"what is not seen":                                   "denied\ufeff\u200b\U000e0041\x7f\x00",
}

// A peer's words become messages of conditions (NamespaceMap, ResourceSlice, Tenant, pods, Events), and commands print these. Whatever a peer
// says, it moves no cursor, clears no screen, sets no title and no clipboard of the administrator's terminal, and forges no line.
func TestWhatPeersSayDoesNothingToTheTerminal(t *testing.T) {
	style := Style{Terminal: true, Unicode: true}
	clock := testingclock.NewFakePassiveClock(time.Unix(0, 0))
	for name, print := range map[string]func(out *bytes.Buffer, said string){
		"a field":        func(out *bytes.Buffer, said string) { NewPage(out, style).Field("Ready", said) },
		"a field's name": func(out *bytes.Buffer, said string) { NewPage(out, style).Field(said, "Ready") },
		"a section":      func(out *bytes.Buffer, said string) { NewPage(out, style).Section(said) },
		"a sentence":     func(out *bytes.Buffer, said string) { NewPage(out, style).Line(said) },
		"a table": func(out *bytes.Buffer, said string) {
			NewPage(out, style).Table([]string{"MESSAGE"}, [][]string{{said}})
		},
		"a line of talk": func(out *bytes.Buffer, said string) { Print(out, said) },
		"an error": func(out *bytes.Buffer, said string) {
			Error(out, style, "liqoctl", failure.New(failure.Failed, "look", "%s", said))
		},
		"a way out": func(out *bytes.Buffer, said string) {
			Error(out, style, "liqoctl", failure.New(failure.Failed, said, "no"))
		},
		"a plain error": func(out *bytes.Buffer, said string) { Error(out, style, "liqoctl", errors.New(said)) },
		"a note": func(out *bytes.Buffer, said string) {
			NewObserver(out, style, clock).Note(progress.Warning, "milan", said)
		},
		"a cluster's name": func(out *bytes.Buffer, said string) { NewObserver(out, style, clock).Note(progress.Info, said, "x") },
		"a step that is done": func(out *bytes.Buffer, said string) {
			NewObserver(out, Style{}, clock).Begin("milan", "Peering").Done(said)
		},
		"a spinner": func(out *bytes.Buffer, said string) { Print(out, NewObserver(out, style, clock).fit(200, said, said)) },
		"a line for programs": func(out *bytes.Buffer, said string) {
			NewLines(out, clock).Begin(said, said).Warn(said)
		},
	} {
		for how, said := range hostile {
			var out bytes.Buffer
			print(&out, said)
			text := out.String()
			if strings.ContainsFunc(text, func(r rune) bool { return r == '\ufffd' || corev1beta1.Unprintable(r) }) || strings.Count(strings.TrimSpace(text), "\n") > 1 {
				t.Errorf("%s, %s: reaches the terminal as it was said: %q", name, how, text)
			}
		}
	}
}

// Reports for programs are shown on terminals, too. As JSON they still say all that was said.
func TestReportsDoNothingToTheTerminal(t *testing.T) {
	for how, said := range hostile {
		said = strings.ToValidUTF8(said, "")
		for format, read := range map[Format]func([]byte, any) error{JSON: json.Unmarshal, YAML: func(data []byte, to any) error { return yaml.Unmarshal(data, to) }} {
			var out bytes.Buffer
			if err := Write(&out, format, map[string]string{"message": said, said: "key"}); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			if err := read(out.Bytes(), &got); err != nil || strings.ContainsFunc(out.String(), corev1beta1.Unprintable) {
				t.Errorf("%s as %s: %q, %v", how, format, out.String(), err)
			}
			if format == JSON && got["message"] != said {
				t.Errorf("%s became %q as JSON", how, got["message"])
			}
		}
	}
}
