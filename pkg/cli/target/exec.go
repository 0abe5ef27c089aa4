package target

import (
	"bytes"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"
)

// maxSaid bounds what is told of what a command said before it failed.
const maxSaid = 500

// Exec runs a command in a pod's only container, through the API server, and for pods on virtual nodes on through the provider's. A command
// that fails is an error with what it said; its exit code is that of an exec.CodeExitError in it.
func (c *Cluster) Exec(ctx context.Context, namespace, pod string, command []string, in io.Reader, out io.Writer) error {
	request := c.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdin: in != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	sockets, err := remotecommand.NewWebSocketExecutor(c.Config, "GET", request.URL().String())
	if err != nil {
		return fmt.Errorf("preparing a stream into pod %s: %w", pod, err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(c.Config, "POST", request.URL())
	if err != nil {
		return fmt.Errorf("preparing a stream into pod %s: %w", pod, err)
	}
	executor, err := remotecommand.NewFallbackExecutor(sockets, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return fmt.Errorf("preparing a stream into pod %s: %w", pod, err)
	}
	var said bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: in, Stdout: out, Stderr: &said})
	if err != nil {
		return fmt.Errorf("running %s in pod %s: %w %s", command[0], pod, err, bytes.TrimSpace(said.Bytes()[:min(said.Len(), maxSaid)]))
	}
	return nil
}
