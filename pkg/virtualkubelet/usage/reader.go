package usage

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/utils/clock"

	"liqo.io/liqo/pkg/virtualkubelet/api"
)

const (
	// freshness is how long a reading is shown before the provider is asked again.
	freshness = 10 * time.Second
	// staleness is how long a figure is shown that could not be read again.
	staleness = 2 * time.Minute
	// patience is how long the provider is asked at most: metrics-server and Prometheus wait for 10 s.
	patience = 8 * time.Second
	// atOnce is how many namespaces are asked about at a time.
	atOnce = 4
	// firstWindow bounds the time over which the first rate of a container is counted.
	firstWindow = 30 * time.Second
	// begun is where a counter begins, in seconds, and idleBytes what a node without pods uses: metrics-server drops what says 0.
	begun     = 0x1p-20
	idleBytes = 1
	// maxCores and maxBytes are more than a machine has: what is over them is no figure.
	maxCores = 1 << 20
	maxBytes = 1 << 50
)

// ErrNoFigures says that the provider tells nothing of what pods use.
var ErrNoFigures = errors.New("the provider cluster tells nothing of what pods use")

// Options are what a Reader needs; all but Clock are required.
type Options struct {
	// Node is the name of the virtual node.
	Node string
	// Pods lists the local pods of the node.
	Pods func() []*corev1.Pod
	// Twins finds where they run.
	Twins api.Remote
	// Provider is the client of the provider's API server; its answers are bounded.
	Provider func() (rest.Interface, error)
	// Clock tells the time of figures. Default: the real one.
	Clock clock.PassiveClock
}

// Reader reads what the pods of one node use.
type Reader struct {
	options Options
	start   time.Time

	// mu is held while the provider is asked: whoever comes meanwhile wants the same answer.
	mu   sync.Mutex
	last *reading
	// err is why some of it could not be read; read is when the provider was asked last.
	err  error
	read time.Time
}

// reading is what is known at a time.
type reading struct {
	node rate
	pods map[types.UID]*pod
	// incomplete says that the figures of some pod could not be read.
	incomplete bool
}

// pod is what the containers of a local pod use.
type pod struct {
	namespace, name string
	uid             types.UID
	started         time.Time
	containers      map[string]container
}

// container is one that runs.
type container struct {
	rate
	image, id string
	// began is when the provider says that it did, started the same in a time that this cluster has seen.
	began, started time.Time
}

// rate is what is used of processors, as a rate and counted, and of memory, in cores, seconds and bytes, at a time of ours.
type rate struct {
	at             time.Time
	cores, seconds float64
	memory         float64
}

// New returns a Reader.
func New(o Options) *Reader {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	return &Reader{options: o, start: o.Clock.Now(), last: &reading{node: rate{seconds: begun}}}
}

// now returns what is used, read anew if it was not read lately. The error is why nothing at all could be read.
func (r *Reader) now(ctx context.Context) (*reading, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.options.Clock.Now()
	if r.read.IsZero() || at.Sub(r.read) >= freshness {
		before := r.err
		r.err = r.readAll(context.WithoutCancel(ctx), at)
		r.read = at
		if r.err != nil && (before == nil || before.Error() != r.err.Error()) {
			klog.FromContext(ctx).Error(r.err, "What the pods of this node use cannot be read")
		}
	}
	if r.err != nil && len(r.last.pods) == 0 {
		return nil, r.err
	}
	return r.last, nil
}

// twin is one local pod, by the name of its twin.
type twin struct{ namespace, name string }

// readAll asks the provider about all running pods. The error is why some figures could not be read.
func (r *Reader) readAll(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	locals, namespaces, unknown := r.locals(ctx)
	used, err := r.ask(ctx, namespaces)
	r.last = r.last.after(at, locals, used)
	return cmp.Or(err, unknown)
}

// locals are the pods that run, by their twins, and the namespaces where those are. The error is why a pod's twin is not known.
func (r *Reader) locals(ctx context.Context) (locals map[*corev1.Pod]twin, namespaces []string, err error) {
	locals = map[*corev1.Pod]twin{}
	for _, local := range r.options.Pods() {
		if local.Status.Phase != corev1.PodRunning {
			continue
		}
		target, unknown := r.options.Twins.Twin(ctx, local.Namespace, local.Name, string(local.UID))
		if unknown != nil {
			err = cmp.Or(err, unknown)
		} else {
			namespaces = append(namespaces, target.Namespace)
		}
		locals[local] = twin{target.Namespace, target.Pod}
	}
	slices.Sort(namespaces)
	return locals, slices.Compact(namespaces), err
}

