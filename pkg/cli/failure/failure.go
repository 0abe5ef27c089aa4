package failure

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Code is an exit code of liqoctl.
type Code int

// The exit codes.
const (
	// OK: the command did what it was asked to.
	OK Code = 0
	// Failed: something went wrong on the way.
	Failed Code = 1
	// Usage: the command line cannot be understood; nothing was done.
	Usage Code = 2
	// Precondition: a cluster is not in the state that the command needs; nothing was changed.
	Precondition Code = 3
	// Problems: the command works, and what it looked at does not.
	Problems Code = 4
	// Timeout: what was waited for did not happen in time; the command can be run again.
	Timeout Code = 5
	// Interrupted: the user stopped the command; it can be run again.
	Interrupted Code = 130
)

// Error is a failure with its exit code and the way out.
type Error struct {
	// Code that liqoctl exits with.
	Code Code
	// Err says what failed and why.
	Err error
	// Next is the command to run or the thing to change; empty if there is nothing to suggest.
	Next string
}

// Error returns `what failed: cause: next`.
func (e *Error) Error() string {
	if e.Next == "" {
		return e.Err.Error()
	}
	return e.Err.Error() + ": " + e.Next
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error with a code and a way out; format takes %w.
func New(code Code, next, format string, args ...any) error {
	return &Error{Code: code, Next: next, Err: fmt.Errorf(format, args...)}
}

// Misuse is an error in the command line.
func Misuse(next, format string, args ...any) error { return New(Usage, next, format, args...) }

// Unmet is a precondition that does not hold.
func Unmet(next, format string, args ...any) error { return New(Precondition, next, format, args...) }

// CodeOf returns the exit code of an error; of nil, OK.
func CodeOf(err error) Code {
	var failed *Error
	switch {
	case err == nil:
		return OK
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.As(err, &failed):
		return failed.Code
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	default:
		return Failed
	}
}

// WayOut is what to do about several problems: what mends each of them, if that is the same and known of all, else where their reasons are explained.
// Of a problem of which it is not known it is empty.
func WayOut(ways []string) string {
	if all := slices.Compact(slices.Sorted(slices.Values(ways))); len(all) == 1 && all[0] != "" {
		return all[0]
	}
	return "look the reason up in docs/troubleshooting.md"
}

// NextOf returns the way out that an error suggests, and the error's text without it.
func NextOf(err error) (text, next string) {
	var failed *Error
	if !errors.As(err, &failed) || failed.Next == "" {
		return err.Error(), remedy(err)
	}
	text = err.Error()
	if suffix := ": " + failed.Next; len(text) > len(suffix) && text[len(text)-len(suffix):] == suffix {
		text = text[:len(text)-len(suffix)]
	}
	return text, failed.Next
}

// remedy suggests something for errors of the API server that nobody explained.
func remedy(err error) string {
	switch {
	case apierrors.IsForbidden(err):
		return "ask an administrator of the cluster for this right; the ClusterRole cluster-admin has all that liqoctl needs"
	case apierrors.IsUnauthorized(err):
		return "log in to the cluster again, or choose other credentials with --kubeconfig, --context or --user"
	default:
		return ""
	}
}
