package agent

import (
	"strings"
	"testing"
)

// A refusal is an answer; what is no address is told before anybody is asked.
func TestReach(t *testing.T) {
	for args, want := range map[string]string{"127.0.0.1 127.0.0.2": "127.0.0.1 reached\n127.0.0.2 reached\n<nil>", "127.0.0.1 nobody": `"nobody" is no address`} {
		var out strings.Builder
		command := Reach()
		command.SetOut(&out)
		command.SetArgs(strings.Fields(args))
		err := command.ExecuteContext(t.Context())
		got := out.String() + "<nil>"
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
