package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	"liqo.io/liqo/test/lab/network"
)

const (
	chaosNamespace = "chaos"
	// chaosRounds says how many rounds there are; without it there are none.
	chaosRounds = "LIQO_E2E_CHAOS_ROUNDS"
	chaosSeed   = "LIQO_E2E_CHAOS_SEED"
	// back is within how long after the end of a fault packets have to pass again. An open connection may take as much longer as there was no way
	// for it: TCP waits twice as long before each new try.
	back = 10 * time.Second
)

// chaos is a run of random faults under steady traffic.
type chaos struct {
	*rand.Rand
	rounds int
	// killed are the pods whose process was killed before: the kubelet would let it wait the next time.
	killed map[string]bool
}

// TestNetworkChaos does random things to gateways, agents, kernels, links and API servers, one after the other, while pods of all nodes keep talking.
// After each of them packets pass again, no open connection was lost, and the kernel is as it is wanted.
func TestNetworkChaos(t *testing.T) {
	if os.Getenv(chaosRounds) == "" {
		t.Skipf("%s is not set; make chaos sets it", chaosRounds)
	}
	the.alone(t)
	c := newChaos(t)
	c.traffic(t)
	faults := c.faults()
	for round := range c.rounds {
		f := faults[c.IntN(len(faults))]
		if !t.Run(fmt.Sprintf("%02d %s", round+1, f.name), func(t *testing.T) { the.recordFailure(t); c.round(t, f) }) {
			t.Fatal("what comes after a failure would prove nothing")
		}
	}
	for _, s := range []*side{the.rome, the.milan} {
		s.deletes(t, namespaceOf(chaosNamespace))
		s.misses(t, namespaceOf(chaosNamespace), "the namespace of the traffic")
	}
	leavesNoNetwork(t)
}

func newChaos(t *testing.T) *chaos {
	t.Helper()
	number := func(name string, otherwise int) int {
		n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
		if err != nil {
			t.Fatalf("reading %s: %v", name, err)
		}
		return n
	}
	rounds, seed := number(chaosRounds, 0), number(chaosSeed, int(time.Now().Unix()))
	t.Logf("%s=%d %s=%d does the same again", chaosSeed, seed, chaosRounds, rounds)
	return &chaos{Rand: rand.New(rand.NewPCG(uint64(seed), 0)), rounds: rounds, killed: map[string]bool{}}
}

// traffic starts a pod on each node that talks with the pods on all nodes of the other cluster.
func (c *chaos) traffic(t *testing.T) {
	t.Helper()
	the.users.takes(t, chaosNamespace)
	sides := []*side{the.rome, the.milan}
	for _, s := range sides {
		s.creates(t, namespaceOf(chaosNamespace))
		s.sees(t, &corev1.ServiceAccount{ObjectMeta: named(chaosNamespace, "default")}, "the account of pods")
		t.Cleanup(func() { s.deletes(t, namespaceOf(chaosNamespace)) })
		for _, node := range s.ownNodes() {
			s.creates(t, probe(chaosNamespace, node, false))
		}
	}
	for _, s := range sides {
		var others []string
		for _, peer := range other(s).ownNodes() {
			others = append(others, peer+"="+seenAt(t, s, other(s), other(s).probe(t, chaosNamespace, peer).Status.PodIP))
		}
		for _, node := range s.ownNodes() {
			pod := probe(chaosNamespace, node, false)
			pod.Name = "from-" + node
			pod.Labels[appLabel] = pod.Name
			pod.Spec.Containers[0].Args = append([]string{"flow"}, others...)
			s.creates(t, pod)
			s.probe(t, chaosNamespace, pod.Name)
		}
	}
	c.passes(t, time.Now(), around)
}

// flow is what the prober tells of one of its flows.
type flow struct {
	OK, Silent, Back int64
	Lost             int
	Why              string
}

// flows reads how all traffic does.
func (c *chaos) flows(ctx context.Context) (map[string]flow, error) {
	all, tail := map[string]flow{}, int64(1)
	for _, s := range []*side{the.rome, the.milan} {
		for _, node := range s.ownNodes() {
			stream, err := s.kube.CoreV1().Pods(chaosNamespace).GetLogs("from-"+node, &corev1.PodLogOptions{TailLines: &tail}).Stream(ctx)
			if err != nil {
				return nil, err
			}
			line, err := io.ReadAll(stream)
			_ = stream.Close()
			var here map[string]flow
			if err == nil {
				err = json.Unmarshal(line, &here)
			}
			if err != nil {
				return nil, fmt.Errorf("what %s tells is %q: %w", node, line, err)
			}
			for name, f := range here {
				all[node+" "+name] = f
			}
		}
	}
	return all, nil
}

