package settings

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	resourcesv1 "liqo.io/liqo/pkg/apis/resources/v1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// decider is a resource plugin that grants the slices of one consumer what it is told to, and all others what they have.
type decider struct {
	resourcesv1.UnimplementedGrantsServer
	consumer string
	path     string
	answer   atomic.Pointer[func(context.Context, *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error)]
	asked    atomic.Int64
	down     atomic.Bool
}

// Decide implements resourcesv1.GrantsServer.
func (d *decider) Decide(ctx context.Context, r *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
	if r.GetClusterId() != d.consumer {
		granted := r.GetGranted()
		if len(granted) == 0 {
			granted = map[string]string{"cpu": "0"}
		}
		return about(r, granted), nil
	}
	d.asked.Add(1)
	return (*d.answer.Load())(ctx, r)
}

func about(r *resourcesv1.DecideRequest, grant map[string]string) *resourcesv1.DecideResponse {
	return &resourcesv1.DecideResponse{ClusterId: r.GetClusterId(), Namespace: r.GetNamespace(), Name: r.GetName(), Grant: grant}
}

// says has the plugin answer so from now on.
func (d *decider) says(answer func(context.Context, *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error)) {
	d.answer.Store(&answer)
}

// grants has the plugin grant so much from now on.
func (d *decider) grants(pairs ...string) {
	grant := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		grant[pairs[i]] = pairs[i+1]
	}
	d.says(func(_ context.Context, r *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
		return about(r, grant), nil
	})
}

// serve has the plugin answer until stop is called.
func (d *decider) serve(t *testing.T) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", d.path)
	fixture.Must(t, "listening as a resource plugin", err)
	server, healthy := grpc.NewServer(), health.NewServer()
	healthy.SetServingStatus(resourcesv1.Grants_ServiceDesc.ServiceName, healthv1.HealthCheckResponse_SERVING)
	healthv1.RegisterHealthServer(server, healthy)
	resourcesv1.RegisterGrantsServer(server, d)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return func() {
		server.Stop()
		fixture.Must(t, "serving as a resource plugin", <-ended)
	}
}

// A plugin of the provider's administrator decides what a slice is granted. While it is down, late or wrong, what it granted last stays, and the
// slice says which of these it is; a slice that it never granted anything waits.
func TestAResourcePluginDecides(t *testing.T) {
	w := env.Peered(t)
	tenant := env.NewTenant(t)
	plugin := &decider{consumer: tenant.ID, path: filepath.Join(t.TempDir(), "plugin.sock")}
	plugin.grants("cpu", "3", "memory", "5Gi", "pods", "7")
	stop := plugin.serve(t)
	with := map[string]any{"offloading": map[string]any{"resourcePlugin": map[string]any{"address": "unix://" + plugin.path}}}
	w.Milan.Reconfigure(t, nil, with)
	defer w.Milan.Reconfigure(t, with, nil)

	slice := tenant.Granted(t, "decided", world.Quantities("cpu", "50"))
	says := func(sentence, cpu, reason string, words ...string) {
		t.Helper()
		fixture.Await(t, fixture.Patience, sentence+": cpu "+cpu+" to be granted, with trouble "+fmt.Sprintf("%q", reason), func(ctx context.Context) (bool, string) {
			if err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(slice), slice); err != nil {
				return false, err.Error()
			}
			got, trouble := slice.Status.Resources["cpu"], world.Status(slice, authv1beta1.PluginFailedCondition)
			return got.Cmp(resource.MustParse(cpu)) == 0 && trouble.Reason == reason && strings.Contains(trouble.Message, strings.Join(words, "")), fmt.Sprintf("granted are %s, trouble %+v", got.String(), trouble)
		})
	}
	says("as it decided", "3", "")
	if memory := slice.Status.Resources["memory"]; memory.String() != "5Gi" || len(slice.Status.Resources) != 3 {
		t.Errorf("granted are %v", slice.Status.Resources)
	}
	again := func(sentence string, done func()) {
		t.Helper()
		before := plugin.asked.Load()
		done()
		defer func() {
			if plugin.down.Load() {
				return
			}
			fixture.Await(t, fixture.Patience, sentence+": to be asked", func(context.Context) (bool, string) {
				return plugin.asked.Load() > before, fmt.Sprintf("asked %d times", plugin.asked.Load())
			})
		}()
		patch := client.RawPatch("application/merge-patch+json", []byte(fmt.Sprintf(`{"spec":{"resources":{"cpu":"%d"}}}`, 51+before)))
		fixture.Must(t, sentence, tenant.User.Patch(t.Context(), slice, patch))
	}
	again("asking for more", func() { plugin.grants("cpu", "4") })
	says("what it decides now", "4", "")
	again("asking one that is wrong", func() {
		plugin.says(func(_ context.Context, r *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
			answer := about(r, map[string]string{"cpu": "9"})
			answer.ClusterId = "rome"
			return answer, nil
		})
	})
	says("it names another consumer", "4", authv1beta1.ReasonPluginAnswerRefused, "it is not about this consumer's slice")
	again("asking one that grants what cannot be", func() { plugin.grants("cpu", "-1") })
	says("it grants what cannot be", "4", authv1beta1.ReasonPluginAnswerRefused, "is negative")
	again("asking one that is right again", func() { plugin.grants("cpu", "6") })
	says("it is right again", "6", "")
	again("asking one that is late", func() {
		plugin.says(func(ctx context.Context, r *resourcesv1.DecideRequest) (*resourcesv1.DecideResponse, error) {
			<-ctx.Done()
			return about(r, map[string]string{"cpu": "9"}), nil
		})
	})
	says("it is late", "6", authv1beta1.ReasonPluginLate)
	stop()
	plugin.down.Store(true)
	again("asking one that is down", func() {})
	says("it is down", "6", authv1beta1.ReasonPluginUnreachable)

	fixture.Must(t, "stopping the controller manager", w.Milan.Stop())
	w.Milan.Start(t)
	waits := tenant.Slice("waits", nil, nil)
	fixture.Must(t, "creating a slice that was never granted anything", tenant.User.Create(t.Context(), waits))
	fixture.Await(t, fixture.Patience, "it to wait for the plugin", func(ctx context.Context) (bool, string) {
		err := env.Milan.Client.Get(ctx, client.ObjectKeyFromObject(waits), waits)
		return err == nil && len(waits.Status.Resources) == 0 && strings.Contains(fmt.Sprint(waits.Status.Summary), authv1beta1.ReasonPluginUnreachable),
			fmt.Sprintf("%+v, error %v", waits.Status, err)
	})
	says("it is down, and the controller manager has answered anew", "6", authv1beta1.ReasonPluginUnreachable)
	plugin.grants("cpu", "8")
	defer plugin.serve(t)()
	says("it is back", "8", "")
}
