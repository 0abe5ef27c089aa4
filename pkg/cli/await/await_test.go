package await_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

func TestUntil(t *testing.T) {
	resource := schema.GroupResource{Resource: "pods"}
	type answer struct {
		done    bool
		missing string
		err     error
	}
	cases := map[string]struct {
		answers []answer // the last one is repeated
		code    failure.Code
		want    string
		lines   []string
	}{
		"reached at once": {answers: []answer{{done: true}}, lines: []string{"done: it"}},
		"reached later":   {answers: []answer{{missing: "a"}, {missing: "a"}, {missing: "b"}, {done: true}}, lines: []string{"it: waiting: a", "it: waiting: b", "done: it"}},
		"after an error that passed": {
			answers: []answer{{err: apierrors.NewServiceUnavailable("busy")}, {err: errors.New("no route")}, {done: true}},
			lines:   []string{"it: waiting: busy", "it: waiting: no route", "done: it"},
		},
		"never, and in vain": {
			answers: []answer{{missing: "the moon"}}, code: failure.Timeout, lines: []string{"it: waiting: the moon", "failed: it: timed out waiting for it to be: the moon: run the same command again to continue, with a longer --timeout if it needs one"},
			want: "timed out waiting for it to be: the moon: run the same command again to continue, with a longer --timeout if it needs one",
		},
		"an image that cannot be pulled needs no patience": {
			answers: []answer{{missing: "pod x: ErrImagePull"}}, code: failure.Timeout,
			lines: []string{"it: waiting: pod x: ErrImagePull", "failed: it: timed out waiting for it to be: pod x: ErrImagePull: make the image available to the nodes, or name one that is (docs/reference/values.md), and run the same command again"},
			want:  "timed out waiting for it to be: pod x: ErrImagePull: make the image available to the nodes, or name one that is (docs/reference/values.md), and run the same command again",
		},
		"a right is missing": {
			answers: []answer{{err: apierrors.NewForbidden(resource, "x", errors.New("no"))}}, code: failure.Failed,
			want: `pods "x" is forbidden: no`, lines: []string{`failed: it: pods "x" is forbidden: no`},
		},
		"the check says that it never will be": {
			answers: []answer{{err: failure.New(failure.Problems, "", "hopeless")}}, code: failure.Problems, want: "hopeless", lines: []string{"failed: it: hopeless"},
		},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
				defer cancel()
				recorder := &progress.Recorder{}
				looks := 0
				err := progress.Run(ctx, recorder, "", "it", func(ctx context.Context, task progress.Task) (string, error) {
					return "", await.Until(ctx, task, "it to be", func(context.Context) (bool, string, error) {
						now := test.answers[min(looks, len(test.answers)-1)]
						looks++
						return now.done, now.missing, now.err
					})
				})
				text := ""
				if err != nil {
					text = err.Error()
				}
				if failure.CodeOf(err) != test.code || text != test.want {
					t.Errorf("got %q (code %d)", text, failure.CodeOf(err))
				}
				if diff := cmp.Diff(test.lines, recorder.Lines()); diff != "" {
					t.Error(diff)
				}
				if looks > 70 {
					t.Errorf("looked %d times in a minute", looks)
				}
			})
		})
	}
}

func TestAnInterruptionEndsTheWaiting(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	err := await.Until(ctx, progress.Discard.Begin("", ""), "it to be", func(context.Context) (bool, string, error) {
		cancel()
		return false, "anything", nil
	})
	if failure.CodeOf(err) != failure.Interrupted {
		t.Errorf("got %v (code %d)", err, failure.CodeOf(err))
	}
}