// passes waits until there was an answer on each flow since a time, and returns how they are.
func (c *chaos) passes(t *testing.T, since time.Time, within time.Duration) (all map[string]flow) {
	t.Helper()
	eventually(t, within, "answers to all", func(ctx context.Context) (bool, string) {
		var err error
		if all, err = c.flows(ctx); err != nil {
			return false, err.Error()
		}
		var silent []string
		for name, f := range all {
			if f.OK <= since.UnixMilli() {
				silent = append(silent, fmt.Sprintf("%s since %s", name, time.UnixMilli(f.OK).Format(time.TimeOnly)))
			}
		}
		slices.Sort(silent)
		return len(silent) == 0 && len(all) > 0, "no answer: " + strings.Join(silent, ", ")
	})
	return all
}

// round does one thing, and looks at what becomes of it.
func (c *chaos) round(t *testing.T, f disturbance) {
	t.Helper()
	begun := time.Now()
	did := f.do(t)
	ended := time.Now()
	lasted := ended.Sub(begun)
	all := c.passes(t, ended, 3*time.Minute+lasted)
	packets, connections := lateness(all, ended, false), lateness(all, ended, true)
	for name, flow := range all {
		if flow.Lost > 0 {
			t.Errorf("after %s: an open connection, %s, was lost: %s", did, name, flow.Why)
		}
	}
	if packets > back {
		t.Errorf("after %s, which took %s, packets passed %s later", did, lasted.Round(time.Millisecond), packets)
	}
	if limit := back + lasted + packets; connections > limit {
		t.Errorf("after %s, which took %s, and after which packets passed %s later, a connection was silent for %s, want %s at most",
			did, lasted.Round(time.Millisecond), packets, connections, limit)
	}
	c.converges(t)
	t.Logf("%s took %s; packets passed %s later at the latest, open connections %s, and the kernel was as wanted after %s",
		did, lasted.Round(time.Millisecond), packets, connections, time.Since(ended).Round(time.Millisecond))
}

// lateness is how long after the end of a fault the last of the open connections had an answer again, or the last of all other flows.
func lateness(all map[string]flow, ended time.Time, open bool) (latest time.Duration) {
	for name, f := range all {
		if strings.Contains(name, " open ") == open {
			latest = max(latest, time.UnixMilli(f.Back).Sub(ended))
		}
	}
	return latest
}

// converges waits until each agent says that the kernel is as it is wanted.
func (c *chaos) converges(t *testing.T) {
	t.Helper()
	for _, s := range []*side{the.rome, the.milan} {
		eventually(t, 2*around, "the kernel of "+s.name+" to be as wanted", func(ctx context.Context) (bool, string) {
			agents, err := s.agents(ctx)
			if err != nil || len(agents) != len(s.ownNodes())+1 {
				return false, fmt.Sprintf("%d agents, %v", len(agents), err)
			}
			for _, pod := range agents {
				program := "/usr/bin/" + agentProgram(&pod)
				if o := the.kubectl(t, s, soon, "exec", "-n", pod.Namespace, pod.Name, "--", program, "diff"); o.code != 0 {
					return false, pod.Name + ": " + o.String()
				}
			}
			return true, ""
		})
	}
}

// agents are the pods of a cluster's gateway to the other one, and of its nodes' agents.
func (c *side) agents(ctx context.Context) (all []corev1.Pod, err error) {
	for _, namespace := range []string{"liqo", ofPeer(other(c)).Namespace} {
		pods, err := c.pods(ctx, namespace)
		if err != nil {
			return nil, err
		}
		for i := range pods {
			if agentProgram(&pods[i]) != "" {
				all = append(all, pods[i])
			}
		}
	}
	return all, nil
}

// agentProgram is the program of an agent's pod; "" if it is none.
func agentProgram(pod *corev1.Pod) string {
	switch {
	case strings.HasPrefix(pod.Name, "gw-"):
		return "liqo-gateway"
	case strings.HasPrefix(pod.Name, "liqo-fabric"):
		return "liqo-fabric"
	}
	return ""
}

// disturbance is something that is done; it returns when it is over, with what it was in words.
type disturbance struct {
	name string
	do   func(t *testing.T) string
}

func (c *chaos) side() *side { return []*side{the.rome, the.milan}[c.IntN(2)] }

func (c *chaos) pick(of ...string) string { return of[c.IntN(len(of))] }

// while is how long a fault lasts.
func (c *chaos) while(t *testing.T) time.Duration {
	t.Helper()
	d := time.Duration(2000+c.IntN(6000)) * time.Millisecond
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
	return d
}

