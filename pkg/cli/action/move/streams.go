package move

import (
	"bytes"
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/streaming/pkg/httpstream"

	"liqo.io/liqo/pkg/cli/target"
)

// Streams run commands in pods.
type Streams interface {
	// Exec runs a command in a pod's only container. A command that fails is an error with what it said.
	Exec(ctx context.Context, namespace, pod string, command []string, in io.Reader, out io.Writer) error
}

// apiStreams go through the API server, and for pods on virtual nodes on to the provider.
type apiStreams struct{ cluster *target.Cluster }

func (s apiStreams) Exec(ctx context.Context, namespace, pod string, command []string, in io.Reader, out io.Writer) error {
	request := s.cluster.Kube.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Command: command, Stdin: in != nil, Stdout: true, Stderr: true}, scheme.ParameterCodec)
	sockets, err := remotecommand.NewWebSocketExecutor(s.cluster.Config, "GET", request.URL().String())
	if err != nil {
		return fmt.Errorf("preparing a stream into pod %s: %w", pod, err)
	}
	spdy, err := remotecommand.NewSPDYExecutor(s.cluster.Config, "POST", request.URL())
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
		return fmt.Errorf("running %s in pod %s: %w %s", command[0], pod, err, bytes.TrimSpace(said.Bytes()[:min(said.Len(), 500)]))
	}
	return nil
}
