package reconcile

import (
	"errors"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Class says what an error means for who meets it.
type Class int

// The classes of errors; see the package comment.
const (
	// Transient errors may be gone at the next try.
	Transient Class = iota
	// Waiting is for something else that has to happen first.
	Waiting
	// Refused by somebody's rules.
	Refused
	// Terminal until the object changes.
	Terminal
)

// String names the class.
func (c Class) String() string {
	return [...]string{"transient", "waiting", "refused", "terminal"}[c]
}

// RefusedRetry is how long a refused request is left alone: the upper bound of every back-off.
const RefusedRetry = 60 * time.Second

// maxRefusedRetry is how long one is left alone that has been refused for long.
const maxRefusedRetry = 5 * time.Minute

// ErrOversized: an answer is larger than is read of one. Less of it may be asked for.
var ErrOversized = errors.New("the answer is too large")

// Reasons for errors that nobody gave one.
const (
	// ReasonTransient: a call failed and is retried.
	ReasonTransient = "Retrying"
	// ReasonTooLarge: the object is larger than the API server takes.
	ReasonTooLarge = "TooLarge"
	// ReasonInvalid: the API server, or somebody's admission there, finds the object invalid.
	ReasonInvalid = "Invalid"
	// ReasonForbidden: the API server's rules forbid the request.
	ReasonForbidden = "Forbidden"
)

type classified struct {
	class   Class
	reason  string
	message string
	after   time.Duration
	err     error
}

func (e *classified) Error() string {
	switch {
	case e.err == nil:
		return e.message
	case e.message == "":
		return e.err.Error()
	default:
		return e.message + ": " + e.err.Error()
	}
}

func (e *classified) Unwrap() error { return e.err }

// Wait says that something else has to happen first. The message names it; after is when to look again.
func Wait(reason, message string, after time.Duration) error {
	return &classified{class: Waiting, reason: reason, message: message, after: after}
}

// Retry says that the next try may work, although the API server's answer reads as if its rules forbade it.
func Retry(err error) error {
	return &classified{class: Transient, reason: ReasonTransient, err: err}
}

// Refuse says that somebody's rules forbid it. The reason is one of the exported condition reasons.
func Refuse(reason string, err error) error {
	return &classified{class: Refused, reason: reason, err: err, after: RefusedRetry}
}

// RefuseAgain is Refuse for what hardly turns right by itself: its pauses grow with the time for which it has been refused.
func RefuseAgain(reason string, err error, elapsed time.Duration) error {
	return &classified{class: Refused, reason: reason, err: err, after: min(max(elapsed, RefusedRetry), maxRefusedRetry)}
}

// Terminate says that it cannot work until the object changes. The reason is one of the exported condition reasons.
func Terminate(reason string, err error) error {
	return &classified{class: Terminal, reason: reason, err: err}
}

// Classify tells the class of an error: the one it was given, or what an API server's answer means.
func Classify(err error) Class {
	var c *classified
	if errors.As(err, &c) {
		return c.class
	}
	class, _ := answer(err)
	return class
}

// ReasonOf returns the reason of an error, for a condition.
func ReasonOf(err error) string {
	var c *classified
	if errors.As(err, &c) {
		return c.reason
	}
	_, reason := answer(err)
	return reason
}

// MessageOf returns the words of an error, for a condition; empty without an error.
func MessageOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// ownPolicies starts the names of the admission policies that hold the controller manager to what it needs. They look at namespaces and
// NamespaceOffloadings as the API server's cache shows them, a moment behind what the controller manager has seen.
const ownPolicies = "liqo-controller-manager"

// answer classifies what an API server said.
func answer(err error) (Class, string) {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return Transient, ReasonTransient
	}
	s := status.Status()
	switch {
	case strings.Contains(s.Message, "'"+ownPolicies):
		return Transient, ReasonTransient
	case deniedByAdmission(s.Message):
		return Refused, ReasonForbidden
	case strings.Contains(s.Message, "request is too large"), s.Code == http.StatusRequestEntityTooLarge,
		s.Reason == metav1.StatusReasonRequestEntityTooLarge:
		// etcd's limit comes back as an untyped 500: only its text tells it from a passing server error.
		return Terminal, ReasonTooLarge
	case s.Code == http.StatusUnprocessableEntity, s.Reason == metav1.StatusReasonInvalid, s.Code == http.StatusBadRequest:
		if strings.Contains(s.Message, "Too long: may not be more than") {
			return Terminal, ReasonTooLarge
		}
		// Not all admission says that it is: rules may change while the object stays as it is.
		return Refused, ReasonInvalid
	case s.Code == http.StatusForbidden && strings.Contains(s.Message, "status unknown for quota"):
		// A fresh ResourceQuota refuses everything until the quota controller has counted for the first time.
		return Transient, ReasonTransient
	case s.Code == http.StatusForbidden:
		return Refused, ReasonForbidden
	default:
		return Transient, ReasonTransient
	}
}

// deniedByAdmission tells whether a policy or a webhook said no. Whatever code it chose for that, and a policy that chooses none
// answers as for an invalid object, its rules may change while the object stays as it is.
func deniedByAdmission(message string) bool {
	return strings.Contains(message, "ValidatingAdmissionPolicy '") && strings.Contains(message, " denied request: ") ||
		strings.Contains(message, "admission webhook ") && strings.Contains(message, " denied the request")
}
