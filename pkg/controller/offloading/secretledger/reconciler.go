package secretledger

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
)

// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get;list;watch
// In twin namespaces, bound there: secrets list;watch, configmaps get;create;update.

// coalesce is the least time between two writes of a ledger.
const coalesce = time.Second

// Options of the controller.
type Options struct {
	// Client reads and writes live; nil makes one from the manager's configuration.
	Client client.WithWatch
	// Events tell of ledgers that are too small; nil means the manager's.
	Events events.EventRecorder
	// Tokens are told what the watches show; nil tells nobody.
	Tokens *Tokens
	// Workers is how many ledgers are written at a time (default 2).
	Workers int
	// Clock tells the time; nil means the real one.
	Clock clock.PassiveClock
}

// Reconciler keeps the ledgers.
type Reconciler struct {
	namespaces client.Reader
	live       client.WithWatch
	events     events.EventRecorder
	clock      clock.PassiveClock
	twins      *twins

	mu      sync.Mutex
	ledgers map[string]published
}

// published is the last known state of a ledger.
type published struct {
	// ledger is nil if there is none.
	ledger *corev1.ConfigMap
	at     time.Time
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Client == nil {
		// Neither Secrets nor ConfigMaps may be cached cluster-wide.
		c, err := client.NewWithWatch(mgr.GetConfig(), client.Options{
			HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
		})
		if err != nil {
			return fmt.Errorf("making the client of the secret ledgers: %w", err)
		}
		o.Client = c
	}
	if o.Events == nil {
		o.Events = mgr.GetEventRecorder("liqo-secretledger")
	}
	r := newReconciler(mgr.GetClient(), o)
	return ctrl.NewControllerManagedBy(mgr).
		Named("secretledger").
		For(&corev1.Namespace{}, builder.WithPredicates(watch.Where(func(o client.Object) bool {
			return o.GetLabels()[corev1beta1.RemoteClusterIDLabel] != ""
		}))).
		WatchesRawSource(r.twins).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

func newReconciler(namespaces client.Reader, o Options) *Reconciler {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Tokens == nil {
		o.Tokens = NewTokens()
	}
	r := &Reconciler{
		namespaces: namespaces,
		live:       o.Client,
		events:     o.Events,
		clock:      o.Clock,
		twins:      &twins{client: o.Client, watches: map[string]*twin{}, came: o.Tokens.came},
		ledgers:    map[string]published{},
	}
	o.Tokens.mu.Lock()
	defer o.Tokens.mu.Unlock()
	o.Tokens.twins = r.twins
	return r
}

// consumerOf returns the consumer that a namespace is a twin of; empty if it is none or on its way out.
func consumerOf(namespace *corev1.Namespace) string {
	if namespace.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation] == "" || namespace.DeletionTimestamp != nil {
		return ""
	}
	return namespace.Labels[corev1beta1.RemoteClusterIDLabel]
}

// Reconcile keeps the ledger of one namespace.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var namespace corev1.Namespace
	err := r.namespaces.Get(ctx, client.ObjectKey{Name: request.Name}, &namespace)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, fmt.Errorf("reading namespace %q: %w", request.Name, err)
	}
	consumer := consumerOf(&namespace)
	if apierrors.IsNotFound(err) || consumer == "" {
		r.twins.stop(request.Name)
		r.note(request.Name, nil)
		return ctrl.Result{}, nil
	}
	if !r.twins.follow(request.Name, consumer) {
		return ctrl.Result{}, nil
	}
	// Under a burst each Secret asks, and its ledger grows: what it would say is not gathered before it may be written.
	if wait := r.wait(request.Name); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, nil
	}
	entries := r.twins.entries(request.Name)
	known, err := r.known(ctx, request.Name)
	if err != nil {
		return reconcile.Result(err)
	}
	wanted := ledgerFor(request.Name, entries)
	if known.ledger == nil && len(entries) == 0 || known.ledger != nil && same(known.ledger, wanted) {
		return ctrl.Result{}, nil
	}
	return reconcile.Result(r.publish(ctx, known.ledger, wanted))
}

// ledgerFor is the ledger that a namespace should have.
func ledgerFor(namespace string, entries map[string]string) *corev1.ConfigMap {
	data, omitted := fit(entries, maxLedger)
	ledger := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: offloadingv1beta1.SecretLedger,
			Labels: map[string]string{corev1beta1.ManagedLabel: "true"},
		},
		Data: data,
	}
	if omitted > 0 {
		ledger.Annotations = map[string]string{offloadingv1beta1.SecretLedgerOmittedAnnotation: strconv.Itoa(omitted)}
	}
	return ledger
}

func same(live, wanted *corev1.ConfigMap) bool {
	return maps.Equal(live.Data, wanted.Data) &&
		live.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation] == wanted.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]
}

// wait is how long the ledger of a namespace must not be written yet.
func (r *Reconciler) wait(namespace string) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.ledgers[namespace]
	if known.at.IsZero() {
		return 0
	}
	return known.at.Add(coalesce).Sub(r.clock.Now())
}

// known returns the ledger as it was left, and reads it when it is first asked for.
func (r *Reconciler) known(ctx context.Context, namespace string) (published, error) {
	r.mu.Lock()
	known, ok := r.ledgers[namespace]
	r.mu.Unlock()
	if ok {
		return known, nil
	}
	var ledger corev1.ConfigMap
	err := r.live.Get(ctx, client.ObjectKey{Namespace: namespace, Name: offloadingv1beta1.SecretLedger}, &ledger)
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return published{}, fmt.Errorf("reading ConfigMap %s/%s: %w", namespace, offloadingv1beta1.SecretLedger, err)
	default:
		known.ledger = &ledger
	}
	r.note(namespace, &known)
	return known, nil
}

// note remembers a ledger; nil forgets it, so that it is read again.
func (r *Reconciler) note(namespace string, state *published) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if state == nil {
		delete(r.ledgers, namespace)
		return
	}
	r.ledgers[namespace] = *state
}

// publish writes a ledger.
func (r *Reconciler) publish(ctx context.Context, live, wanted *corev1.ConfigMap) error {
	set := func(o client.Object) {
		o.(*corev1.ConfigMap).Data = wanted.Data
		if _, omitted := wanted.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]; !omitted {
			delete(o.GetAnnotations(), offloadingv1beta1.SecretLedgerOmittedAnnotation)
		}
	}
	keeper := keep.Keeper{Client: r.live, Reason: offloadingv1beta1.ReasonNameConflict}
	if _, err := keep.Known(ctx, keeper, live, keep.Wanted{Object: wanted, Set: set, Ours: keep.Whoever}); err != nil {
		// Somebody else wrote or removed it: read it again.
		r.note(wanted.Namespace, nil)
		return err
	}
	r.note(wanted.Namespace, &published{ledger: wanted, at: r.clock.Now()})
	if omitted := wanted.Annotations[offloadingv1beta1.SecretLedgerOmittedAnnotation]; omitted != "" {
		r.events.Eventf(wanted, nil, corev1.EventTypeWarning, offloadingv1beta1.ReasonLedgerOverflow, "Publish",
			"%s Secrets do not fit into the ledger; their consumer cannot tell whether they are in place", omitted)
	}
	return nil
}
