package e2e

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// servicesOfBoth has an application with a pod at home and one at the provider. Each cluster asks for the other's by its Service, from each node,
// and by the node port of each node, from a machine that is no node.
func servicesOfBoth(t *testing.T) {
	const namespace = "market"
	twin := the.offloaded(t, namespace)
	away, home := probing(), probing()
	away.NodeSelector, home.NodeName = remotely, the.rome.ownNodes()[1]
	nearby := serviceOf(namespace, "nearby", corev1.ServiceTypeNodePort)
	nearby.Spec.Selector[appLabel], nearby.Spec.ExternalTrafficPolicy = "away", corev1.ServiceExternalTrafficPolicyLocal
	the.rome.creates(t, podOf(namespace, "away", away), podOf(namespace, "home", home),
		serviceOf(namespace, "away", corev1.ServiceTypeNodePort), serviceOf(namespace, "home", corev1.ServiceTypeNodePort), nearby)
	the.rome.probe(t, namespace, "away")
	the.rome.probe(t, namespace, "home")

	byService(t, the.rome, namespace, "away")
	byService(t, the.milan, twin, "home")
	nearbyOnly(t, namespace, twin, home)
}

// byService asks for the only pod of a Service, which is in the other cluster and has the Service's name.
func byService(t *testing.T, c *side, namespace, name string) {
	t.Helper()
	service := serviceOf(namespace, name, "")
	c.sees(t, service, "the Service")
	size := c.mtu(t, other(c))
	for _, node := range c.ownNodes() {
		answer := name + " " + seenAt(t, other(c), c, c.probe(t, walksNamespace, node).Status.PodIP)
		c.asks(t, around, walksNamespace, node, addressOf(service.Spec.ClusterIP), size,
			map[string]string{"tcp": answer, "udp": answer, "full": answer, "larger": "refused"})
		answer = name + " " + c.seenNode(t, node)
		c.entered(t, node, service, size, map[string]string{"tcp": answer, "udp": answer, "full": answer, "larger": "refused"})
	}
}

// entrance is where a node takes what is for a Service. Its ports by TCP and UDP have the same number.
func (c *side) entrance(t *testing.T, node string, service *corev1.Service) string {
	t.Helper()
	tcp, udp := service.Spec.Ports[0].NodePort, service.Spec.Ports[1].NodePort
	if tcp == 0 || tcp != udp {
		t.Fatalf("Service %s at %s has the node ports %d and %d, want the same one twice", service.Name, c.name, tcp, udp)
	}
	return net.JoinHostPort(the.lab.Plan().Node(c.name, node).Address.String(), fmt.Sprint(tcp))
}

// entered asks a node for a Service from outside, until each of the answers is as wanted.
func (c *side) entered(t *testing.T, node string, service *corev1.Service, size int, want map[string]string) {
	t.Helper()
	entrance := c.entrance(t, node, service)
	eventually(t, around, fmt.Sprintf("answers of %s at %s", service.Name, entrance), func(context.Context) (bool, string) {
		o, err := perform(soon, the.outside(t, c, "ask", entrance, fmt.Sprint(size)))
		return err == nil && o.code == 0 && containsAll(o.stdout, want), fmt.Sprintf("%s %v", o, err)
	})
}

