package api

import (
	"context"
	"errors"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
)

var (
	errIdle       = errors.New("idle for too long")
	errLogTooSlow = errors.New("it took too long to send the log")
	errLogTooLong = errors.New("it sent more than a log may hold")
)

// logBounds reads a log within bounds of time and bytes.
type logBounds struct {
	source io.Reader
	clock  clock.WithDelayedExecution
	// timer ends the stream: while reading because of the provider, else because of the caller.
	timer clock.Timer
	// idle is how long nothing may happen.
	idle time.Duration
	// finite says that the log is not followed: then patience is the time, and left the bytes, that remain to the provider.
	finite   bool
	patience time.Duration
	left     int64
	// asked is what remains of the bytes that the caller asked for; negative means that it asked for all.
	asked int64
}

// boundLogs bounds what a provider may send of a log; cancel ends the call. A followed log may go on as long as it is used.
func (s *Server) boundLogs(cancel context.CancelCauseFunc, source io.Reader, options *corev1.PodLogOptions) *logBounds {
	limits := s.options.Limits
	b := &logBounds{
		source: source, clock: s.options.Clock, idle: limits.IdleTimeout,
		finite: !options.Follow, patience: limits.LogTimeout, left: limits.LogBytes, asked: -1,
	}
	if options.LimitBytes != nil {
		b.asked = *options.LimitBytes
	}
	why := errIdle
	if b.finite && limits.LogTimeout < limits.IdleTimeout {
		why = errLogTooSlow
	}
	b.timer = s.options.Clock.AfterFunc(b.wait(), func() { cancel(why) })
	return b
}

// wait is how long the provider may take for the next piece.
func (b *logBounds) wait() time.Duration {
	if b.finite {
		return min(b.idle, max(b.patience, time.Nanosecond))
	}
	return b.idle
}

func (b *logBounds) stop() { b.timer.Stop() }

// Read reads the next piece. While it does the provider's time runs, afterwards the caller's.
func (b *logBounds) Read(p []byte) (int, error) {
	if b.asked == 0 {
		return 0, io.EOF
	}
	if b.asked > 0 && int64(len(p)) > b.asked {
		p = p[:b.asked]
	}
	begin := b.clock.Now()
	b.timer.Reset(b.wait())
	n, err := b.source.Read(p)
	b.timer.Reset(b.idle)
	if b.asked > 0 {
		b.asked -= int64(n)
	}
	if !b.finite {
		return n, err
	}
	b.patience -= b.clock.Since(begin)
	if b.left -= int64(n); b.left < 0 {
		return n, errLogTooLong
	}
	if b.patience <= 0 && err == nil {
		return n, errLogTooSlow
	}
	return n, err
}
