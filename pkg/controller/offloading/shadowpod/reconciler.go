package shadowpod

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/provenance"
	"liqo.io/liqo/pkg/controller/offloading/signoflife"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/kube/watch"
	"liqo.io/liqo/pkg/partition"
	"liqo.io/liqo/pkg/reflection"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowpods,verbs=get;list;watch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowpods/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=offloading.liqo.io,resources=shadowpods/finalizers,verbs=update
// +kubebuilder:rbac:groups=networking.liqo.io,resources=configurations,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.liqo.io,resources=internalnodes,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=pods;nodes,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch;update

// Options configure the reconciler.
type Options struct {
	// Check returns what a PodSpec has that is not on the allow-list; required.
	Check func(*corev1.PodSpec) field.ErrorList
	// Keys are the labels and annotations that Pods may have.
	Keys reflection.Keys
	// Reduce returns the PodSpec without what Pods do without, and which that is; nil leaves everything to Check.
	Reduce func(*corev1.PodSpec) (*corev1.PodSpec, string)
	// MaxGracePeriod is the longest time that Pods are given to end in; reflection.DefaultMaxGracePeriod if 0.
	MaxGracePeriod time.Duration
	// Enforce gives Pods only to ShadowPods that fit into what their user was granted.
	Enforce bool
	// Networking has the address of a consumer's API server translated by the consumer's Configuration, and the consumer told of pods that its
	// packets do not come to.
	Networking bool
	// Tokens knows the Secrets that pods need from the start; nil waits for none.
	Tokens Tokens
	// Secrets tells which consumer's a Secret is known to be, so that it need not be read; empty if that is not known. nil knows of none.
	Secrets func(types.NamespacedName) string
	// Live reads from the API server, past the cache; the manager's API reader if nil.
	Live client.Reader
	// Events receives what goes wrong; the manager's recorder if nil.
	Events events.EventRecorder
	// Clock decides when a failed pod is replaced; the real one if nil.
	Clock clock.PassiveClock
	// Workers is how many ShadowPods are reconciled at a time; 10 if 0.
	Workers int
}

type reconciler struct {
	client.Client
	Options
	claims     *claims
	provenance *provenance.Checker
	// finished remembers the UIDs of ShadowPods whose end this process recorded: the cache may show them unfinished for a while.
	finished sync.Map
	// seen remembers the UIDs of ShadowPods that had a Pod while this process looked.
	seen sync.Map
	// efforts are, by name, the tries to change Pods that run.
	efforts sync.Map
	signs   *signoflife.Signs
}

