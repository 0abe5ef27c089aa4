package target_test

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/target"
)

// While a controller manager restarts nobody can judge what is written: it is waited for, and then said whose fault it is.
func TestWritesWaitForWebhooks(t *testing.T) {
	refused := func(webhook string) error {
		return apierrors.NewInternalError(errors.New(`failed calling webhook "` + webhook + `": dial tcp 10.1.2.3:443: connect: connection refused`))
	}
	broken := apierrors.NewInternalError(errors.New("etcd has no space"))
	cases := map[string]struct {
		answers []error // of one write after the other; the last one stays
		tries   int     // 0: more than one
		code    failure.Code
		want    string
	}{
		"it answers at once":          {[]error{nil}, 1, failure.OK, ""},
		"it answers at the third try": {[]error{refused("tenant.validate.liqo.io"), refused("tenant.validate.liqo.io"), nil}, 3, failure.OK, ""},
		"it never answers": {[]error{refused("tenant.validate.liqo.io")}, 0, failure.Failed,
			"liqo-controller-manager, which has to judge it, does not answer: see with 'liqoctl info' whether liqo-controller-manager runs there, and run the same command again"},
		"that of somebody else never answers": {[]error{refused("a.example.com")}, 0, failure.Failed,
			"webhook a.example.com does not answer: see whether what serves it runs there, and run the same command again"},
		"it refuses in the end":     {[]error{refused("tenant.validate.liqo.io"), broken}, 2, failure.Failed, broken.Error()},
		"something else is broken":  {[]error{broken}, 1, failure.Failed, broken.Error()},
		"the write is not possible": {[]error{apierrors.NewForbidden(corev1.Resource("configmaps"), "a", errors.New("no"))}, 1, failure.Failed, `configmaps "a" is forbidden: no`},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			tries := 0
			answer := func() error {
				tries++
				return test.answers[min(tries, len(test.answers))-1]
			}
			c := target.Patient(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Create: func(context.Context, client.WithWatch, client.Object, ...client.CreateOption) error { return answer() },
				Update: func(context.Context, client.WithWatch, client.Object, ...client.UpdateOption) error { return answer() },
				Patch: func(context.Context, client.WithWatch, client.Object, client.Patch, ...client.PatchOption) error {
					return answer()
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return answer() },
			}))
			for verb, write := range map[string]func() error{
				"create": func() error { return c.Create(ctx, named("a")) }, "update": func() error { return c.Update(ctx, named("a")) },
				"patch":  func() error { return c.Patch(ctx, named("a"), client.RawPatch("", nil)) },
				"delete": func() error { return c.Delete(ctx, named("a")) },
			} {
				tries = 0
				err := write()
				if failure.CodeOf(err) != test.code || err != nil && err.Error() != test.want || test.tries != 0 && tries != test.tries {
					t.Errorf("%s: %d tries, code %d: %v", verb, tries, failure.CodeOf(err), err)
				}
				if test.tries == 0 {
					break // Each takes the whole time.
				}
			}
			tries = 0
			if err := c.Create(t.Context(), named("a"), client.DryRunAll); tries != 1 || !errors.Is(err, test.answers[0]) {
				t.Errorf("a dry run took %d tries: %v", tries, err)
			}
		})
	}
}
