package event

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/klog/v2"

	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
)

var (
	// errFlood says that the provider sends faster than is read.
	errFlood = errors.New("there are too many to read; it is not listened to for a while")
	// errDisconnected says that the provider does not answer.
	errDisconnected = errors.New("the provider is not connected")
	// errNoVersion says that a watch would begin with all there is.
	errNoVersion = errors.New("the provider does not say at which version it is")
	// errShort says that the provider ended a watch as soon as it began.
	errShort = errors.New("the provider ended the watch at once")
)

// twin watches the Events of one twin namespace.
type twin struct {
	carrier       *Carrier
	local, remote string
	ctx           context.Context
	cancel        context.CancelFunc
	changed       signal.Signal

	mu sync.Mutex
	// state is the connection as it was last told of; hangUp ends the watch that runs over it.
	state  peer.State
	hangUp context.CancelFunc

	// version is where the watch goes on; empty means at the present.
	version string
	// doubt says that the watch broke off: the provider may not be what it was.
	doubt bool
}

func newTwin(ctx context.Context, c *Carrier, local, remote string) *twin {
	t := &twin{carrier: c, local: local, remote: remote, changed: signal.New()}
	t.ctx, t.cancel = context.WithCancel(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("namespace", local, "twin", remote)))
	return t
}

// connection tells of the state of the peer.
func (t *twin) connection(state peer.State) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state.Connected == state.Connected && t.state.Epoch == state.Epoch {
		return
	}
	t.state = state
	if t.hangUp != nil {
		t.hangUp()
	}
	t.changed.Raise()
}

// call is the context of one watch, which ends with the connection.
func (t *twin) call() (context.Context, context.CancelFunc, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.state.Connected {
		return nil, nil, errDisconnected
	}
	ctx, cancel := context.WithCancel(t.ctx)
	t.hangUp = cancel
	return ctx, cancel, nil
}

// run watches until the twin's context ends.
func (t *twin) run() {
	backOff := wait.Backoff{Duration: minBackOff, Factor: 2, Jitter: 0.1, Steps: 10, Cap: maxBackOff}
	pause := backOff
	for t.ctx.Err() == nil {
		begin := t.carrier.options.Clock.Now()
		err := t.listen()
		lasted := t.carrier.options.Clock.Since(begin)
		if lasted >= maxBackOff {
			pause = backOff
		}
		var delay time.Duration
		switch {
		case err == nil && lasted >= minBackOff:
			continue
		case err == nil:
			err, delay = errShort, pause.Step()
		case errors.Is(err, errFlood):
			delay = deaf
		default:
			delay = pause.Step()
		}
		var again <-chan time.Time
		if !errors.Is(err, errDisconnected) {
			klog.FromContext(t.ctx).V(1).Info("Events of the provider cannot be followed", "reason", err.Error())
			timer := t.carrier.options.Clock.NewTimer(delay)
			again = timer.C()
		}
		select {
		case <-t.ctx.Done():
		case <-t.changed:
		case <-again:
		}
	}
}

// listen watches once; nil means that the watch ended as it should and may go on.
func (t *twin) listen() error {
	ctx, cancel, err := t.call()
	if err != nil {
		return err
	}
	defer cancel()
	clients, err := t.carrier.options.Peer.Clients()
	if err != nil {
		return fmt.Errorf("%w: %w", errDisconnected, err)
	}
	events := clients.Kube.CoreV1().Events(t.remote)
	if err := t.locate(ctx, events); err != nil {
		return err
	}
	seconds := int64(watchTimeout / time.Second)
	stream, err := events.Watch(ctx, metav1.ListOptions{
		ResourceVersion: t.version, AllowWatchBookmarks: true, FieldSelector: reflection.EventUneventful, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return t.broken(err)
	}
	defer stream.Stop()
	for {
		select {
		case <-ctx.Done():
			t.doubt = true
			return errDisconnected
		case change, open := <-stream.ResultChan():
			if !open {
				return nil
			}
			if err := t.take(change); err != nil {
				return err
			}
		}
	}
}

// locate finds out where the twin is, if that is not known or in doubt.
func (t *twin) locate(ctx context.Context, events typedcorev1.EventInterface) error {
	if t.version != "" && !t.doubt {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, err := events.List(ctx, metav1.ListOptions{Limit: 1, FieldSelector: reflection.EventUneventful})
	if err != nil {
		return t.failed(err)
	}
	if list.ResourceVersion == "" || list.ResourceVersion == "0" {
		return t.failed(errNoVersion)
	}
	// A provider that was restored from the past is behind what it was.
	order, err := resourceversion.CompareResourceVersion(list.ResourceVersion, t.version)
	if t.version == "" || err != nil || order < 0 {
		t.version = list.ResourceVersion
	}
	t.doubt = false
	return nil
}

// take takes one message of the watch.
func (t *twin) take(change watch.Event) error {
	if change.Type == watch.Error {
		return t.broken(apierrors.FromObject(change.Object))
	}
	event, ok := change.Object.(*corev1.Event)
	if !ok {
		return t.broken(fmt.Errorf("the provider sent a %T", change.Object))
	}
	t.version = event.ResourceVersion
	if change.Type != watch.Added && change.Type != watch.Modified {
		return nil
	}
	if !t.carrier.reads.TryAccept() {
		t.version = ""
		t.carrier.tally.count(outcomeFlood)
		return t.failed(errFlood)
	}
	t.carrier.stage.intake(t.local, t.remote, event, change.Type == watch.Modified)
	return nil
}

// broken takes note that the watch broke off, and of where it can go on.
func (t *twin) broken(err error) error {
	t.doubt = true
	var status apierrors.APIStatus
	gone := errors.As(err, &status) && status.Status().Code == http.StatusGone
	if gone || apierrors.IsResourceExpired(err) || apierrors.HasStatusCause(err, metav1.CauseTypeResourceVersionTooLarge) {
		t.version = ""
	}
	return t.failed(err)
}

// failed says what was being done.
func (t *twin) failed(err error) error {
	return fmt.Errorf("watching Events in namespace %q of cluster %q: %w", t.remote, t.carrier.options.Remote, err)
}

// slim copies what is used of a remote Event, so that a large one is not kept in memory while it waits. Texts are bounded.
func slim(event *corev1.Event) *corev1.Event {
	text := func(s string) string { return strings.Clone(s[:min(len(s), maxText)]) }
	involved := event.InvolvedObject
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: event.Namespace, UID: event.UID},
		InvolvedObject: corev1.ObjectReference{
			Kind: text(involved.Kind), APIVersion: text(involved.APIVersion), Namespace: text(involved.Namespace),
			Name: text(involved.Name), FieldPath: text(involved.FieldPath),
		},
		Type: text(event.Type), Reason: text(event.Reason), Message: text(event.Message),
		Source:              corev1.EventSource{Component: text(event.Source.Component)},
		ReportingController: text(event.ReportingController),
		FirstTimestamp:      event.FirstTimestamp, LastTimestamp: event.LastTimestamp, EventTime: event.EventTime,
		Count: event.Count, Series: event.Series.DeepCopy(),
	}
}