// Register adds the reconciler to a manager. The manager's cache may hold just the Pods with the label liqo.io/managed-by=shadowpod.
func Register(mgr ctrl.Manager, o Options) error {
	if o.Check == nil {
		return fmt.Errorf("registering the ShadowPod controller: Options.Check is required")
	}
	if o.Live == nil {
		o.Live = mgr.GetAPIReader()
	}
	if o.Events == nil {
		o.Events = mgr.GetEventRecorder("liqo-shadowpod")
	}
	if o.MaxGracePeriod <= 0 {
		o.MaxGracePeriod = reflection.DefaultMaxGracePeriod
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = 10
	}
	r := &reconciler{Client: mgr.GetClient(), Options: o, claims: newClaims(), provenance: provenance.New(o.Live, mgr.GetClient(), o.Secrets),
		signs: signoflife.New(mgr.GetClient(), o.Live)}
	register := ctrl.NewControllerManagedBy(mgr).Named("shadowpod").
		For(&offloadingv1beta1.ShadowPod{}).
		Watches(&corev1.Pod{}, r.podEvents(), builder.WithPredicates(telling())).
		WatchesRawSource(source.Channel(r.claims.woken, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{MaxConcurrentReconciles: o.Workers, RateLimiter: reconcile.RateLimiter()})
	if o.Networking {
		register = register.Watches(&networkingv1beta1.InternalNode{}, watch.Each(mgr.GetClient(), &corev1.PodList{}, onNode), builder.WithPredicates(falling()))
	}
	if o.Tokens != nil {
		register = register.WatchesRawSource(source.Channel(o.Tokens.Woken(), &handler.EnqueueRequestForObject{}))
	}
	if err := register.Complete(r); err != nil {
		return fmt.Errorf("registering the ShadowPod controller: %w", err)
	}
	return nil
}

// ofPod finds the ShadowPod of a Pod: they have the same name. A Pod that is not ours may still give a wanted name free.
func ofPod(o client.Object) client.ObjectKey {
	owner := metav1.GetControllerOf(o)
	ours := o.GetLabels()[offloadingv1beta1.ManagedByLabel] == offloadingv1beta1.ManagedByShadowPod
	if !ours && (owner == nil || owner.Kind != "ShadowPod") {
		return client.ObjectKey{}
	}
	return client.ObjectKeyFromObject(o)
}

// Reconcile takes the next step for one ShadowPod.
func (r *reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var shadow offloadingv1beta1.ShadowPod
	err := r.Get(ctx, req.NamespacedName, &shadow)
	if apierrors.IsNotFound(err) {
		return reconcile.Result(errors.Join(r.orphaned(ctx, req), r.leave(ctx, req.NamespacedName)))
	}
	if err != nil {
		return reconcile.Result(fmt.Errorf("reading ShadowPod %s: %w", req, err))
	}
	pod, err := r.pod(ctx, r.Client, req.NamespacedName)
	if err != nil {
		return reconcile.Result(err)
	}
	s := &scope{shadow: &shadow, pod: pod}
	if s.takesNothing() {
		r.claims.release(req.NamespacedName)
	}
	grace := endsIn(&shadow, r.MaxGracePeriod)
	s.moderate(&r.Options)
	if uid, known := r.finished.Load(req.NamespacedName); known && uid == shadow.UID && !Terminal(shadow.Status.Phase) {
		// The cache lags behind our own write; its event brings us back.
		return ctrl.Result{}, nil
	}
	if pod != nil && metav1.IsControlledBy(pod, &shadow) {
		r.seen.Store(req.NamespacedName, shadow.UID)
	}
	if err := s.decide(ctx, r.signs, r.Clock.Now(), grace); err != nil {
		return reconcile.Result(err)
	}
	err = r.act(ctx, s)
	if statusErr := r.report(ctx, s, err); statusErr != nil {
		return reconcile.Result(statusErr)
	}
	if err == nil && s.decision.After > 0 {
		return ctrl.Result{RequeueAfter: s.decision.After}, nil
	}
	return reconcile.Result(err)
}

// takesNothing tells whether the Pod finished, or was stopped and is gone.
func (s *scope) takesNothing() bool {
	return Terminal(s.shadow.Status.Phase) && (s.pod == nil || !stopped(s.shadow))
}

// decide finds the next step, by what is there, by the time in which the pod is to end if it is over 0, and by whether its consumer lives.
func (s *scope) decide(ctx context.Context, signs *signoflife.Signs, now time.Time, grace int64) error {
	s.decision = Decide(s.shadow, s.pod, now)
	if grace > 0 {
		s.decision = s.decision.Ending(s.shadow, s.pod, grace)
	}
	return s.onPartition(ctx, signs, now)
}

// pod reads the Pod of a name; nil if there is none.
func (r *reconciler) pod(ctx context.Context, reader client.Reader, key client.ObjectKey) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := reader.Get(ctx, key, &pod)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading Pod %s: %w", key, err)
	}
	return &pod, nil
}

// onPartition takes into account what the pod asks for if its consumer is not heard of any more. Nothing is read for other pods.
func (s *scope) onPartition(ctx context.Context, signs *signoflife.Signs, now time.Time) error {
	wish, err := partition.Of(s.shadow.Annotations)
	if err != nil || wish.After == 0 || Terminal(s.shadow.Status.Phase) || !s.shadow.DeletionTimestamp.IsZero() {
		return nil // what nobody understands keeps the pod
	}
	last, err := signs.Last(ctx, s.shadow, now.Add(-wish.After))
	if err != nil {
		return err
	}
	s.decision = s.decision.Silent(s.shadow, s.pod, last, wish.After, now)
	return nil
}
