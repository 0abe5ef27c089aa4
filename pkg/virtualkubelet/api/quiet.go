package api

import (
	"context"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// libraryLevel is the verbosity at which the stream libraries are heard.
const libraryLevel = 4

// quiet returns a context for the stream libraries, which log an error whenever somebody ends a stream, that is after
// every kubectl exec. The outcome of a stream is told to its caller; what a library says is of use in debugging only.
func quiet(ctx context.Context) context.Context {
	logger := klog.FromContext(ctx)
	if sink := logger.GetSink(); sink != nil {
		logger = logger.WithSink(demoted{LogSink: sink})
	}
	return klog.NewContext(ctx, logger)
}

// demoted logs errors as debug messages.
type demoted struct{ logr.LogSink }

// Error logs at libraryLevel.
func (d demoted) Error(err error, message string, keysAndValues ...any) {
	if d.Enabled(libraryLevel) {
		reason := ""
		if err != nil {
			reason = bounded(err.Error())
		}
		d.Info(libraryLevel, message, append([]any{"reason", reason}, keysAndValues...)...)
	}
}

// WithValues keeps errors demoted.
func (d demoted) WithValues(keysAndValues ...any) logr.LogSink {
	return demoted{LogSink: d.LogSink.WithValues(keysAndValues...)}
}

// WithName keeps errors demoted.
func (d demoted) WithName(name string) logr.LogSink {
	return demoted{LogSink: d.LogSink.WithName(name)}
}
