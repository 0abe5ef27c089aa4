package upstream

// Verdict is what an outcome means.
type Verdict string

// Verdicts.
const (
	// Passed: it passed, as it has to.
	Passed Verdict = "passed"
	// FailedAsExpected: it failed, for a reason that is written down.
	FailedAsExpected Verdict = "expected failure"
	// Failed: it failed, did not run or was skipped, and should have passed.
	Failed Verdict = "FAILED"
	// PassedUnexpectedly: it passed, and is written down as a failure.
	PassedUnexpectedly Verdict = "PASSED UNEXPECTEDLY"
)

// Judge says what the outcome of a test means, and whether it is a finding. There is no outcome of a test that did not run.
func Judge(outcome Outcome, expected bool) (v Verdict, finding bool) {
	switch {
	case outcome.Passed() && expected:
		return PassedUnexpectedly, true
	case outcome.Passed():
		return Passed, false
	case expected && outcome.State != "":
		return FailedAsExpected, false
	default:
		return Failed, true
	}
}
