package upstream

import "testing"

func TestJudge(t *testing.T) {
	for sentence, c := range map[string]struct {
		state    string
		expected bool
		want     Verdict
		finding  bool
	}{
		"it passes, as it has to":                     {"passed", false, Passed, false},
		"it fails, as is written down":                {"failed", true, FailedAsExpected, false},
		"it times out, as is written down":            {"timedout", true, FailedAsExpected, false},
		"it fails, and should pass":                   {"failed", false, Failed, true},
		"it skips itself, and should pass":            {"skipped", false, Failed, true},
		"it did not run, and should pass":             {"", false, Failed, true},
		"it did not run, and its failure is expected": {"", true, Failed, true},
		"it passes, and is written down as a failure": {"passed", true, PassedUnexpectedly, true},
	} {
		t.Run(sentence, func(t *testing.T) {
			got, finding := Judge(Outcome{State: c.state}, c.expected)
			if got != c.want || finding != c.finding {
				t.Errorf("got %s, a finding: %t; want %s, %t", got, finding, c.want, c.finding)
			}
		})
	}
}
