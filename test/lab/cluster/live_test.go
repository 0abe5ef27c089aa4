package cluster_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"

	"liqo.io/liqo/test/lab/cluster"
	"liqo.io/liqo/test/lab/image"
	"liqo.io/liqo/test/lab/spec"
	"liqo.io/liqo/test/lab/step"
)

// envLive switches the tests on that start clusters: "simulated" needs the
// binaries only, "real" needs root too and runs both.
const envLive = "LIQO_LAB_TEST"

func live(t *testing.T, kinds ...string) context.Context {
	t.Helper()
	if !slices.Contains(kinds, os.Getenv(envLive)) {
		t.Skipf("starts clusters; set %s to one of %v", envLive, kinds)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// up starts a lab for a test and takes it down afterwards.
func up(ctx context.Context, t *testing.T, lab spec.Lab) *cluster.Lab {
	t.Helper()
	begin := time.Now()
	l, err := cluster.Up(ctx, lab, step.Silent{})
	if l != nil {
		t.Cleanup(func() {
			if err := l.Down(context.Background(), step.Silent{}); err != nil {
				t.Errorf("taking the lab down: %v", err)
			}
			if left := traces(l); left != "" {
				t.Errorf("the lab left:\n%s", left)
			}
		})
	}
	if err != nil {
		t.Fatalf("starting the lab: %v", err)
	}
	t.Logf("lab %s was ready after %s", lab.Name, time.Since(begin).Round(100*time.Millisecond))
	return l
}

// traces lists what a lab that was taken down left on the machine.
func traces(l *cluster.Lab) string {
	script := fmt.Sprintf(`ls -d %[1]s 2>/dev/null; grep -F %[1]s/ /proc/mounts
ip netns list | grep -F liqo-lab-%[2]s-; find /sys/fs/cgroup -maxdepth 4 -path '*/liqo-lab/%[2]s'`, l.Dir(), l.Spec().Name)
	left, _ := exec.Command("/bin/sh", "-c", script).Output()
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range commands {
		if line, err := os.ReadFile(path); err == nil && bytes.Contains(line, []byte(l.Dir()+"/")) {
			left = append(left, bytes.ReplaceAll(line, []byte{0}, []byte{' '})...)
		}
	}
	return string(bytes.TrimSpace(left))
}

func simulated(name string, nodes int) spec.Lab {
	lab := spec.Demo(0)
	lab.Name, lab.Flat = name, false
	for i := range lab.Clusters {
		lab.Clusters[i].PodCIDR = netip.MustParsePrefix("10.50.0.0/16") // may overlap
		lab.Clusters[i].Nodes = []spec.Node{{Kind: spec.Simulated, Count: nodes}}
	}
	return lab
}

func TestSimulatedLab(t *testing.T) {
	ctx := live(t, "simulated", "real")
	t.Setenv("LIQO_LAB_STATE", t.TempDir())
	declared := simulated("sim-test", 3)
	lab := up(ctx, t, declared)

	client := clientFor(t, lab, "rome")
	pod := runPod(ctx, t, client, "plain", "")
	if !strings.HasPrefix(pod.Spec.NodeName, "rome-sim-") || !strings.HasPrefix(pod.Status.PodIP, "10.50.") {
		t.Errorf("the pod runs on %q with address %q, want a simulated node and an address of the pod range", pod.Spec.NodeName, pod.Status.PodIP)
	}

	t.Run("up starts what died and keeps the data", func(t *testing.T) {
		for _, component := range []string{"rome/kube-apiserver", "rome/etcd", "rome/kwok"} {
			if err := lab.Kill(component); err != nil {
				t.Fatal(err)
			}
		}
		var err error
		if lab, err = cluster.Up(ctx, declared, step.Silent{}); err != nil {
			t.Fatal(err)
		}
		if _, err := clientFor(t, lab, "rome").CoreV1().Pods("default").Get(ctx, "plain", metav1.GetOptions{}); err != nil {
			t.Errorf("reading the pod after the repair: %v", err)
		}
	})
	t.Run("another declaration is refused", func(t *testing.T) {
		if _, err := cluster.Up(ctx, simulated("sim-test", 4), step.Silent{}); err == nil || !strings.Contains(err.Error(), "exists with another declaration") {
			t.Errorf("error = %v, want a refusal", err)
		}
	})
	t.Run("a healthy lab is left alone", func(t *testing.T) {
		begin := time.Now()
		if _, err := cluster.Up(ctx, declared, step.Silent{}); err != nil {
			t.Fatal(err)
		}
		if elapsed := time.Since(begin); elapsed > 3*time.Second {
			t.Errorf("up took %s, want less than 3s", elapsed)
		}
	})
}

func TestRealLab(t *testing.T) {
	ctx := live(t, "real")
	declared := spec.Demo(2)
	declared.Name = "real-test"
	lab := up(ctx, t, declared)
	rome, milan := clientFor(t, lab, "rome"), clientFor(t, lab, "milan")
	var pods []*corev1.Pod
	for _, node := range []string{"rome-1", "rome-2"} {
		pods = append(pods, runPod(ctx, t, rome, "web-"+node, node))
	}
	remote := runPod(ctx, t, milan, "web", "milan-2")

	fetch := func(t *testing.T, from *corev1.Pod, url string) string {
		t.Helper()
		return execute(ctx, t, lab, from, "timeout", "3", "wget", "-q", "-O", "-", url)
	}
	t.Run("pods of both nodes and both clusters reach each other", func(t *testing.T) {
		for _, to := range []*corev1.Pod{pods[1], remote} {
			if got := fetch(t, pods[0], "http://"+to.Status.PodIP+":8080"); got != to.Name {
				t.Errorf("%s answered %q, want its name", to.Name, got)
			}
		}
	})
	t.Run("service names resolve", func(t *testing.T) {
		if got := execute(ctx, t, lab, pods[1], "nslookup", "kubernetes.default.svc.cluster.local"); !strings.Contains(got, "10.11.0.1") {
			t.Errorf("nslookup said %q, want 10.11.0.1", got)
		}
	})
	t.Run("a cut link stops traffic between the clusters only", func(t *testing.T) { cutAndRestore(ctx, t, lab, fetch, pods, remote) })
	t.Run("a stopped API server answers again when it continues", func(t *testing.T) {
		if err := lab.Signal("milan/kube-apiserver", syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		short, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if _, err := milan.CoreV1().Nodes().List(short, metav1.ListOptions{}); err == nil {
			t.Error("a stopped API server answered")
		}
		if err := lab.Signal("milan/kube-apiserver", syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if _, err := milan.CoreV1().Nodes().List(ctx, metav1.ListOptions{}); err != nil {
			t.Errorf("listing nodes afterwards: %v", err)
		}
	})
	t.Run("a killed node boots again", func(t *testing.T) { killAndBoot(ctx, t, lab, milan, remote) })
	t.Run("up rebuilds what a reboot took", func(t *testing.T) {
		reboot(t, lab)
		var err error
		if lab, err = cluster.Up(ctx, declared, step.Silent{}); err != nil {
			t.Fatal(err)
		}
		runPod(ctx, t, clientFor(t, lab, "rome"), "after", "rome-2")
	})
}

func cutAndRestore(
	ctx context.Context, t *testing.T, lab *cluster.Lab,
	fetch func(*testing.T, *corev1.Pod, string) string, pods []*corev1.Pod, remote *corev1.Pod,
) {
	if err := lab.CutLink(ctx, "rome", "milan"); err != nil {
		t.Fatal(err)
	}
	if got := fetch(t, pods[0], "http://"+remote.Status.PodIP+":8080"); got != "" {
		t.Errorf("the other cluster answered %q over a cut link", got)
	}
	if got := fetch(t, pods[0], "http://"+pods[1].Status.PodIP+":8080"); got != pods[1].Name {
		t.Errorf("the own cluster answered %q, want %q", got, pods[1].Name)
	}
	if err := lab.RestoreLink(ctx, "rome", "milan"); err != nil {
		t.Fatal(err)
	}
	if got := fetch(t, pods[0], "http://"+remote.Status.PodIP+":8080"); got != remote.Name {
		t.Errorf("after the restoration the other cluster answered %q, want %q", got, remote.Name)
	}
}

func killAndBoot(ctx context.Context, t *testing.T, lab *cluster.Lab, client kubernetes.Interface, pod *corev1.Pod) {
	if err := lab.KillNode(ctx, "milan", "milan-2"); err != nil {
		t.Fatal(err)
	}
	waitNode(ctx, t, client, "milan-2", false)
	if err := lab.StartNode(ctx, "milan", "milan-2"); err != nil {
		t.Fatal(err)
	}
	waitNode(ctx, t, client, "milan-2", true)
	runPod(ctx, t, client, "second", "milan-2")
	err := wait.PollUntilContextTimeout(ctx, time.Second, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		p, err := client.CoreV1().Pods("default").Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil || len(p.Status.ContainerStatuses) == 0 {
			return false, err
		}
		return p.Status.ContainerStatuses[0].RestartCount > 0 && p.Status.ContainerStatuses[0].Ready, nil
	})
	if err != nil {
		t.Errorf("waiting for the node's old pod to run again: %v", err)
	}
}

// reboot does to the lab what a reboot of the machine does: no process, network,
// mount or control group of it is left, but its files are.
func reboot(t *testing.T, lab *cluster.Lab) {
	t.Helper()
	script := fmt.Sprintf(`
for i in 1 2 3; do for f in $(find /sys/fs/cgroup -path '*/liqo-lab/%[2]s/*' -name cgroup.procs); do for p in $(cat $f); do kill -9 $p; done; done; sleep 0.3; done 2>/dev/null
for n in $(ip netns list | cut -d' ' -f1 | grep ^liqo-lab-%[2]s-); do ip netns del $n; done
for m in $(cut -d' ' -f2 /proc/mounts | grep ^%[1]s/ | sort -r); do umount -l $m; done
find /sys/fs/cgroup -depth -type d -path '*/liqo-lab/%[2]s*' -exec rmdir {} \; ; true`, lab.Dir(), lab.Spec().Name)
	if out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput(); err != nil {
		t.Fatalf("imitating a reboot: %v: %s", err, out)
	}
}

func clientFor(t *testing.T, lab *cluster.Lab, name string) kubernetes.Interface {
	t.Helper()
	config, err := lab.Config(name)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// runPod runs a pod that serves its name over HTTP and waits until it is ready.
func runPod(ctx context.Context, t *testing.T, client kubernetes.Interface, name, node string) *corev1.Pod {
	t.Helper()
	pods := client.CoreV1().Pods("default")
	grace := int64(0)
	err := wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		// The default service account is made some moments after the cluster.
		_, err := pods.Create(ctx, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: corev1.PodSpec{
				TerminationGracePeriodSeconds: &grace, NodeName: node,
				Containers: []corev1.Container{{
					Name: "web", Image: image.Busybox,
					Command: []string{"sh", "-c", "mkdir /tmp/w; printf " + name + " > /tmp/w/index.html; exec httpd -f -p 8080 -h /tmp/w"},
				}},
			},
		}, metav1.CreateOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("creating pod %s: %v", name, err)
	}
	var pod *corev1.Pod
	err = wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		var err error
		if pod, err = pods.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return false, err
		}
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		}), nil
	})
	if err != nil {
		t.Fatalf("waiting for pod %s, last seen %+v: %v", name, pod.Status, err)
	}
	return pod
}

func waitNode(ctx context.Context, t *testing.T, client kubernetes.Interface, name string, ready bool) {
	t.Helper()
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		is := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
			return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
		})
		return is == ready, nil
	})
	if err != nil {
		t.Fatalf("waiting for node %s to have Ready=%t: %v", name, ready, err)
	}
}

// execute runs a command in a pod of rome and returns its output; "" when it fails.
func execute(ctx context.Context, t *testing.T, lab *cluster.Lab, pod *corev1.Pod, command ...string) string {
	t.Helper()
	config, err := lab.Config("rome")
	if err != nil {
		t.Fatal(err)
	}
	request := kubernetes.NewForConfigOrDie(config).CoreV1().RESTClient().Post().
		Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	executor, err := remotecommand.NewSPDYExecutor(config, "POST", request.URL())
	if err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if err := executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr}); err != nil {
		t.Logf("%v in %s: %v: %s", command, pod.Name, err, stderr.String())
		return ""
	}
	return strings.TrimSpace(stdout.String())
}
