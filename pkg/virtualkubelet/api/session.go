package api

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
)

// slots is the budget of concurrent streams to the peer.
type slots chan struct{}

// take reserves a slot; the caller gives it back with release.
func (s slots) take() (release func(), ok bool) {
	select {
	case s <- struct{}{}:
		return sync.OnceFunc(func() { <-s }), true
	default:
		return nil, false
	}
}

// tooMany is the answer when no slot is free.
func (s slots) tooMany() string {
	return fmt.Sprintf("too many streams to the provider cluster: %d are running, the most that is allowed; close some and try again", cap(s))
}

// session is one admitted call on a pod.
type session struct {
	target    Target
	container string
	end       func()
}

// admit finds the twin and reserves a slot for a call; otherwise it answers the request and returns nil. The caller
// ends the session.
func (s *Server) admit(w http.ResponseWriter, r *http.Request) *session {
	namespace, pod, container, uid := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), r.PathValue("uid")
	if err := checkNames(namespace, pod, container, uid); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return nil
	}
	release, ok := s.slots.take()
	if !ok {
		http.Error(w, s.slots.tooMany(), http.StatusTooManyRequests)
		return nil
	}
	target, err := s.options.Remote.Twin(r.Context(), namespace, pod, uid)
	if err == nil && container != "" && target.Containers != nil && !slices.Contains(target.Containers, container) {
		err = fmt.Errorf("container %q not found in pod %q: %w", container, pod, ErrNotFound)
	}
	if err != nil {
		release()
		refuse(w, fmt.Errorf("pod %s/%s: %w", namespace, pod, err))
		return nil
	}
	s.streams.Add(1)
	return &session{target: target, container: container, end: func() {
		release()
		s.streams.Done()
	}}
}

// checkNames keeps anything but names out of lookups and of URLs at the provider.
func checkNames(namespace, pod, container, uid string) error {
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return fmt.Errorf("invalid namespace %q: %s", namespace, problems[0])
	}
	if problems := validation.IsDNS1123Subdomain(pod); len(problems) > 0 {
		return fmt.Errorf("invalid pod name %q: %s", pod, problems[0])
	}
	if container != "" {
		if problems := validation.IsDNS1123Label(container); len(problems) > 0 {
			return fmt.Errorf("invalid container name %q: %s", container, problems[0])
		}
	}
	if len(uid) > validation.LabelValueMaxLength {
		return errors.New("invalid pod uid: it is too long")
	}
	return nil
}

// upgradable hands out its connection wrapped, so that the call is cancelled as soon as the caller is gone: net/http
// does not watch a connection any more once it is hijacked. It has no Unwrap on purpose: the stream libraries would
// reach around it.
type upgradable struct {
	http.ResponseWriter
	ctx    context.Context
	cancel context.CancelFunc
}

// upgrade prepares a request whose connection is to be hijacked. Its context ends with the caller's connection, and
// the connection ends with the context: call the returned function when the call is over.
func upgrade(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(quiet(r.Context()))
	return &upgradable{ResponseWriter: w, ctx: ctx, cancel: cancel}, r.WithContext(ctx), cancel
}

// Hijack takes the connection over.
func (u *upgradable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, buffered, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	early, err := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err != nil {
		return nil, nil, errors.Join(fmt.Errorf("reading what the caller sent early: %w", err), conn.Close())
	}
	watched := watch(u.ctx, u.cancel, conn, slices.Clone(early))
	return watched, bufio.NewReadWriter(bufio.NewReader(watched), bufio.NewWriter(watched)), nil
}

// watchedConn ties a connection and a context together.
type watchedConn struct {
	net.Conn
	early  []byte // read before the connection was handed over
	cancel context.CancelFunc
	stop   func() bool
}

func watch(ctx context.Context, cancel context.CancelFunc, conn net.Conn, early []byte) *watchedConn {
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return &watchedConn{Conn: conn, early: early, cancel: cancel, stop: stop}
}

// Read ends the context when nothing more will come.
func (w *watchedConn) Read(p []byte) (int, error) {
	if len(w.early) > 0 {
		n := copy(p, w.early)
		w.early = w.early[n:]
		return n, nil
	}
	n, err := w.Conn.Read(p)
	if err != nil {
		w.cancel()
	}
	return n, err
}

// Close closes the connection and ends the context.
func (w *watchedConn) Close() error {
	w.stop()
	defer w.cancel()
	return w.Conn.Close()
}
