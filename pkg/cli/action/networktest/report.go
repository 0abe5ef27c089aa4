package networktest

import (
	"fmt"
	"slices"
)

// State is what a check came to.
type State string

// The states.
const (
	// Passed: it is as it should be.
	Passed State = "passed"
	// Warned: it works, and something is not as it should be.
	Warned State = "warned"
	// Failed: it does not work.
	Failed State = "failed"
	// Skipped: it could not be looked at.
	Skipped State = "skipped"
)

// Check is one thing that was looked at.
type Check struct {
	// Cluster that it is about, and the Peer of that.
	Cluster string `json:"cluster"`
	Peer    string `json:"peer"`
	// Name of what was looked at, State what that came to.
	Name  string `json:"name"`
	State State  `json:"state"`
	// Message says what was seen, Next what to do about it.
	Message string `json:"message,omitempty"`
	Next    string `json:"next,omitempty"`
}

// Report is what was looked at, in the order of causes: what fails first explains what fails after it.
type Report struct {
	Checks []Check `json:"checks"`
}

// First is the check that fails first; nil if none does.
func (r *Report) First() *Check {
	for i := range r.Checks {
		if r.Checks[i].State == Failed {
			return &r.Checks[i]
		}
	}
	return nil
}

// Skipped are the names of what could not be looked at, once each.
func (r *Report) Skipped() (names []string) {
	for i := range r.Checks {
		if r.Checks[i].State == Skipped && !slices.Contains(names, r.Checks[i].Name) {
			names = append(names, r.Checks[i].Name)
		}
	}
	return names
}

// finding is what a judgement found wrong.
type finding struct {
	state         State
	message, next string
}

func failed(next, format string, args ...any) []finding {
	return []finding{{Failed, fmt.Sprintf(format, args...), next}}
}

func warned(next, format string, args ...any) []finding {
	return []finding{{Warned, fmt.Sprintf(format, args...), next}}
}

func skipped(format string, args ...any) []finding {
	return []finding{{Skipped, fmt.Sprintf(format, args...), ""}}
}
