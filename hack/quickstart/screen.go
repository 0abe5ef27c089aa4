package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// indented writes lines under the step that they belong to.
type indented struct {
	out io.Writer
	mid bool
}

// Write implements io.Writer.
func (w *indented) Write(p []byte) (int, error) {
	for _, line := range strings.SplitAfter(string(p), "\n") {
		if line == "" {
			continue
		}
		prefix := "      "
		if w.mid {
			prefix = ""
		}
		w.mid = !strings.HasSuffix(line, "\n")
		if _, err := io.WriteString(w.out, prefix+line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// screen shows what the steps brought about.
func (t *tour) screen(ctx context.Context, took time.Duration) error {
	fmt.Printf("\n%s\nDone in %s. This is what there is now:\n", strings.Repeat("─", 80), took.Round(time.Second))
	twin := namespace + "-" + consumer
	for _, part := range []struct {
		title, cluster string
		args           []string
	}{
		{"Nodes of rome: one of its own, one that stands for milan", consumer, []string{"get", "nodes", "-o",
			"custom-columns=NAME:.metadata.name,READY:.status.conditions[?(@.type=='Ready')].status,VERSION:.status.nodeInfo.kubeletVersion," +
				"STANDS FOR:.metadata.labels.liqo\\.io/remote-cluster-id"}},
		{"Pods of namespace " + namespace + " as rome sees them", consumer, []string{"get", "pods", "-n", namespace, "-o", "wide", "--no-headers=false"}},
		{"The same pods' other half, in milan's namespace " + twin, provider, []string{"get", "pods", "-n", twin, "-o",
			"custom-columns=NAME:.metadata.name,STATUS:.status.phase,NODE:.spec.nodeName,IP:.status.podIP"}},
		{"What crossed to milan besides pods", provider, []string{"get", "configmaps,secrets,services,endpointslices", "-n", twin,
			"-l", "offloading.liqo.io/origin=" + consumer}},
	} {
		out, err := t.kubectl(ctx, part.cluster, part.args...)
		if err != nil {
			return err
		}
		fmt.Printf("\n%s:\n", part.title)
		if _, err := (&indented{out: stdout{}}).Write([]byte(out)); err != nil {
			return fmt.Errorf("writing to the terminal: %w", err)
		}
	}
	if err := t.crossing(ctx); err != nil {
		return err
	}
	config := "--kubeconfig " + t.lab.Kubeconfig(consumer)
	fmt.Printf(`
Try next:
  %[1]s %[2]s logs -n %[3]s -l app=web --prefix --tail 1     # logs of pods in both clusters
  %[1]s %[2]s exec -n %[3]s deployment/web -- wget -q -O - http://web     # one Service, pods in both clusters
  %[4]s info %[2]s                                           # the state of the peering

Clean up:  make quickstart-down
`, t.kubectlPath, config, namespace, t.liqoctl)
	return nil
}

// crossing shows one pod of rome that asks the Service, and as whom the pods that answer see it.
func (t *tour) crossing(ctx context.Context) error {
	pod, err := t.kubectl(ctx, consumer, "get", "pods", "-n", namespace, "-l", "app=web", "--field-selector", "spec.nodeName="+consumer+"-1",
		"-o", "jsonpath={.items[0].metadata.name} {.items[0].status.podIP}")
	if err != nil {
		return err
	}
	name, address, _ := strings.Cut(pod, " ")
	var last string
	err = wait.PollUntilContextTimeout(ctx, time.Second, patience, true, func(ctx context.Context) (bool, error) {
		// The Service's endpoints at milan follow a moment after its pods.
		out, err := t.kubectl(ctx, consumer, "exec", "-n", namespace, name, "--", "sh", "-c",
			"for i in $(seq 40); do wget -q -O - http://web/cgi-bin/who; done | sort -u")
		if last = out; err != nil {
			last = err.Error()
		}
		return err == nil && strings.Count(out, "was asked by") == 4, nil
	})
	if err != nil {
		return fmt.Errorf("waiting %s for all 4 pods to answer %s by Service web (last seen: %s): %w", patience, name, last, err)
	}
	fmt.Printf("\n%s (%s in rome) asks the Service web; who answered, and under which address each saw it:\n", name, address)
	if _, err := (&indented{out: stdout{}}).Write([]byte(last)); err != nil {
		return fmt.Errorf("writing to the terminal: %w", err)
	}
	fmt.Printf("\nHow the two networks see each other (liqoctl network status):\n")
	for _, c := range []string{consumer, provider} {
		if err := t.execute(ctx, t.liqoctl, "network", "status", "--kubeconfig", t.lab.Kubeconfig(c)); err != nil {
			return err
		}
	}
	return nil
}

// stdout writes to the process's standard output.
type stdout struct{}

// Write implements io.Writer.
func (stdout) Write(p []byte) (int, error) { return fmt.Print(string(p)) }
