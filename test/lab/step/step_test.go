package step_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"liqo.io/liqo/test/lab/step"
)

func TestLines(t *testing.T) {
	var out strings.Builder
	clock := clocktesting.NewFakePassiveClock(time.Now())
	lines := step.NewLines(&out, clock)
	err := errors.New("no")
	for name, result := range map[string]error{"a": nil, "b": err} {
		out.Reset()
		got := step.Run(lines, name, func() error {
			clock.SetTime(clock.Now().Add(1260 * time.Millisecond))
			return result
		})
		if !errors.Is(got, result) {
			t.Errorf("error = %v, want %v", got, result)
		}
		want := map[string]string{"a": "  … a\n  ✓ a (1.3s)\n", "b": "  … b\n  ✗ b (1.3s)\n"}[name]
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("lines differ (-want +got):\n%s", diff)
		}
	}
}
