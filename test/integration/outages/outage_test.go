package outages

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// outage is one way to lose a provider, and what says so.
type outage struct {
	begin, end func(t *testing.T)
	// node is the reason at the Node and in its Event, virtual that of the VirtualNode, pod that of the pods.
	node, virtual, pod string
	// foreign is the reason of the ForeignCluster's condition and Event, words are in the messages.
	foreign, words string
}

func outages() map[string]outage {
	mend := func(*testing.T) { env.Milan.Link.Mend() }
	lost := outage{end: mend, node: "Unreachable", virtual: offloadingv1beta1.ReasonNodeNotReady, pod: offloadingv1beta1.ReasonRemoteUnavailable,
		foreign: corev1beta1.ReasonAPIServerUnreachable}
	all := map[string]outage{}
	for name, way := range map[string]struct {
		begin func()
		words string
	}{
		"hanging":          {env.Milan.Link.Cut, "no answer in time"},
		"another identity": {func() { env.Milan.Link.Lead(env.Rome.Config.Host) }, "another identity"},
		"dead":             {env.Milan.Link.Refuse, "does not answer"},
	} {
		o := lost
		o.begin, o.words = func(*testing.T) { way.begin() }, way.words
		all[name] = o
	}
	all["revoked"] = outage{
		begin: func(t *testing.T) { grant(t, authv1beta1.TenantDrained) }, end: func(t *testing.T) { grant(t, authv1beta1.TenantActive) },
		node: "RightsRevoked", virtual: "RightsRevoked", pod: "RightsRevoked", foreign: "RightsRevoked", words: "taken our rights back",
	}
	return all
}

// Whatever does not work says so in three places: a condition, an Event and a line in the log. So it is for each way to lose a provider,
// and kubectl logs and exec say the same.
//
// A process writes 25 Events about an object at once, and then one in five minutes, as each of Kubernetes' does: what the outages of
// other tests used up of that is given back by its restart.
func TestEachOutageShowsInThreePlaces(t *testing.T) {
	w := env.Peered(t)
	fixture.Must(t, "stopping the virtual kubelet", w.Kubelet.Stop())
	w.Kubelet.Start(t)
	// The API server does not reach the simulated pod's address: what kubectl logs and exec are told is asked for as the API server does.
	endpoint, token := w.Kubelet.Endpoint(), env.TokenOf(t, "system:kubelet-api-admin")
	all := outages()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		o := all[name]
		t.Run(name, func(t *testing.T) {
			namespace := env.Offloaded(t)
			for _, pod := range []*corev1.Pod{world.Pod(namespace, "one"), world.Pod(namespace, "two")} {
				fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod))
			}
			world.AwaitPods(t, env.Rome, namespace, 2)
			awaitSays(t, w, "all to be well", allIsWell)
			places := func(ctx context.Context) map[string]map[string]int {
				lines := func(p *fixture.Process, reason string) map[string]int {
					return map[string]int{"lines": strings.Count(p.Tail(math.MaxInt), `reason="`+reason+`"`)}
				}
				return map[string]map[string]int{
					"Node": world.EventsOf(ctx, env.Rome, "Node", "", w.Node, o.node), "VirtualNode": world.EventsOf(ctx, env.Rome, "VirtualNode", fixture.ConsumerNamespace, w.Node, o.virtual),
					"ForeignCluster": world.EventsOf(ctx, env.Rome, "ForeignCluster", "", "milan", o.foreign), "Pod": world.EventsOf(ctx, env.Rome, "Pod", namespace, "", o.pod),
					"log of the virtual kubelet": lines(w.Kubelet.Process, o.node), "log of the controller": lines(w.Rome.Process, o.foreign),
				}
			}
			before, now := places(t.Context()), map[string]int{}
			t.Cleanup(func() { o.end(t) })
			o.begin(t)
			fixture.Await(t, 3*fixture.Patience, "each place to say so", func(ctx context.Context) (bool, string) {
				p, err := peeringOf(ctx, w)
				if err != nil {
					return false, err.Error()
				}
				ok := strings.Contains(p.says(), "node False "+o.node+", tainted true; virtual node False "+o.virtual) && strings.Contains(causes(p), o.words)
				for place, seen := range places(ctx) {
					now[place] = world.Since(before[place], seen)
					ok = ok && now[place] > 0
				}
				return ok, fmt.Sprintf("%s; %s; news %v; pods %s", p.says(), causes(p), now, podsSay(ctx, namespace))
			})
			for _, place := range []string{"Node", "VirtualNode", "ForeignCluster", "Pod"} {
				if now[place] != 1 {
					t.Errorf("%d Events on the %s, want one", now[place], place)
				}
			}
			for _, path := range []string{"/containerLogs/" + namespace + "/one/a", "/exec/" + namespace + "/one/a?command=true&output=1"} {
				fixture.Await(t, fixture.Patience, path+" to be answered with 502 and "+strconv.Quote(o.words), func(ctx context.Context) (bool, string) {
					status, body, err := world.Scrape(ctx, endpoint+path, token)
					return err == nil && status == http.StatusBadGateway && strings.Contains(body, o.words), fmt.Sprint(status, body, err)
				})
			}
			o.end(t)
			awaitSays(t, w, "all to be well again", allIsWell)
		})
	}
}

// causes are the messages of what the ForeignCluster says of the provider's API server and of our rights.
func causes(p *peering) string {
	text := ""
	if c := conditions.Find(p.foreign.Status.Conditions, corev1beta1.APIServerStatus); c != nil {
		text += c.Message
	}
	if c := conditions.Find(p.foreign.Status.Modules.Authentication.Conditions, corev1beta1.AuthIdentityControlPlaneStatus); c != nil {
		text += "; " + c.Message
	}
	return text
}

// podsSay is what the pods of a namespace of rome show.
func podsSay(ctx context.Context, namespace string) string {
	pods, all := &corev1.PodList{}, []string(nil)
	if err := env.Rome.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return err.Error()
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		all = append(all, fmt.Sprintf("%s is %s: %s %s %v", p.Name, p.Status.Phase, p.Status.Reason, p.Status.Message, p.Status.Conditions))
	}
	return strings.Join(all, "; ")
}