func (c *chaos) faults() []disturbance {
	return []disturbance{
		{"gateway's pod deleted", c.deletesGateway},
		{"gateway's process killed", func(t *testing.T) string { return c.kills(t, "liqo-gateway") }},
		{"agent's process killed", func(t *testing.T) string { return c.kills(t, "liqo-fabric") }},
		{"agents deleted", c.deletesAgents},
		{"node's kernel changed", c.changesNode},
		{"gateway's kernel changed", c.changesGateway},
		{"link cut", func(t *testing.T) string { return c.breaks(t, network.Fault{Cut: true}) }},
		{"UDP blocked", func(t *testing.T) string { return c.breaks(t, network.Fault{NoUDP: true}) }},
		{"MTU shrunk", func(t *testing.T) string { return c.breaks(t, network.Fault{MTU: 1300 + c.IntN(150)}) }},
		{"API server down", c.withoutAPI},
		{"controller manager killed", c.killsManager},
		{"kube-proxy restarted", c.restartsProxy},
		{"agent stopped while the gateway moves", c.movesUnseen},
	}
}

// gateway reads the pod of a cluster's gateway once it is ready and no other one is there.
func (c *chaos) gateway(t *testing.T, s *side) (found corev1.Pod) {
	t.Helper()
	eventually(t, 3*patience, "the gateway of "+s.name+" to be ready", func(ctx context.Context) (bool, string) {
		agents, err := s.agents(ctx)
		if err != nil {
			return false, err.Error()
		}
		gateways := slices.DeleteFunc(agents, func(p corev1.Pod) bool { return agentProgram(&p) != "liqo-gateway" })
		if len(gateways) == 1 {
			found = gateways[0]
		}
		return len(gateways) == 1 && isReady(&found), describe(gateways)
	})
	return found
}

func (c *chaos) deletesGateway(t *testing.T) string {
	s := c.side()
	pod := c.gateway(t, s)
	s.deletes(t, &pod, client.GracePeriodSeconds(0))
	s.misses(t, &pod, "the deleted gateway")
	c.gateway(t, s)
	return "the gateway of " + s.name + " was deleted"
}

// pids are the processes of an agent, without those that ask it something.
func (c *chaos) pids(t *testing.T, s *side, name string) (pids []int) {
	t.Helper()
	eventually(t, patience, name+" of "+s.name+" to run", func(context.Context) (bool, string) {
		found, err := the.processes(program{s.name, name})
		pids = slices.DeleteFunc(found, func(pid int) bool {
			line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
			args := strings.Split(string(line), "\x00")
			return err != nil || len(args) < 2 || !strings.HasPrefix(args[1], "--")
		})
		slices.Sort(pids)
		return err == nil && len(pids) > 0, fmt.Sprint(err)
	})
	return pids
}

// kills ends one process of an agent as a crash does, and waits until the kubelet has started it again. A pod that had that before is deleted in
// its place: the kubelet makes it wait longer each time, for which there is no reason here.
func (c *chaos) kills(t *testing.T, name string) string {
	s := c.side()
	agents, err := s.agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	agents = slices.DeleteFunc(agents, func(p corev1.Pod) bool { return agentProgram(&p) != name })
	pod := agents[c.IntN(len(agents))]
	if uid := string(pod.UID); c.killed[uid] {
		s.deletes(t, &pod, client.GracePeriodSeconds(0))
		s.misses(t, &pod, "the deleted agent")
	} else {
		c.killed[uid] = true
		for _, pid := range c.pids(t, s, name) {
			if groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err == nil && strings.Contains(string(groups), "/"+pod.Spec.NodeName+"/") {
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
			}
		}
		eventually(t, patience, "the kubelet to see that "+pod.Name+" ended", func(ctx context.Context) (bool, string) {
			now := &corev1.Pod{}
			if err := s.Get(ctx, client.ObjectKeyFromObject(&pod), now); err != nil {
				return false, err.Error()
			}
			return len(now.Status.ContainerStatuses) > 0 && now.Status.ContainerStatuses[0].RestartCount > pod.Status.ContainerStatuses[0].RestartCount, describe([]corev1.Pod{*now})
		})
	}
	s.agentsReady(t)
	return fmt.Sprintf("%s on %s was killed", name, pod.Spec.NodeName)
}

// agentsReady waits until the gateway to the other cluster and the agents of all nodes are ready.
func (c *side) agentsReady(t *testing.T) {
	t.Helper()
	eventually(t, 3*patience, "the agents of "+c.name+" to be ready", func(ctx context.Context) (bool, string) {
		agents, err := c.agents(ctx)
		ready := !slices.ContainsFunc(agents, func(p corev1.Pod) bool { return !isReady(&p) })
		return err == nil && ready && len(agents) == len(c.ownNodes())+1, fmt.Sprintf("%s, %v", describe(agents), err)
	})
}

func (c *chaos) deletesAgents(t *testing.T) string {
	s := c.side()
	agents, err := s.agents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for i := range agents {
		if agentProgram(&agents[i]) == "liqo-fabric" {
			s.deletes(t, &agents[i], client.GracePeriodSeconds(0))
			s.misses(t, &agents[i], "the deleted agent")
		}
	}
	s.agentsReady(t)
	return "the agents of all nodes of " + s.name + " were deleted"
}

