package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// serveLogs streams the logs of the twin's container.
func (s *Server) serveLogs(w http.ResponseWriter, r *http.Request) {
	options, err := logOptions(r.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	call := s.admit(w, r)
	if call == nil {
		return
	}
	defer call.end()
	options.Container = call.container

	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	logs, err := s.openLogs(ctx, cancel, call.target, options)
	if apierrors.IsForbidden(err) && call.target.RequestLogs != nil {
		logs, err = s.requestLogs(ctx, cancel, call.target, options)
	}
	if err != nil {
		refuse(w, fromPeer("reading logs", err))
		return
	}
	defer func() { _ = logs.Close() }()

	bounds := s.boundLogs(cancel, logs, options)
	defer bounds.stop()
	w.Header().Set("Content-Type", "text/plain")
	controller := http.NewResponseController(w)
	err = copyFlushing(w, controller, bounds)
	if err == nil {
		err = context.Cause(ctx) // a cancelled stream may end as if it were complete
	}
	if err != nil && r.Context().Err() == nil {
		klog.FromContext(ctx).V(2).Info("A log stream broke", "pod", klog.KRef(call.target.Namespace, call.target.Pod), "reason", bounded(err.Error()))
		// A regular end would show the caller a complete log: an expired deadline keeps net/http from writing one.
		_ = controller.SetWriteDeadline(time.Unix(1, 0))
	}
}

// requestLogs has the provider let the logs be read, and tries until it does or the time is up. A provider lets a pod's logs
// be read from the first time that they are asked for, so that is the only time that this takes.
func (s *Server) requestLogs(ctx context.Context, cancel context.CancelCauseFunc, target Target, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	asking, done := context.WithTimeout(ctx, s.options.Limits.GrantTimeout)
	defer done()
	if err := target.RequestLogs(asking); err != nil {
		return nil, fmt.Errorf("asking for permission: %w", err)
	}
	backOff := wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Steps: 6, Cap: time.Second}
	for {
		select {
		case <-asking.Done():
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return nil, fmt.Errorf("%w: the pod is not a running ShadowPod of this cluster there, or the controller that permits it is down", errNoPermission)
		case <-s.options.Clock.After(backOff.Step()):
		}
		// Not with the context of the asking: the logs may be followed for longer.
		if logs, err := s.openLogs(ctx, cancel, target, options); !apierrors.IsForbidden(err) {
			return logs, err
		}
	}
}

// openLogs asks the provider for the logs. Redirects are not followed, and nothing is retried.
func (s *Server) openLogs(ctx context.Context, cancel context.CancelCauseFunc, target Target, options *corev1.PodLogOptions) (io.ReadCloser, error) {
	config := rest.CopyConfig(target.Config)
	// A log may be followed for hours; what may not take long is bounded below.
	config.Timeout = 0
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	direct := *httpClient
	direct.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client, err := corev1client.NewForConfigAndClient(config, &direct)
	if err != nil {
		return nil, err
	}
	if !options.Follow {
		// Followed logs of a silent container have no deadline here: a kubelet sends its header with the first line.
		// The transport bounds dialing and the TLS handshake even then.
		timer := s.options.Clock.AfterFunc(s.options.Limits.DialTimeout, func() { cancel(errNoAnswer) })
		defer timer.Stop()
	}
	logs, err := client.Pods(target.Namespace).GetLogs(target.Pod, options).MaxRetries(0).Stream(ctx)
	if !errors.Is(context.Cause(ctx), errNoAnswer) {
		return logs, err
	}
	// An answer may still slip in while the call is being cancelled, and would be cut short.
	if err == nil {
		_ = logs.Close()
	}
	return nil, errNoAnswer
}

// copyFlushing copies until the source ends, and lets the reader see every piece at once.
func copyFlushing(w io.Writer, controller *http.ResponseController, source io.Reader) error {
	if err := controller.Flush(); err != nil {
		return err
	}
	buffer := make([]byte, 32<<10)
	for {
		n, err := source.Read(buffer)
		if n > 0 {
			if _, err := w.Write(buffer[:n]); err != nil {
				return err
			}
			if err := controller.Flush(); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// logOptions reads the query of a log request as a kubelet does; the container is in the path.
func logOptions(query url.Values) (*corev1.PodLogOptions, error) {
	options := &corev1.PodLogOptions{}
	err := errors.Join(
		parse(query, "follow", func(v bool) { options.Follow = v }, boolean),
		parse(query, "previous", func(v bool) { options.Previous = v }, boolean),
		parse(query, "timestamps", func(v bool) { options.Timestamps = v }, boolean),
		parse(query, "insecureSkipTLSVerifyBackend", func(v bool) { options.InsecureSkipTLSVerifyBackend = v }, boolean),
		parse(query, "tailLines", func(v int64) { options.TailLines = &v }, atLeast(0)),
		parse(query, "limitBytes", func(v int64) { options.LimitBytes = &v }, atLeast(1)),
		parse(query, "sinceSeconds", func(v int64) { options.SinceSeconds = &v }, atLeast(1)),
		parse(query, "sinceTime", func(v metav1.Time) { options.SinceTime = &v }, instant),
		parse(query, "stream", func(v string) { options.Stream = &v }, stream),
	)
	if options.SinceSeconds != nil && options.SinceTime != nil {
		err = errors.Join(err, errors.New("at most one of sinceTime and sinceSeconds may be given"))
	}
	if options.Stream != nil && *options.Stream == corev1.LogStreamAll {
		// The default, and API servers without split log streams refuse to hear of it.
		options.Stream = nil
	}
	if options.Stream != nil && options.TailLines != nil {
		err = errors.Join(err, errors.New("tailLines and a single stream cannot be combined"))
	}
	return options, err
}

func parse[T any](query url.Values, name string, set func(T), read func(string) (T, error)) error {
	text := query.Get(name)
	if text == "" {
		return nil
	}
	value, err := read(text)
	if err != nil {
		return fmt.Errorf("invalid query parameter %s: %w", name, err)
	}
	set(value)
	return nil
}

// boolean reads as the API server does: everything but false and 0 is true.
func boolean(text string) (bool, error) { return text != "false" && text != "0", nil }

func atLeast(least int64) func(string) (int64, error) {
	return func(text string) (int64, error) {
		value, err := strconv.ParseInt(text, 10, 64)
		if err != nil || value < least {
			return 0, fmt.Errorf("must be a whole number of at least %d", least)
		}
		return value, nil
	}
}

func instant(text string) (metav1.Time, error) {
	value, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return metav1.Time{}, errors.New("must be a time such as 2006-01-02T15:04:05Z")
	}
	return metav1.Time{Time: value}, nil
}

func stream(text string) (string, error) {
	switch text {
	case corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr:
		return text, nil
	}
	return "", fmt.Errorf("must be %s, %s or %s", corev1.LogStreamAll, corev1.LogStreamStdout, corev1.LogStreamStderr)
}
