package restarts

import (
	"context"
	"strings"
	"testing"
	"time"

	"liqo.io/liqo/pkg/cli/action/install"
	"liqo.io/liqo/test/integration/fixture"
)

// TestInstallingWaitsForTheWebhooks shows that an installation or an upgrade ends when a webhook answers, and not when a policy does in its
// place.
func TestInstallingWaitsForTheWebhooks(t *testing.T) {
	w := env.Peered(t)
	wait := func(patience time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		return install.Wait(ctx, env.Rome.Target(t), nil)
	}
	fixture.Must(t, "waiting for an installation that answers", wait(fixture.Patience))
	fixture.Must(t, "stopping the controller manager of rome", w.Rome.Stop())
	err := wait(10 * time.Second)
	w.Rome.Start(t)
	if err == nil || !strings.Contains(err.Error(), "a webhook does not answer") {
		t.Errorf("the controller manager is down, and waiting for the installation ended with %v", err)
	}
	fixture.Must(t, "waiting for the installation to answer again", wait(fixture.Patience))
}
