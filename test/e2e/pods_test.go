package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// protocols are the two ways in which kubectl streams.
var protocols = map[string][]string{
	"WebSocket": nil,
	"SPDY":      {"KUBECTL_REMOTE_COMMAND_WEBSOCKETS=false", "KUBECTL_PORT_FORWARD_WEBSOCKETS=false"},
}

// TestPods is acceptance point 2: what a user does with pods works on those that run in the other cluster.
func TestPods(t *testing.T) {
	the.shared(t)
	const namespace = "pods"
	twin := the.offloaded(t, namespace)

	t.Run("a Deployment's replicas land in both clusters", func(t *testing.T) {
		the.recordFailure(t)
		the.rome.applies(t, namespace, "pods/web.yaml")
		pods := the.rome.ready(t, namespace, "web", 4)
		perNode := map[string]int{}
		for i := range pods {
			perNode[pods[i].Spec.NodeName]++
			if pods[i].Status.PodIP == "" {
				t.Errorf("pod %s has no address", pods[i].Name)
			}
		}
		if perNode[virtualNode] != 2 || len(perNode) != 2 {
			t.Fatalf("two pods in each cluster wanted: %v", perNode)
		}
		the.milan.ready(t, twin, "web", 2)
	})
	if t.Failed() {
		return
	}
	var remote string
	for _, pod := range the.rome.ready(t, namespace, "web", 4) {
		if pod.Spec.NodeName == virtualNode {
			remote = pod.Name
		}
	}
	t.Run("logs are followed", func(t *testing.T) { the.recordFailure(t); followLogs(t, namespace) })
	t.Run("kubectl attach", func(t *testing.T) { eachProtocol(t, func(t *testing.T, env []string) { attach(t, namespace, env) }) })
	t.Run("kubectl exec passes the exit code", func(t *testing.T) {
		eachProtocol(t, func(t *testing.T, env []string) {
			o := execute(t, soon, withEnv(the.kubectlCommand(the.rome, "exec", "-n", namespace, remote, "--", "sh", "-c", "hostname; echo oops >&2; exit 7"), env))
			o.exits(t, 7)
			if strings.TrimSpace(o.stdout) != remote || !strings.Contains(o.stderr, "oops") {
				t.Fatalf("stdout %q and oops on stderr wanted: %s", remote, o)
			}
		})
	})
	t.Run("kubectl exec on a terminal", func(t *testing.T) {
		eachProtocol(t, func(t *testing.T, env []string) { execTerminal(t, namespace, remote, env) })
	})
	t.Run("kubectl debug", func(t *testing.T) { the.recordFailure(t); debug(t, namespace, remote) })
	t.Run("kubectl port-forward", func(t *testing.T) {
		eachProtocol(t, func(t *testing.T, env []string) { portForward(t, namespace, remote, env) })
	})
	t.Run("kubectl delete --grace-period", func(t *testing.T) { hasten(t, namespace, twin) })
}

// hasten deletes pods that do not heed SIGTERM with less time than their own, on a physical and on the virtual node: both kubelets kill them
// after that time, and not after the pods' own.
func hasten(t *testing.T, namespace, twin string) {
	const own = int64(120)
	kubelets := map[string]map[string]string{"physical": {corev1.LabelHostname: physicalNode(t)}, "virtual": remotely}
	for how, flags := range map[string][]string{"one second": {"--grace-period=1"}, "by force": {"--grace-period=0", "--force"}} {
		for where, node := range kubelets {
			t.Run(how+" on the "+where+" node", func(t *testing.T) {
				the.recordFailure(t)
				name := strings.ReplaceAll("deaf-"+how+"-"+where, " ", "-")
				spec := script(`trap '' TERM; echo working; while true; do sleep 1; done`)
				*spec.TerminationGracePeriodSeconds, spec.NodeSelector = own, node
				the.rome.creates(t, podOf(namespace, name, spec))
				the.rome.ready(t, namespace, name, 1)
				talk(t, the.kubectlCommand(the.rome, "logs", "-f", "-n", namespace, name)).shows(t, "working")
				began := time.Now()
				the.kubectl(t, the.rome, soon, append([]string{"delete", "pod", "-n", namespace, name, "--wait=false"}, flags...)...).succeeds(t)
				eventually(t, time.Duration(own)*time.Second/4, "the pod to be gone in both clusters", func(ctx context.Context) (bool, string) {
					for cluster, pod := range map[*side]*corev1.Pod{the.rome: {ObjectMeta: named(namespace, name)}, the.milan: {ObjectMeta: named(twin, name)}} {
						if there, err := cluster.finds(ctx, client.ObjectKeyFromObject(pod), pod); there || err != nil {
							return false, fmt.Sprintf("%s, error %v", describe([]corev1.Pod{*pod}), err)
						}
					}
					return true, "it is gone"
				})
				t.Logf("it took %s", time.Since(began).Round(time.Second/10))
			})
		}
	}
}

