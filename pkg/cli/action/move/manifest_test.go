package move

import (
	"context"
	"io"
	"strings"
	"testing"
)

// endless plays the provider's end of a stream into a helper pod: it says more than anybody asked for.
type endless struct{ took int64 }

const much = 64 << 20

func (e *endless) Exec(_ context.Context, _, _ string, _ []string, _ io.Reader, out io.Writer) error {
	chunk := []byte(strings.Repeat("x", 1<<20))
	for e.took < much {
		n, err := out.Write(chunk)
		if e.took += int64(n); err != nil {
			return err
		}
	}
	return nil
}

// The helper pod that reads a volume at a provider, and all that it prints, is the provider's. Its checksum has less than 200 bytes: liqoctl keeps no
// more of the answer in memory.
func TestAnAnswerWithoutEndFillsNoMemory(t *testing.T) {
	streams := &endless{}
	j := &job{Options: Options{Namespace: "shop", Claim: "data", Streams: streams}}
	_, err := j.identify(t.Context(), sender)
	if streams.took >= much {
		t.Errorf("liqoctl took %d MiB as the checksum of a volume: %v", streams.took>>20, err)
	}
}

// short plays a pod that says what it likes.
type short string

func (s short) Exec(_ context.Context, _, _ string, _ []string, _ io.Reader, out io.Writer) error {
	_, err := io.WriteString(out, string(s))
	return err
}

// What is no checksum with two numbers is none, however long it is.
func TestAnAnswerIsAChecksumAndTwoNumbers(t *testing.T) {
	digest := strings.Repeat("a", 64)
	for said, valid := range map[string]bool{
		digest + " 3 12": true,
		digest + " 9223372036854775807 9223372036854775807\n": true,
		"":                   false,
		digest + " 3":        false,
		digest + " 3 x":      false,
		digest[1:] + " 3 12": false,
		digest + " 3 12 " + strings.Repeat("x", 1000): false,
		digest + strings.Repeat(" ", 1000) + "3 12":   false,
	} {
		j := &job{Options: Options{Namespace: "shop", Claim: "data", Streams: short(said)}}
		if _, err := j.identify(t.Context(), sender); (err == nil) != valid {
			t.Errorf("%.80q of %d bytes: %v", said, len(said), err)
		}
	}
}
