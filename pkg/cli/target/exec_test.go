package target

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

// says plays a pod that says a text so many times, and how its command ends.
type says struct {
	text  string
	times int
	end   error
	said  int
}

func (s *says) Exec(ctx context.Context, _, _ string, _ []string, _ io.Reader, out io.Writer) error {
	for s.said = 0; s.said < s.times && ctx.Err() == nil; s.said++ {
		// A client of Kubernetes takes the rest, whatever became of what came before.
		_, _ = io.WriteString(out, s.text)
	}
	return s.end
}

// A pod, and the API server through which it is asked, may be a peer's: no answer of it is longer than it has to be, or takes longer.
func TestAnswersAreBounded(t *testing.T) {
	failed := errors.New("it failed")
	for name, tc := range map[string]struct {
		pod  says
		want string
		ends bool
	}{
		"as much as may be":   {pod: says{text: "0123456789", times: 10}, want: strings.Repeat("0123456789", 10), ends: true},
		"and it fails":        {pod: says{text: "why", times: 1, end: failed}, want: "why", ends: true},
		"one byte more":       {pod: says{text: strings.Repeat("x", 101), times: 1}},
		"without end":         {pod: says{text: "0123456789", times: 1 << 30}},
		"of very large parts": {pod: says{text: strings.Repeat("x", 1<<20), times: 1 << 30}},
		"too much, it failed": {pod: says{text: strings.Repeat("x", 101), times: 1, end: failed}},
	} {
		got, err := Answer(t.Context(), &tc.pod, "shop", "helper", []string{"say"}, 100)
		if tc.ends && (got != tc.want || !errors.Is(err, tc.pod.end)) || !tc.ends && (got != "" || err == nil || !strings.Contains(err.Error(), "more than 100 bytes")) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if tc.pod.said > 11 {
			t.Errorf("%s: it was heard %d times", name, tc.pod.said)
		}
	}
	errorStream := &kept{most: maxSaid}
	for range 100 {
		if n, err := errorStream.Write([]byte(strings.Repeat("e", 1000))); n != 1000 || err != nil {
			t.Fatalf("what a command says before it fails ends it: %d, %v", n, err)
		}
	}
	if len(errorStream.String()) != maxSaid {
		t.Errorf("%d bytes are kept of why it failed", len(errorStream.String()))
	}
}
