package target

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
)

// webhookPatience is how long a write waits for a webhook that does not answer, as while the controller manager that serves it restarts.
const webhookPatience = time.Minute

// Patient returns a client whose writes wait for webhooks that do not answer, and then say whose they are. Dry runs do not wait.
func Patient(c client.Client) client.Client { return patient{c} }

type patient struct{ client.Client }

// Create implements client.Writer.
func (p patient) Create(ctx context.Context, object client.Object, options ...client.CreateOption) error {
	if len((&client.CreateOptions{}).ApplyOptions(options).DryRun) > 0 {
		return p.Client.Create(ctx, object, options...)
	}
	return patiently(ctx, func(ctx context.Context) error { return p.Client.Create(ctx, object, options...) })
}

// Update implements client.Writer.
func (p patient) Update(ctx context.Context, object client.Object, options ...client.UpdateOption) error {
	return patiently(ctx, func(ctx context.Context) error { return p.Client.Update(ctx, object, options...) })
}

// Patch implements client.Writer.
func (p patient) Patch(ctx context.Context, object client.Object, patch client.Patch, options ...client.PatchOption) error {
	return patiently(ctx, func(ctx context.Context) error { return p.Client.Patch(ctx, object, patch, options...) })
}

// Delete implements client.Writer.
func (p patient) Delete(ctx context.Context, object client.Object, options ...client.DeleteOption) error {
	return patiently(ctx, func(ctx context.Context) error { return p.Client.Delete(ctx, object, options...) })
}

// patiently repeats a write that no webhook has judged: nothing was written by it.
func patiently(ctx context.Context, write func(context.Context) error) error {
	err := write(ctx)
	if silent(err) == "" {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, webhookPatience)
	defer cancel()
	waiting := await.Until(limited, progress.Discard.Begin("", ""), "the webhook", func(ctx context.Context) (bool, string, error) {
		// Time that is over in the midst of an attempt is no answer to it.
		if now := write(ctx); now == nil || ctx.Err() == nil {
			err = now
		}
		return silent(err) == "", "", nil
	})
	webhook := silent(err)
	switch {
	case webhook == "":
		return err
	case failure.CodeOf(waiting) == failure.Interrupted:
		return waiting
	case strings.HasSuffix(webhook, ".liqo.io"):
		return failure.New(failure.Failed, "see with 'liqoctl info' whether liqo-controller-manager runs there, and run the same command again",
			"liqo-controller-manager, which has to judge it, does not answer")
	default:
		return failure.New(failure.Failed, "see whether what serves it runs there, and run the same command again", "webhook %s does not answer", webhook)
	}
}

var calling = regexp.MustCompile(`failed calling webhook "([^"]+)"`)

// silent names the webhook that an API server could not ask about a write; empty if that is not what is wrong.
func silent(err error) string {
	if !apierrors.IsInternalError(err) {
		return ""
	}
	found := calling.FindStringSubmatch(fmt.Sprint(err))
	if found == nil {
		return ""
	}
	return found[1]
}
