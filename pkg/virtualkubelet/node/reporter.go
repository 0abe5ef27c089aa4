package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"liqo.io/liqo/pkg/kube/latest"
	"liqo.io/liqo/pkg/kube/selection"
	"liqo.io/liqo/pkg/kube/signal"
	"liqo.io/liqo/pkg/reflection"
)

// Options of a Reporter. Client, Node and Address must be given.
type Options struct {
	// Client of this cluster, as the node.
	Client kubernetes.Interface
	// Node is the virtual node.
	Node string
	// Address of the node.
	Address string
	// Port of the kubelet endpoint.
	Port int32
	// Cluster is the provider's ID.
	Cluster string
	// LeaseDuration after which a silent node counts as lost (default 40 s).
	LeaseDuration time.Duration
	// Interval between two renewals of the Lease (default 10 s).
	Interval time.Duration
	// Recorder of Events about the Node, when its provider is lost and when it is back; nil records none.
	Recorder Recorder
	// Renewed is called each time that the node's Lease was renewed; it does not block. Nil means that nobody wants to know.
	Renewed func()
	// Clock tells the time; nil means the real one.
	Clock clock.WithTicker
}

// Recorder writes Events about the Node.
type Recorder interface {
	Event(about runtime.Object, kind, reason, message string)
}

const (
	defaultLease    = 40 * time.Second
	defaultInterval = 10 * time.Second
	callTimeout     = 10 * time.Second
	retryAfter      = 2 * time.Second
)

// Reporter reports one node. Make it with New.
type Reporter struct {
	// Facts are what is reported; the Reporter follows them. Before they are Told and Heard nothing is.
	Facts *latest.Value[Facts]

	options  Options
	informer cache.SharedIndexInformer
	changed  signal.Signal
	lease    heartbeat

	// patched is the version of the Node that the last patch was made from: until the cache moves on, it shows the past.
	patched *corev1.Node
	// beat is when the loop went round last, in nanoseconds since 1970.
	beat atomic.Int64
}

// New checks the options. Nothing happens before Run.
func New(o Options) (*Reporter, error) {
	if o.Client == nil || o.Node == "" || o.Address == "" {
		return nil, errors.New("reporting a node: client, node and address must be given")
	}
	if o.LeaseDuration <= 0 {
		o.LeaseDuration = defaultLease
	}
	if o.Interval <= 0 {
		o.Interval = defaultInterval
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	r := &Reporter{
		options: o, changed: signal.New(), lease: heartbeat{client: o.Client, node: o.Node, duration: o.LeaseDuration},
		Facts: latest.New(Facts{Hostname: o.Node, Address: o.Address, Port: o.Port, Cluster: o.Cluster}),
	}
	nodes := o.Client.CoreV1().Nodes()
	r.informer = cache.NewSharedIndexInformer(selection.ListerWatcher(selection.Named(o.Node), nodes.List, nodes.Watch, o.Client), &corev1.Node{}, 0, nil)
	return r, nil
}

// Host is what the Node says of itself to those who admit pods to it; nothing while it is not known.
func (r *Reporter) Host() reflection.Host {
	if node := r.node(); node != nil {
		return reflection.HostOf(node)
	}
	return reflection.Host{}
}

// Alive tells whether the loop went round since the given time.
func (r *Reporter) Alive(since time.Time) bool {
	return r.beat.Load() > since.UnixNano()
}

// Run reports until the context ends.
func (r *Reporter) Run(ctx context.Context) error {
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { r.changed.Raise() }, UpdateFunc: func(_, _ any) { r.changed.Raise() }, DeleteFunc: func(any) { r.changed.Raise() },
	}
	if _, err := r.informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watching node %q: %w", r.options.Node, err)
	}
	defer r.Facts.Follow(func(_, _ Facts) { r.changed.Raise() })()
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { r.informer.RunWithContext(ctx) })
	ticker := r.options.Clock.NewTicker(r.options.Interval)
	defer ticker.Stop()
	var retry <-chan time.Time
	for {
		renew := false
		select {
		case <-ctx.Done():
			return nil
		case <-r.changed:
		case <-retry:
		case <-ticker.C():
			renew = true
		}
		retry = nil
		if err := r.report(ctx, renew); err != nil {
			klog.FromContext(ctx).Error(err, "The node could not be reported")
			retry = r.options.Clock.After(retryAfter)
		}
	}
}

