package resourceplugin

import (
	"cmp"
	"context"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/event"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	resourcesv1 "liqo.io/liqo/pkg/apis/resources/v1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/kube/signal"
)

const (
	// Deadline of an answer.
	Deadline = 2 * time.Second
	// Period is how often a plugin is asked while nothing changes, and the longest pause after it failed.
	Period = 30 * time.Second
	// glance is how often it is looked whether what is free has changed.
	glance = 10 * time.Second
	// leastPause is the time between two questions about a slice at least, and the first one after a failure.
	leastPause = time.Second
	// maxQuestions are asked at a time.
	maxQuestions = 8
)

// Supply is what the cluster has.
type Supply interface {
	// Free is what a consumer could use.
	Free(consumer string) corev1.ResourceList
	// Used is what the pods of a slice take.
	Used(of capacity.Owner) corev1.ResourceList
}

// Plugin is asked what slices are granted. All methods may be called at any time from anywhere.
type Plugin struct {
	client  resourcesv1.GrantsClient
	supply  Supply
	changed chan event.GenericEvent
	places  chan struct{}

	mu     sync.Mutex
	slices map[types.NamespacedName]*subject
}

// subject is a slice that the plugin is asked about, until stop is called.
type subject struct {
	stop   context.CancelFunc
	nudged signal.Signal

	// Plugin.mu holds these.
	question Question
	decision Decision
}

// New returns a Plugin that has been asked nothing.
func New(client resourcesv1.GrantsClient, supply Supply) *Plugin {
	return &Plugin{client: client, supply: supply, changed: make(chan event.GenericEvent), places: make(chan struct{}, maxQuestions),
		slices: map[types.NamespacedName]*subject{}}
}

// Changed has the ResourceSlices on which the plugin says something else now.
func (p *Plugin) Changed() <-chan event.GenericEvent { return p.changed }

// Decide returns what the plugin said last of a slice, and has it asked, if it is to be. The context is that of the log.
func (p *Plugin) Decide(ctx context.Context, q Question) Decision {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slices[q.Slice]
	if s == nil {
		ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
		s = &subject{stop: stop, nudged: signal.New(), question: q}
		p.slices[q.Slice] = s
		go p.follow(ctx, s)
		return Decision{}
	}
	before := s.question
	if before.Class != q.Class || before.Of != q.Of || !maps.Equal(before.Nodes, q.Nodes) || !equality.Semantic.DeepEqual(before.Asked, q.Asked) {
		s.nudged.Raise()
	}
	s.question = q
	return s.decision
}

// Forget has the plugin not be asked about a slice any more.
func (p *Plugin) Forget(slice types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.slices[slice]; s != nil {
		s.stop()
		delete(p.slices, slice)
	}
}

// follow asks about a slice until it is forgotten.
func (p *Plugin) follow(ctx context.Context, s *subject) {
	var pause time.Duration
	for ctx.Err() == nil {
		p.mu.Lock()
		q := s.question
		p.mu.Unlock()
		free := p.supply.Free(q.Of.Consumer)
		answer, err := p.ask(ctx, q, free)
		if pause = min(max(2*pause, leastPause), Period); err == nil {
			pause = 0
		}
		if p.take(ctx, s, answer) {
			if err != nil {
				ctrl.LoggerFrom(ctx).Info("The resource plugin did not decide", "resourceSlice", q.Slice, "reason", err.Error())
			}
			select {
			case <-ctx.Done():
			case p.changed <- event.GenericEvent{Object: &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: q.Slice.Namespace, Name: q.Slice.Name}}}:
			}
		}
		p.rest(ctx, s, cmp.Or(pause, Period), free)
	}
}

// ask has the plugin decide. The error is that of its decision's trouble, with all that is known of it.
func (p *Plugin) ask(ctx context.Context, q Question, free corev1.ResourceList) (Decision, error) {
	select {
	case <-ctx.Done():
		return Decision{}, ctx.Err()
	case p.places <- struct{}{}:
	}
	defer func() { <-p.places }()
	limited, cancel := context.WithTimeout(ctx, Deadline)
	defer cancel()
	answer, err := p.client.Decide(limited, request(q, free, p.supply.Used(q.Of)))
	if err != nil {
		return Decision{Trouble: troubleOf(err)}, err
	}
	grant, err := read(q, answer)
	if err != nil {
		return Decision{Trouble: refused(err)}, err
	}
	return Decision{Grant: grant, Words: words(answer.GetReason())}, nil
}

// take keeps what the plugin said, and tells whether it is something else than before. Other words alone are not.
func (p *Plugin) take(ctx context.Context, s *subject, now Decision) (other bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := s.decision
	switch {
	case ctx.Err() != nil:
	case now.Grant != nil && !equality.Semantic.DeepEqual(now.Grant, before.Grant):
		s.decision, other = now, true
	default:
		s.decision.Trouble, other = now.Trouble, now.Trouble != before.Trouble
	}
	return other
}

// rest waits until the plugin is to be asked again: until the slice or what is free has changed, or the pause is over.
func (p *Plugin) rest(ctx context.Context, s *subject, pause time.Duration, free corev1.ResourceList) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(leastPause):
	}
	for left := pause - leastPause; left > 0; left -= glance {
		select {
		case <-ctx.Done():
			return
		case <-s.nudged:
			return
		case <-time.After(min(left, glance)):
		}
		p.mu.Lock()
		consumer := s.question.Of.Consumer
		p.mu.Unlock()
		// As much as changes an offer.
		if _, changed := capacity.Settled(capacity.Offer{Resources: free}, capacity.Offer{Resources: p.supply.Free(consumer)}, false); changed {
			return
		}
	}
}
