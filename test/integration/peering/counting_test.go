package peering

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// S11: nothing counted Services, so one consumer could take all node ports of the provider. By a type that asks for them, by load
// balancers, which get them as well, or by changing Services later.
func TestNodePortsAreCounted(t *testing.T) {
	t.Parallel()
	ports := func() []corev1.ServicePort {
		var ports []corev1.ServicePort
		for n := range 10 {
			ports = append(ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", n), Port: int32(1000 + n)})
		}
		return ports
	}
	for name, tc := range map[string]struct{ first, then corev1.ServiceType }{
		"Services of type NodePort":     {corev1.ServiceTypeNodePort, ""},
		"Services of type LoadBalancer": {corev1.ServiceTypeLoadBalancer, ""},
		"Services that change":          {corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := env.NewTenant(t)
			c.Granted(t, world.GrantedSlice, world.Quantities("cpu", "1", "pods", "1"))
			namespace := c.Twin(t)
			user := env.Milan.Slice(t, c.ID, world.GrantedSlice)
			t.Cleanup(func() {
				_ = env.Milan.Client.DeleteAllOf(context.WithoutCancel(t.Context()), &corev1.Service{}, client.InNamespace(namespace))
			})
			var made atomic.Int64
			var last atomic.Value
			var all sync.WaitGroup
			for worker := range 8 {
				all.Go(func() {
					for i := range 20 {
						service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("s-%d-%d", worker, i), Labels: map[string]string{
							offloadingv1beta1.OriginLabel: c.ID, offloadingv1beta1.DestinationLabel: "milan"}},
							Spec: corev1.ServiceSpec{Type: tc.first, Ports: ports()}}
						err := user.Create(t.Context(), service)
						if err == nil && tc.then != "" {
							service.Spec.Type = tc.then
							err = user.Update(t.Context(), service)
						}
						if err != nil {
							last.Store(err.Error())
							continue
						}
						made.Add(1)
					}
				})
			}
			all.Wait()
			if made.Load() > 2 || made.Load() == 0 {
				t.Errorf("a consumer with a grant of one pod has %d Services with %d node ports in one namespace; the last answer: %v", made.Load(), 10*made.Load(), last.Load())
			}
			admins := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fixture.Unique("admins")},
				Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeNodePort, Ports: []corev1.ServicePort{{Port: 80}}}}
			fixture.Must(t, "creating a Service of the provider's administrator", env.Milan.Client.Create(t.Context(), admins))
			fixture.Must(t, "deleting it", env.Milan.Client.Delete(t.Context(), admins))
		})
	}
}

// S12: the grant was what the consumer asks for, as often as it asks.
func TestTheGrantsTogetherHaveACeiling(t *testing.T) {
	t.Parallel()
	c := env.NewTenant(t)
	sum := map[corev1.ResourceName]resource.Quantity{}
	for i := range 3 {
		slice := c.Granted(t, fmt.Sprintf("greedy-%d", i), world.Quantities("cpu", "1000000", "memory", "1Pi", "pods", "1000000", "nvidia.com/gpu", "1000000"))
		for name, quantity := range slice.Status.Resources {
			total := sum[name]
			total.Add(quantity)
			sum[name] = total
		}
	}
	for name, most := range world.Quantities("cpu", "1000", "memory", "10Ti", "pods", "10000", "nvidia.com/gpu", "0") {
		if got := sum[name]; got.Cmp(most) > 0 {
			t.Errorf("three slices were granted %s of %s by a provider with 3 simulated nodes", got.String(), name)
		}
	}
	if cpu := sum["cpu"]; cpu.IsZero() {
		t.Error("nothing was granted")
	}
	// A limit that the administrator sets counts at once, also for what was granted.
	tenant := &authv1beta1.Tenant{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: c.ID}}
	fixture.Must(t, "setting a limit", env.Milan.Client.Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"limits":{"resources":{"cpu":"2"}}}}`))))
	fixture.Await(t, fixture.Patience, "the grants to shrink", func(ctx context.Context) (bool, string) {
		quotas, together := &offloadingv1beta1.QuotaList{}, resource.Quantity{}
		err := env.Milan.Client.List(ctx, quotas, client.InNamespace(c.Namespace))
		for i := range quotas.Items {
			together.Add(*quotas.Items[i].Spec.Resources.Cpu())
		}
		return err == nil && len(quotas.Items) == 3 && together.CmpInt64(2) <= 0, fmt.Sprintf("%s cpus in %d Quotas, error %v", together.String(), len(quotas.Items), err)
	})
	// The limit is the provider's.
	if err := c.User.Patch(t.Context(), tenant, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"limits":null}}`))); err == nil {
		t.Error("the consumer wrote its own Tenant")
	}
}

// V15: all requests of a consumer, whatever identity of it makes them, are served at a priority level that no other consumer has.
func TestRequestsOfConsumersAreServedApart(t *testing.T) {
	t.Parallel()
	one, other := env.NewTenant(t), env.NewTenant(t)
	level := func(c *world.Tenant) string {
		level := &flowcontrolv1.PriorityLevelConfiguration{}
		fixture.Must(t, "reading the priority level", env.Milan.Client.Get(t.Context(), client.ObjectKey{Name: "liqo-consumer-" + c.ID}, level))
		return string(level.UID)
	}
	ones, others := level(one), level(other)
	for name, user := range map[string]struct {
		config *rest.Config
		want   string
	}{
		"its control plane": {one.User.Config, ones}, "a virtual kubelet of it": {env.Milan.Slice(t, one.ID, world.GrantedSlice).Config, ones},
		"another one": {other.User.Config, others},
	} {
		fixture.Await(t, fixture.Patience, "the requests of "+name+" to be apart", func(ctx context.Context) (bool, string) {
			got, err := priorityOf(ctx, user.config)
			return err == nil && got == user.want, fmt.Sprintf("served at %s, want %s, error %v", got, user.want, err)
		})
	}
	got, err := priorityOf(t.Context(), env.Milan.As(t, "somebody").Config)
	if err != nil || got == ones || got == others {
		t.Errorf("somebody else is served with them: %s, error %v", got, err)
	}
}

// priorityOf is the UID of the priority level that a request is served at.
func priorityOf(ctx context.Context, config *rest.Config) (string, error) {
	transport, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+"/api/v1/namespaces/default/pods", nil)
	if err != nil {
		return "", err
	}
	response, err := transport.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	return response.Header.Get(flowcontrolv1.ResponseHeaderMatchedPriorityLevelConfigurationUID), nil
}
