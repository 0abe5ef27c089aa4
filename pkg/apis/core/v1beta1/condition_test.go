package v1beta1

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What peers say is not even stored in a form that does something to the terminal of who reads it, with whatever program.
func TestMessagesAreBoundedAndPrintable(t *testing.T) {
	for sentence, test := range map[string]struct{ message, want string }{
		"what is plain stays":                  {"grüße\n\t✔ नमस्ते 👩\u200d🚀", "grüße\n\t✔ नमस्ते 👩\u200d🚀"},
		"escape sequences and carriage return": {"a\x1b[2K\rb\x07", "a [2K b "},
		"control characters of eight bits":     {"a\u009b2J\x7f", "a 2J "},
		"bytes that are no UTF-8":              {"a\x9b2J", "a2J"},
		"another order of what is read":        {"a\u202eb\u2066c\u200e", "a b c "},
		"what is not seen":                     {"a\ufeffb\u2028c\U000e0041", "a b c "},
	} {
		if got := BoundMessage(test.message); got != test.want {
			t.Errorf("%s: %q becomes %q, want %q", sentence, test.message, got, test.want)
		}
	}
	for _, long := range []string{strings.Repeat("ä", 600), strings.Repeat("x", MaxMessage+1), strings.Repeat("\u202e", 1<<20), strings.Repeat("x\x1b", 1<<20)} {
		if got := BoundMessage(long); len(got) > MaxMessage || !utf8.ValidString(got) || strings.ContainsFunc(got, Unprintable) || BoundMessage(got) != got {
			t.Errorf("%d bytes became %d: %.40q", len(long), len(got), got)
		}
	}
}