// report writes the status if it differs, and renews the Lease when it is time or the node has just come back.
func (r *Reporter) report(ctx context.Context, renew bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	facts := r.Facts.Get()
	r.beat.Store(r.options.Clock.Now().UnixNano())
	node := r.node()
	if node == nil || !facts.Told || !facts.Heard {
		return nil
	}
	if facts.Connected && (renew || r.lease.last == nil) {
		if err := r.lease.renew(ctx, node, r.options.Clock.Now()); err != nil {
			return err
		}
		if r.options.Renewed != nil {
			r.options.Renewed()
		}
	}
	if node == r.patched {
		return nil // the answer to the last patch is an event
	}
	status, differs := Status(&node.Status, facts, r.options.Clock.Now())
	if !differs {
		return nil
	}
	if r.dropsFeatures(ctx, node, status, facts) {
		return nil
	}
	return r.patch(ctx, node, status)
}

func (r *Reporter) node() *corev1.Node {
	object, ok, err := r.informer.GetStore().GetByKey(r.options.Node)
	if err != nil || !ok {
		return nil
	}
	node, _ := object.(*corev1.Node)
	return node
}

// dropsFeatures tells, by a dry run, whether this cluster's API server would drop what the node declares, if its status lacks nothing
// else: each start would write that in vain. What is dropped is not reported any more.
func (r *Reporter) dropsFeatures(ctx context.Context, node *corev1.Node, status *corev1.NodeStatus, facts Facts) bool {
	facts.NoFeatures = true
	_, differs := Status(&node.Status, facts, r.options.Clock.Now())
	if differs || len(status.DeclaredFeatures) <= len(node.Status.DeclaredFeatures) {
		return false // the answer to the write itself will tell
	}
	// Admission may know no dry runs. If it fails for another reason, so does the write itself.
	answer, err := r.send(ctx, node, status, metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err == nil && r.learn(status, answer)
}

// learn takes note of an answer that lacks what the node declares.
func (r *Reporter) learn(sent *corev1.NodeStatus, answer *corev1.Node) (dropped bool) {
	dropped = len(answer.Status.DeclaredFeatures) < len(sent.DeclaredFeatures)
	if dropped {
		r.Facts.Change(func(f *Facts) { f.NoFeatures = true })
	}
	return dropped
}

func (r *Reporter) patch(ctx context.Context, node *corev1.Node, status *corev1.NodeStatus) error {
	written, err := r.send(ctx, node, status, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // what happened to it is an event
	}
	if err != nil {
		return fmt.Errorf("updating the status of node %q: %w", node.Name, err)
	}
	r.learn(status, written)
	r.tell(ctx, node, status)
	if written.ResourceVersion == "" || written.ResourceVersion != node.ResourceVersion {
		r.patched = node
	}
	return nil
}

// send patches the status of this version of the node.
func (r *Reporter) send(ctx context.Context, node *corev1.Node, status *corev1.NodeStatus, options metav1.PatchOptions) (*corev1.Node, error) {
	before, err := json.Marshal(corev1.Node{Status: node.Status})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	after, err := json.Marshal(corev1.Node{
		ObjectMeta: metav1.ObjectMeta{UID: node.UID, ResourceVersion: node.ResourceVersion}, Status: *status,
	})
	if err != nil {
		return nil, fmt.Errorf("encoding the status: %w", err)
	}
	patch, err := strategicpatch.CreateTwoWayMergePatch(before, after, corev1.Node{})
	if err != nil {
		return nil, fmt.Errorf("comparing the status: %w", err)
	}
	return r.options.Client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, options, "status")
}

// tell tells by an Event and in the log that the provider was lost, or is back. What was written before decides whether that is news, so
// a restart does not repeat it.
func (r *Reporter) tell(ctx context.Context, node *corev1.Node, status *corev1.NodeStatus) {
	kind, reason, message := News(&node.Status, status)
	if kind == "" {
		return
	}
	klog.FromContext(ctx).Info("The readiness of the node changed", "ready", kind == corev1.EventTypeNormal, "reason", reason, "message", message)
	if r.options.Recorder != nil {
		r.options.Recorder.Event(node, kind, reason, message)
	}
}
