package failure_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"liqo.io/liqo/pkg/cli/failure"
)

// The exit codes are a promise to scripts.
func TestExitCodes(t *testing.T) {
	unmet := failure.Unmet("do that", "this is missing")
	cases := map[string]struct {
		err  error
		code int
	}{
		"nothing went wrong":                   {nil, 0},
		"anything":                             {errors.New("x"), 1},
		"a failure":                            {failure.New(failure.Failed, "", "x"), 1},
		"a command line":                       {failure.Misuse("", "x"), 2},
		"a precondition":                       {unmet, 3},
		"a precondition, wrapped":              {fmt.Errorf("peering: %w", unmet), 3},
		"a precondition among others":          {errors.Join(errors.New("x"), unmet), 3},
		"problems":                             {failure.New(failure.Problems, "", "x"), 4},
		"a timeout":                            {failure.New(failure.Timeout, "", "x"), 5},
		"a deadline":                           {fmt.Errorf("reading: %w", context.DeadlineExceeded), 5},
		"a precondition because of a deadline": {failure.Unmet("", "%w", context.DeadlineExceeded), 3},
		"an interruption":                      {fmt.Errorf("reading: %w", context.Canceled), 130},
		"an interruption, explained":           {failure.New(failure.Failed, "", "x: %w", context.Canceled), 130},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			if got := failure.CodeOf(test.err); int(got) != test.code {
				t.Errorf("got %d, want %d", got, test.code)
			}
		})
	}
}

func TestNextOf(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "x", errors.New("no"))
	cases := map[string]struct {
		err        error
		text, next string
	}{
		"a way out":            {failure.Unmet("do that", "this is missing"), "this is missing", "do that"},
		"a way out, wrapped":   {fmt.Errorf("peering: %w", failure.Unmet("do that", "this is missing")), "peering: this is missing", "do that"},
		"none":                 {errors.New("x"), "x", ""},
		"a right, unexplained": {forbidden, `secrets "x" is forbidden: no`, "ask an administrator of the cluster for this right; the ClusterRole cluster-admin has all that liqoctl needs"},
		"expired credentials":  {apierrors.NewUnauthorized("expired"), "expired", "log in to the cluster again, or choose other credentials with --kubeconfig, --context or --user"},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			if text, next := failure.NextOf(test.err); text != test.text || next != test.next {
				t.Errorf("got %q and %q", text, next)
			}
		})
	}
}

func TestWaysOutOfSeveralProblems(t *testing.T) {
	const look = "look the reason up in docs/troubleshooting.md"
	for sentence, test := range map[string]struct {
		ways []string
		want string
	}{
		"one that is known":             {[]string{"do this"}, "do this"},
		"one that is not":               {[]string{""}, look},
		"the same twice":                {[]string{"do this", "do this"}, "do this"},
		"two":                           {[]string{"do this", "do that"}, look},
		"one of which nothing is known": {[]string{"do this", "", "do this"}, look},
	} {
		if got := failure.WayOut(test.ways); got != test.want {
			t.Errorf("%s: %s", sentence, got)
		}
	}
}