func eachProtocol(t *testing.T, test func(*testing.T, []string)) {
	for name, env := range protocols {
		t.Run(name, func(t *testing.T) { the.recordFailure(t); test(t, env) })
	}
}

func withEnv(command *exec.Cmd, env []string) *exec.Cmd {
	command.Env = append(command.Env, env...)
	return command
}

// debug adds a container to a pod that runs, after one that the provider refuses.
func debug(t *testing.T, namespace, pod string) {
	the.kubectl(t, the.rome, soon, "debug", "-n", namespace, pod, "--profile=sysadmin", "--image=busybox:1.36", "-c", "mighty", "--", "true").succeeds(t)
	the.rome.warned(t, namespace, pod, "FailedReflection")
	the.kubectl(t, the.rome, soon, "debug", "-n", namespace, pod, "--image=busybox:1.36", "-c", "debugger",
		"--", "sh", "-c", "echo seen from $(hostname)").succeeds(t)
	eventually(t, patience, "the debugging container to speak", func(context.Context) (bool, string) {
		o := the.kubectl(t, the.rome, soon, "logs", "-n", namespace, pod, "-c", "debugger")
		return strings.TrimSpace(o.stdout) == "seen from "+pod, o.String()
	})
}

func followLogs(t *testing.T, namespace string) {
	// The pod speaks again only when it is told to: what is seen then was followed, not read at the end.
	the.rome.creates(t, podOf(namespace, "speaker", script("echo first; while [ ! -f /tmp/go ]; do sleep 1; done; echo second; "+forever)))
	the.rome.ready(t, namespace, "speaker", 1)
	logs := talk(t, the.kubectlCommand(the.rome, "logs", "-f", "-n", namespace, "speaker"))
	logs.shows(t, "first")
	the.kubectl(t, the.rome, soon, "exec", "-n", namespace, "speaker", "--", "touch", "/tmp/go").succeeds(t)
	logs.shows(t, "second")
	the.kubectl(t, the.rome, soon, "logs", "-n", namespace, "speaker", "--tail=1", "--timestamps").succeeds(t).says(t, "Z second")
	if o := the.kubectl(t, the.rome, soon, "logs", "-n", namespace, "speaker", "--limit-bytes=3").succeeds(t); o.stdout != "fir" {
		t.Fatalf("three bytes wanted: %s", o)
	}
	the.rome.deletes(t, podOf(namespace, "speaker", corev1.PodSpec{}))
	logs.exits(t, 0)
}

func attach(t *testing.T, namespace string, env []string) {
	spec := script("while read line; do echo you said $line; done")
	spec.Containers[0].Stdin = true
	name := "listener-" + strings.ToLower(t.Name()[strings.LastIndex(t.Name(), "/")+1:])
	the.rome.creates(t, podOf(namespace, name, spec))
	the.rome.ready(t, namespace, name, 1)
	attached := talk(t, withEnv(the.kubectlCommand(the.rome, "attach", "-i", "-n", namespace, name), env))
	attached.send(t, "ciao")
	attached.shows(t, "you said ciao")
}

