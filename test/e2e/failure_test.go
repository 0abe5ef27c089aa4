package e2e

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// recording is how long writing down what is known about a failure may last.
const recording = time.Minute

var unsafe = regexp.MustCompile(`[^A-Za-z0-9_-]+`)

// recordFailure writes down the state of both clusters, and of more if the test has them, when the test fails: before what was
// registered for cleaning up until now is cleaned up. Of several calls in a test the last one counts.
func (s *suite) recordFailure(t *testing.T, more ...*side) {
	t.Helper()
	t.Cleanup(func() {
		if !t.Failed() || !s.notes.first(t.Name()) {
			return
		}
		folder := filepath.Join(logs(), "liqo-e2e-"+unsafe.ReplaceAllString(t.Name(), "-")+time.Now().Format("-150405"))
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), recording)
		defer cancel()
		for _, c := range append([]*side{s.rome, s.milan}, more...) {
			if err := s.record(ctx, c, filepath.Join(folder, c.name)); err != nil {
				t.Logf("recording the state of %s: %v", c.name, err)
			}
		}
		s.keepLogs(folder)
		t.Logf("the state of both clusters and the lab's own logs are in %s", folder)
	})
}

// logs is where to write what is known about failures.
func logs() string { return cmp.Or(os.Getenv("LIQO_E2E_LOGS"), os.TempDir()) }

// keepLogs copies the lab's logs, whose folder goes with the lab.
func (s *suite) keepLogs(folder string) {
	if err := os.CopyFS(filepath.Join(folder, "logs"), os.DirFS(filepath.Join(s.lab.Dir(), "logs"))); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: copying the lab's logs: %v\n", err)
	}
}

// first is whether a failure was not written down before.
func (n *notes) first(test string) bool {
	n.Lock()
	defer n.Unlock()
	before := n.recorded[test]
	n.recorded[test] = true
	return !before
}

func (s *suite) record(ctx context.Context, c *side, folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	for name, args := range map[string][]string{
		"pods.txt":   {"get", "pods,nodes", "-A", "-o", "wide"},
		"pods.yaml":  {"get", "pods", "-A", "-o", "yaml"},
		"nodes.yaml": {"get", "nodes", "-o", "yaml"},
		"apps.yaml":  {"get", "deployments,replicasets,daemonsets", "-A", "-o", "yaml"},
		"events.txt": {"get", "events", "-A", "--sort-by=.lastTimestamp"},
		"liqo.txt":   {"get", "liqo", "-A"},
		"liqo.yaml":  {"get", "liqo", "-A", "-o", "yaml"},
		"rights.txt": {"get", "rolebindings,serviceaccounts", "-A"},
		"csr.txt":    {"get", "csr"},
	} {
		s.write(ctx, c, filepath.Join(folder, name), args...)
	}
	pods := &corev1.PodList{}
	if err := c.List(ctx, pods); err != nil {
		return fmt.Errorf("listing pods: %w", err)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Namespace != "liqo" && !strings.HasPrefix(pod.Namespace, "liqo-tenant-") {
			continue
		}
		path := filepath.Join(folder, pod.Namespace+"_"+pod.Name)
		s.write(ctx, c, path+".log", "logs", "-n", pod.Namespace, pod.Name)
		if restarts(pod) > 0 {
			s.write(ctx, c, path+".previous.log", "logs", "-n", pod.Namespace, pod.Name, "--previous")
		}
	}
	return nil
}

// write stores what kubectl says, an error too.
func (s *suite) write(ctx context.Context, c *side, path string, args ...string) {
	command := exec.CommandContext(ctx, s.kubectlPath, append([]string{"--kubeconfig", c.kubeconfig, "--request-timeout=10s"}, args...)...)
	out, err := command.CombinedOutput()
	if err != nil {
		out = append(out, []byte("\n"+err.Error())...)
	}
	// What cannot be written about a failure must not hide it.
	_ = os.WriteFile(path, out, 0o600)
}