// changesNode takes away what the agent put into the kernel of a node, or a part of it.
func (c *chaos) changesNode(t *testing.T) string {
	s := c.side()
	node := c.pick(s.ownNodes()...)
	script := c.pick("ip route flush table local proto 79", "nft delete table ip liqo", "nft flush table ip liqo", "nft flush ruleset",
		"ip link del cni-liqo", "ip link set cni-liqo down", "ip neigh flush dev cni-liqo nud permanent", "ip address flush dev cni-liqo",
		"ip route flush table local proto 79; nft delete table ip liqo; ip link del cni-liqo",
		"for r in $(ip route show table local proto 79 | cut -d' ' -f1 | head -n1); do ip route replace unreachable $r table local; done")
	the.within(t, s, node, "sh", "-ec", script).succeeds(t)
	return fmt.Sprintf("'%s' on %s", script, node)
}

// changesGateway does so in a gateway. What WireGuard in user space needs of its own process is left: without its device, that has to end.
func (c *chaos) changesGateway(t *testing.T) string {
	s := c.side()
	c.gateway(t, s)
	script := c.pick("nft delete table ip liqo", "nft flush table ip liqo", "ip link del liqo", "ip link set liqo down", "ip link set liqo-tunnel down",
		"ip address flush dev liqo-tunnel", "ip route flush table 101", "ip rule del pref 101; ip rule del pref 102", "ip rule add pref 0 lookup local",
		"ip link del liqo-tunnel", "ip neigh flush dev liqo nud permanent", "ip route flush table 101; ip route flush table 102; nft delete table ip liqo")
	pid := c.pids(t, s, "liqo-gateway")[0]
	command := exec.Command("nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid), "sh", "-ec", script)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", script, err, out)
	}
	return fmt.Sprintf("'%s' in the gateway of %s", script, s.name)
}

func (c *chaos) breaks(t *testing.T, f network.Fault) string {
	f.A, f.B = consumer, provider
	if err := the.breaks(t).BreakLink(t.Context(), f); err != nil {
		t.Fatalf("breaking the link: %v", err)
	}
	t.Cleanup(func() { the.mend(t) })
	d := c.while(t)
	the.mend(t)
	return fmt.Sprintf("%+v for %s", f, d)
}

func (c *chaos) withoutAPI(t *testing.T) string {
	s := c.side()
	component := s.name + "/kube-apiserver"
	if err := the.breaks(t).Kill(component); err != nil {
		t.Fatal(err)
	}
	d := c.while(t)
	if err := the.breaks(t).Restart(context.WithoutCancel(t.Context()), component); err != nil {
		t.Fatal(err)
	}
	eventually(t, patience, component+" to answer", func(ctx context.Context) (bool, string) {
		answer, err := s.kube.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
		return err == nil, fmt.Sprintf("%s %v", answer, err)
	})
	return fmt.Sprintf("%s was down for %s", component, d)
}

func (c *chaos) killsManager(t *testing.T) string {
	s := c.side()
	the.kill(t, program{s.name, "liqo-controller-manager"})
	return "the controller manager of " + s.name + " was killed"
}

func (c *chaos) restartsProxy(t *testing.T) string {
	s := c.side()
	component := s.name + "/" + c.pick(s.ownNodes()...) + "/kube-proxy"
	if err := the.breaks(t).Restart(context.WithoutCancel(t.Context()), component); err != nil {
		t.Fatal(err)
	}
	return component + " was restarted"
}

// movesUnseen has the gateway move while an agent of a node does not look.
func (c *chaos) movesUnseen(t *testing.T) string {
	s := c.side()
	pids := c.pids(t, s, "liqo-fabric")
	pid := pids[c.IntN(len(pids))]
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	// What was killed meanwhile, because it did not answer, is gone.
	wake := func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	t.Cleanup(wake)
	pod := c.gateway(t, s)
	s.deletes(t, &pod, client.GracePeriodSeconds(0))
	s.misses(t, &pod, "the deleted gateway")
	now := c.gateway(t, s)
	eventually(t, patience, "the nodes of "+s.name+" to be told of the new gateway", func(ctx context.Context) (bool, string) {
		fabric := &networkingv1beta1.InternalFabric{}
		err := s.Get(ctx, client.ObjectKey{Namespace: ofPeer(other(s)).Namespace, Name: other(s).name}, fabric)
		return err == nil && string(fabric.Spec.GatewayIP) == now.Status.PodIP, fmt.Sprintf("%s, %v", fabric.Spec.GatewayIP, err)
	})
	wake()
	s.agentsReady(t)
	return "the gateway of " + s.name + " moved while an agent was stopped"
}