// ask reads the figures of some namespaces. The error is why those of some could not be read.
func (r *Reader) ask(ctx context.Context, namespaces []string) (map[twin]*metricsv1beta1.PodMetrics, error) {
	if len(namespaces) == 0 {
		return nil, nil
	}
	provider, err := r.options.Provider()
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	used := map[twin]*metricsv1beta1.PodMetrics{}
	group := errgroup.Group{}
	group.SetLimit(atOnce)
	for _, namespace := range namespaces {
		group.Go(func() error {
			list, err := figures(ctx, provider, namespace)
			mu.Lock()
			defer mu.Unlock()
			for i := range list {
				used[twin{namespace, list[i].Name}] = &list[i]
			}
			return err
		})
	}
	return used, group.Wait()
}

// figures reads what the pods of one of the provider's namespaces use.
func figures(ctx context.Context, provider rest.Interface, namespace string) ([]metricsv1beta1.PodMetrics, error) {
	raw, err := provider.Get().AbsPath("/apis/metrics.k8s.io/v1beta1/namespaces", namespace, "pods").
		SetHeader("Accept", "application/json").Do(ctx).Raw()
	switch {
	case apierrors.IsNotFound(err), apierrors.IsServiceUnavailable(err):
		return nil, fmt.Errorf("%w: it serves no metrics API (metrics.k8s.io)", ErrNoFigures)
	case apierrors.IsForbidden(err):
		return nil, fmt.Errorf("%w: it does not let us read its metrics API (metrics.k8s.io)", ErrNoFigures)
	case err != nil:
		return nil, fmt.Errorf("reading what pods use in namespace %s of the provider: %w", namespace, err)
	}
	list := metricsv1beta1.PodMetricsList{}
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, fmt.Errorf("reading what pods use in namespace %s of the provider: its answer is not a list of PodMetrics", namespace)
	}
	return list.Items, nil
}

// after is what is known at a later time, when the provider said what is used by some of the pods that run.
func (r *reading) after(at time.Time, locals map[*corev1.Pod]twin, used map[twin]*metricsv1beta1.PodMetrics) *reading {
	next := &reading{pods: make(map[types.UID]*pod, len(locals)), node: rate{at: at}}
	for local, twin := range locals {
		figures, before := used[twin], r.pods[local.UID]
		p := &pod{namespace: local.Namespace, name: local.Name, uid: local.UID, containers: map[string]container{}}
		if local.Status.StartTime != nil {
			p.started = local.Status.StartTime.Time
		}
		if before == nil {
			before = &pod{}
		}
		for name, c := range running(local) {
			old, is := before.containers[name]
			is = is && old.began.Equal(c.began)
			c.started = earlier(c.began, at)
			if is {
				c.started = old.started
			}
			var known bool
			if c.rate, known = rateOf(figures, name, at); known {
				c.count(old.rate, is)
			} else {
				next.incomplete = true
				if !is || at.Sub(old.at) > staleness {
					continue
				}
				c.rate = old.rate
			}
			p.containers[name] = c
			next.node.cores += c.cores
			next.node.memory += c.memory
		}
		if len(p.containers) > 0 {
			next.pods[local.UID] = p
		}
	}
	next.node.seconds = r.node.seconds
	if !r.node.at.IsZero() {
		next.node.seconds += next.node.cores * at.Sub(r.node.at).Seconds()
	}
	next.node.memory = max(next.node.memory, idleBytes)
	return next
}

// count continues the counter of the container, or begins one.
func (c *container) count(old rate, same bool) {
	if same {
		c.seconds = old.seconds + c.cores*c.at.Sub(old.at).Seconds()
		return
	}
	c.seconds = begun + c.cores*min(c.at.Sub(c.started), firstWindow).Seconds()
}

// running are the containers of a pod that run, by name, whatever their kind.
func running(local *corev1.Pod) map[string]container {
	all := map[string]container{}
	for _, statuses := range [][]corev1.ContainerStatus{
		local.Status.InitContainerStatuses, local.Status.ContainerStatuses, local.Status.EphemeralContainerStatuses,
	} {
		for i := range statuses {
			if state := statuses[i].State.Running; state != nil {
				all[statuses[i].Name] = container{image: statuses[i].Image, id: statuses[i].ContainerID, began: state.StartedAt.Time}
			}
		}
	}
	return all
}

// rateOf is what the provider says of a container, if it says something that can be.
func rateOf(figures *metricsv1beta1.PodMetrics, name string, at time.Time) (rate, bool) {
	if figures == nil {
		return rate{}, false
	}
	i := slices.IndexFunc(figures.Containers, func(c metricsv1beta1.ContainerMetrics) bool { return c.Name == name })
	if i < 0 {
		return rate{}, false
	}
	cpu, counted := figures.Containers[i].Usage[corev1.ResourceCPU]
	memory, weighed := figures.Containers[i].Usage[corev1.ResourceMemory]
	used := rate{at: at, cores: cpu.AsApproximateFloat64(), memory: memory.AsApproximateFloat64()}
	possible := used.cores >= 0 && used.cores <= maxCores && used.memory > 0 && used.memory <= maxBytes
	return used, counted && weighed && possible
}

// earlier is the earlier of two times.
func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