func execTerminal(t *testing.T, namespace, pod string, env []string) {
	x := terminal(t, withEnv(the.kubectlCommand(the.rome, "exec", "-it", "-n", namespace, pod, "--", "sh"), env), 24, 80)
	x.send(t, "tty; echo sum $((40+2))")
	x.shows(t, "/dev/pts/")
	x.shows(t, "sum 42")
	x.resize(t, 33, 111)
	// The new size arrives beside the keystrokes, so the shell is asked until it has it.
	x.send(t, `until [ "$(stty size)" = "33 111" ]; do sleep 1; done; echo size $((30+3)) seen`)
	x.shows(t, "size 33 seen")
	x.send(t, "exit 3")
	x.exits(t, 3)
}

var forwarding = regexp.MustCompile(`Forwarding from 127\.0\.0\.1:(\d+)`)

func portForward(t *testing.T, namespace, pod string, env []string) {
	x := talk(t, withEnv(the.kubectlCommand(the.rome, "port-forward", "-n", namespace, "pod/"+pod, ":8080"), env))
	x.shows(t, "Forwarding from 127.0.0.1:")
	port := forwarding.FindStringSubmatch(x.out.String())[1]
	for range 3 {
		eventually(t, soon, "the pod's page through the forwarded port", func(ctx context.Context) (bool, string) {
			return page(ctx, "http://127.0.0.1:"+port+"/", "hello from "+pod)
		})
	}
}

// page checks that a page holds a text.
func page(ctx context.Context, url, text string) (bool, string) {
	return pageBy(ctx, http.DefaultClient, url, func(body string) bool { return strings.Contains(body, text) })
}

func pageBy(ctx context.Context, browser *http.Client, url string, right func(body string) bool) (bool, string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, err.Error()
	}
	answer, err := browser.Do(request)
	if err != nil {
		return false, err.Error()
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return false, err.Error()
	}
	return answer.StatusCode == http.StatusOK && right(string(body)), fmt.Sprintf("%s: %q", answer.Status, body)
}

// TestPodsOfOtherNamespaces shows that a toleration alone brings no pod into the other cluster.
func TestPodsOfOtherNamespaces(t *testing.T) {
	the.shared(t)
	const namespace = "stay"
	the.namespace(t, namespace)
	spec := script(forever)
	spec.NodeSelector = map[string]string{corev1beta1.RemoteClusterIDLabel: provider}
	spec.Tolerations = []corev1.Toleration{{Key: offloadingv1beta1.VirtualNodeTaint, Operator: corev1.TolerationOpExists}}
	pod := podOf(namespace, "tolerant", spec)
	the.rome.creates(t, pod)
	waits := look(func(ctx context.Context) (bool, string, error) {
		if there, err := the.rome.finds(ctx, client.ObjectKeyFromObject(pod), pod); !there {
			return false, "no such pod", err
		}
		return pod.Spec.NodeName == virtualNode && pod.Status.Phase == corev1.PodPending && pod.Status.Reason == offloadingv1beta1.ReasonOffloadingBackOff,
			describe([]corev1.Pod{*pod}), nil
	})
	eventually(t, soon, "the pod to be Pending for OffloadingBackOff", waits.check)
	throughout(t, 3*time.Second, "Pending for OffloadingBackOff", waits)
	if ok, seen := the.milan.gone(namespaceOf(twinOf(namespace)))(t.Context()); !ok {
		t.Fatalf("a namespace that is not offloaded has a twin: %s", seen)
	}

	t.Run("until the namespace is offloaded", func(t *testing.T) {
		the.recordFailure(t)
		the.liqoctl(t, time.Minute, "offload", "namespace", namespace, "--selector", toMilan, "--kubeconfig", the.rome.kubeconfig).succeeds(t)
		the.rome.ready(t, namespace, "tolerant", 1)
	})
}
