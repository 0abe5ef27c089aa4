package system

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/test/integration/fixture"
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

// eventsOf counts the Events about an object of rome that have a reason.
func eventsOf(ctx context.Context, kind, namespace, name, reason string) int {
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	list := &corev1.EventList{}
	if env.Rome.Client.List(ctx, list, client.InNamespace(namespace)) != nil {
		return 0
	}
	count := 0
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == kind && (name == "" || e.InvolvedObject.Name == name) && e.Reason == reason {
			count += max(1, int(e.Count))
		}
	}
	return count
}

// Whatever does not work says so in three places: a condition, an Event and a line in the log. So it is for each way to lose a provider.
func TestEachOutageShowsInThreePlaces(t *testing.T) {
	w := peered(t)
	for name, o := range outages() {
		t.Run(name, func(t *testing.T) {
			namespace := offloaded(t)
			for _, pod := range []*corev1.Pod{pod(namespace, "one"), pod(namespace, "two")} {
				fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod))
			}
			awaitPods(t, env.Rome, namespace, 2)
			w.awaitSays(t, "all to be well", allIsWell)
			places := func(ctx context.Context) map[string]int {
				return map[string]int{
					"Node": eventsOf(ctx, "Node", "", w.node, o.node), "VirtualNode": eventsOf(ctx, "VirtualNode", consumerNamespace, w.node, o.virtual),
					"ForeignCluster": eventsOf(ctx, "ForeignCluster", "", "milan", o.foreign), "Pod": eventsOf(ctx, "Pod", namespace, "", o.pod),
					"log of the virtual kubelet": strings.Count(logOf(t, w.kubelet.Process), `reason="`+o.node+`"`),
					"log of the controller":      strings.Count(logOf(t, w.rome.Process), `reason="`+o.foreign+`"`),
				}
			}
			before := places(t.Context())
			o.begin(t)
			t.Cleanup(func() { o.end(t) })
			fixture.Await(t, 3*fixture.Patience, "each place to say so once", func(ctx context.Context) (bool, string) {
				p, err := w.peering(ctx)
				if err != nil {
					return false, err.Error()
				}
				seen := places(ctx)
				ok := strings.Contains(p.says(), "node False "+o.node+", tainted true; virtual node False "+o.virtual) && strings.Contains(causes(p), o.words)
				for place := range seen {
					ok = ok && seen[place] > before[place]
				}
				return ok, fmt.Sprintf("%s; %s; before %v, now %v", p.says(), causes(p), before, seen)
			})
			now := places(t.Context())
			for _, place := range []string{"Node", "VirtualNode", "ForeignCluster", "Pod"} {
				if n := now[place] - before[place]; n != 1 {
					t.Errorf("%d Events on the %s, want one", n, place)
				}
			}
			o.end(t)
			w.awaitSays(t, "all to be well again", allIsWell)
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

func logOf(t *testing.T, p *fixture.Process) string {
	t.Helper()
	return p.Tail(1 << 20)
}