// nearbyOnly asks for a Service with policy Local from outside. Of its pods, those on the node that is asked answer, and see who asks; the others are
// not asked, wherever they are. As long as none is at home, an Event says that nobody is reached.
func nearbyOnly(t *testing.T, namespace, twin string, spec corev1.PodSpec) {
	t.Helper()
	service, copied := serviceOf(namespace, "nearby", ""), serviceOf(twin, "nearby", "")
	the.rome.reads(t, service)
	the.milan.sees(t, copied, "the Service")
	told := func(ctx context.Context) (bool, string) {
		list := &corev1.EventList{}
		if err := the.rome.List(ctx, list, client.InNamespace(namespace), client.MatchingFields{"involvedObject.uid": string(service.UID)}); err != nil {
			return false, err.Error()
		}
		var count int
		var seen []string
		for _, e := range list.Items {
			seen = append(seen, e.Reason+": "+e.Message)
			if e.Reason == offloadingv1beta1.ReasonNoLocalEndpoints {
				count += int(max(1, e.Count))
			}
		}
		return count == 1, strings.Join(seen, "; ")
	}
	eventually(t, soon, "one Event that says that nobody is reached from outside", told)

	nodes := the.rome.ownNodes()
	there := the.milan.probe(t, twin, "away").Spec.NodeName
	the.rome.silent(t, service, nodes...)
	extra := podOf(namespace, "here", spec)
	extra.Labels[appLabel] = "away"
	extra.Spec.NodeName = nodes[0]
	the.rome.creates(t, extra)
	the.rome.enteredLocally(t, nodes[0], service, "here")
	the.milan.enteredLocally(t, there, copied, "away")
	the.rome.silent(t, service, nodes[1])
	for _, node := range the.milan.ownNodes() {
		if node != there {
			the.milan.silent(t, copied, node)
		}
	}
	if one, seen := told(t.Context()); !one {
		t.Errorf("more or less than one Event was made: %s", seen)
	}
}

// enteredLocally asks a node from outside again and again. One pod answers, and sees the machine that asks; no other one ever does. A busy
// machine may lose a packet, but most asks are answered.
func (c *side) enteredLocally(t *testing.T, node string, service *corev1.Service, pod string) {
	t.Helper()
	// More than passes between the clusters was refused before on the way to this node, and the machine remembers it.
	size := c.mtu(t, other(c))
	answer := pod + " " + the.lab.Plan().ControlPlane(c.name).Address.String()
	want := map[string]string{"tcp": answer, "udp": answer, "full": answer}
	c.entered(t, node, service, size, want)
	const asks = 4
	unanswered := 0
	for range asks {
		eventually(t, around, fmt.Sprintf("another answer of %s at node %s", pod, node), func(context.Context) (bool, string) {
			o := execute(t, soon, the.outside(t, c, "ask", c.entrance(t, node, service), fmt.Sprint(size)))
			if another := anotherAnswer(o.stdout, want); another != "" {
				t.Fatalf("want %v each time, not %q: %s", want, another, o)
			}
			if !containsAll(o.stdout, want) {
				unanswered++
				return false, o.String()
			}
			return true, ""
		})
	}
	if unanswered > asks {
		t.Errorf("node %s left %d asks without an answer of %s, and answered %d", node, unanswered, pod, asks)
	}
}

// anotherAnswer is the first line of a prober that tells of another answer than is wanted, or that it was refused; empty if there is none.
func anotherAnswer(text string, want map[string]string) string {
	for line := range strings.Lines(text) {
		what, said, _ := strings.Cut(strings.TrimSpace(line), " ")
		if answer, asked := want[what]; asked && said != answer && !strings.HasPrefix(said, "failed:") {
			return line
		}
	}
	return ""
}

// silent asks nodes from outside, all at once, until none of them answers or refuses: kube-proxy knows the Service, and drops what comes.
func (c *side) silent(t *testing.T, service *corev1.Service, nodes ...string) {
	t.Helper()
	var group sync.WaitGroup
	defer group.Wait()
	for _, node := range nodes {
		args := the.outside(t, c, "ask", c.entrance(t, node, service), "0").Args
		group.Go(func() {
			seen, ok := poll(context.WithoutCancel(t.Context()), around, func(context.Context) (bool, string) {
				o, err := perform(soon, exec.Command(args[0], args[1:]...))
				return err == nil && containsAll(o.stdout, map[string]string{"tcp": "failed:", "udp": "failed:"}), fmt.Sprintf("%s %v", o, err)
			})
			if !ok {
				t.Errorf("waited %s for %s of %s to be silent for %s; last seen: %s", around, node, c.name, service.Name, seen)
			}
		})
	}
}
