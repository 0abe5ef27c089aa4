package renewal

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	identitycontroller "liqo.io/liqo/pkg/controller/authentication/identity"
	"liqo.io/liqo/pkg/controller/authentication/secrets"
	"liqo.io/liqo/pkg/identity"
	"liqo.io/liqo/pkg/kube/keep"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// +kubebuilder:rbac:groups=authentication.liqo.io,resources=identities,verbs=get;list;watch;update
// +kubebuilder:rbac:groups=authentication.liqo.io,resources=renews,verbs=get;list;watch;create;update;delete

// minInterval is the least time between two renewals of one Identity.
const minInterval = time.Minute

// Options of the controller.
type Options struct {
	// ClusterID of this cluster, the consumer.
	ClusterID string
	// Algorithm of new keys; empty means Ed25519.
	Algorithm identity.Algorithm
	// Secrets reads and writes Secrets.
	Secrets secrets.Store
	// Clock tells when certificates need renewal.
	Clock clock.PassiveClock
}

// Reconciler renews certificates.
type Reconciler struct {
	client  client.Client
	options Options
	events  events.EventRecorder

	mu sync.Mutex
	// begun is when the last renewal of an Identity began, in this process.
	begun map[types.NamespacedName]time.Time
}

// Register adds the controller to the manager.
func Register(mgr ctrl.Manager, o Options) error {
	if err := identity.ValidateClusterID(o.ClusterID); err != nil {
		return fmt.Errorf("registering the renewal controller: %w", err)
	}
	if o.Algorithm == "" {
		o.Algorithm = identity.AlgorithmEd25519
	}
	r := &Reconciler{client: mgr.GetClient(), options: o, events: mgr.GetEventRecorder("liqo-renewal"), begun: map[types.NamespacedName]time.Time{}}
	return ctrl.NewControllerManagedBy(mgr).Named("renewal").
		For(&authv1beta1.Identity{}).
		Owns(&authv1beta1.Renew{}).
		WithOptions(controller.Options{RateLimiter: reconcile.RateLimiter()}).
		Complete(r)
}

// Reconcile takes the renewal of one Identity one step further.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &authv1beta1.Identity{}
	if err := r.client.Get(ctx, request.NamespacedName, object); err != nil {
		return reconcile.Result(client.IgnoreNotFound(err))
	}
	renew, err := r.renewOf(ctx, object)
	if err != nil {
		return reconcile.Result(err)
	}
	if !object.DeletionTimestamp.IsZero() {
		return reconcile.Result(r.remove(ctx, renew))
	}
	if !usable(object) {
		return ctrl.Result{}, nil
	}
	keys, err := r.options.Secrets.Keys(ctx, object.Namespace, identitycontroller.KeyOwner(object))
	if err != nil || keys == nil {
		return reconcile.Result(err) // the identity controller says that the key is missing
	}
	step, at := Decide(r.facts(object, keys, renew))
	switch step {
	case Idle:
		return ctrl.Result{RequeueAfter: max(at.Sub(r.options.Clock.Now()), time.Second)}, nil
	case Await:
		return ctrl.Result{}, nil
	case MakeKey, Ask:
		if wait := r.tooEarly(request.NamespacedName, step); wait > 0 {
			return ctrl.Result{RequeueAfter: wait}, nil
		}
		err = r.ask(ctx, object, keys, renew, step == MakeKey)
	case Swap:
		if err = r.options.Secrets.Promote(ctx, keys); err == nil {
			err = r.adopt(ctx, object, renew)
		}
	case Adopt:
		err = r.adopt(ctx, object, renew)
	}
	if err != nil {
		return reconcile.Result(err)
	}
	return ctrl.Result{}, nil
}

// tooEarly is how long a new renewal still has to wait: clocks that differ by most of a certificate's life would otherwise make
// each fresh certificate look due at once.
func (r *Reconciler) tooEarly(identityName types.NamespacedName, step Step) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.options.Clock.Now()
	last, known := r.begun[identityName]
	if wait := minInterval - now.Sub(last); known && step == MakeKey && wait > 0 {
		return wait
	}
	r.begun[identityName] = now
	return 0
}

func (r *Reconciler) facts(object *authv1beta1.Identity, keys *secrets.Keys, renew *authv1beta1.Renew) Facts {
	facts := Facts{
		Certificate: object.Spec.AuthParams.SignedCRT, Subject: identitycontroller.Subject(object, r.options.ClusterID),
		Current: keys.Current, Next: keys.Next, Now: r.options.Clock.Now(),
	}
	if renew != nil {
		facts.Asked = renew.Spec.PublicKey
		if renew.Status.AuthParams != nil {
			facts.Answer = renew.Status.AuthParams.SignedCRT
		}
	}
	return facts
}

func (r *Reconciler) renewOf(ctx context.Context, object *authv1beta1.Identity) (*authv1beta1.Renew, error) {
	renew := &authv1beta1.Renew{}
	err := r.client.Get(ctx, client.ObjectKeyFromObject(object), renew)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("reading Renew %s/%s: %w", object.Namespace, object.Name, err)
	case !metav1.IsControlledBy(renew, object):
		if renew.Labels[corev1beta1.ReplicatedLabel] != "true" && renew.Labels[corev1beta1.ManagedLabel] == "true" {
			// Left over from an earlier Identity of the name.
			return nil, r.wait(ctx, renew)
		}
		return nil, reconcile.NotOurs(authv1beta1.ReasonNotOurs, "Renew", client.ObjectKeyFromObject(renew))
	}
	return renew, nil
}

func (r *Reconciler) wait(ctx context.Context, renew *authv1beta1.Renew) error {
	if err := r.remove(ctx, renew); err != nil {
		return err
	}
	return reconcile.Wait(authv1beta1.ReasonReplacing, "waiting for the Renew of an earlier Identity to go", time.Second)
}

// remove deletes the Renew before the Identity goes: its copy at the provider can only be removed while there is an Identity.
func (r *Reconciler) remove(ctx context.Context, renew *authv1beta1.Renew) error {
	if renew == nil || !renew.DeletionTimestamp.IsZero() {
		return nil
	}
	return keep.Delete(ctx, r.client, renew)
}

// ask stores a new key, if one is due, and sends the request for it.
func (r *Reconciler) ask(ctx context.Context, object *authv1beta1.Identity, keys *secrets.Keys, renew *authv1beta1.Renew, makeKey bool) error {
	if makeKey {
		next, err := identity.NewKeyPair(r.options.Algorithm)
		if err != nil {
			return fmt.Errorf("making the next key of Identity %s/%s: %w", object.Namespace, object.Name, err)
		}
		if err := r.options.Secrets.SetNext(ctx, keys, next); err != nil {
			return err
		}
	}
	want, err := r.render(object, keys)
	if err != nil {
		return err
	}
	keeper := keep.Keeper{Client: r.client, Reason: authv1beta1.ReasonNotOurs}
	wrote, err := keep.Known(ctx, keeper, renew, keep.Wanted{Object: want, Ours: keep.ControlledBy(object)})
	if wrote {
		r.events.Eventf(object, want, corev1.EventTypeNormal, authv1beta1.ReasonRenewing, "Renew", "Asked the provider for a fresh certificate")
	}
	return err
}

func (r *Reconciler) render(object *authv1beta1.Identity, keys *secrets.Keys) (*authv1beta1.Renew, error) {
	public, err := keys.Next.PublicPEM()
	if err != nil {
		return nil, err
	}
	csr, err := identity.NewCSR(keys.Next.Signer(), identitycontroller.Subject(object, r.options.ClusterID))
	if err != nil {
		return nil, err
	}
	remote := string(object.Spec.ClusterID)
	renew := &authv1beta1.Renew{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: object.Namespace, Name: object.Name,
			Labels: map[string]string{
				corev1beta1.ManagedLabel: "true", corev1beta1.ReplicationLabel: "true",
				corev1beta1.RemoteIDLabel: remote, corev1beta1.RemoteClusterIDLabel: remote,
			},
		},
		Spec: authv1beta1.RenewSpec{
			ConsumerClusterID: corev1beta1.ClusterID(r.options.ClusterID), PublicKey: public, CSR: csr, IdentityType: object.Spec.Type,
		},
	}
	switch {
	case object.Spec.Type == authv1beta1.ResourceSliceIdentityType:
		renew.Spec.ResourceSliceRef = &corev1.LocalObjectReference{Name: object.Labels[authv1beta1.ResourceSliceNameLabel]}
	case identity.CertificatePeering(object.Spec.AuthParams.SignedCRT) != "":
		// Earlier releases of the provider do not know the field.
		if renew.Spec.Signature, err = identity.SignRenewal(keys.Current.Signer(), csr, r.options.ClusterID, remote); err != nil {
			return nil, err
		}
	}
	if err := controllerutil.SetControllerReference(object, renew, r.client.Scheme(), controllerutil.WithBlockOwnerDeletion(false)); err != nil {
		return nil, fmt.Errorf("setting the owner of Renew %s/%s: %w", renew.Namespace, renew.Name, err)
	}
	return renew, nil
}

// adopt puts the fresh certificate into the Identity, and the CA bundle that came with it; everything else of it is pinned.
func (r *Reconciler) adopt(ctx context.Context, object *authv1beta1.Identity, renew *authv1beta1.Renew) error {
	updated := object.DeepCopy()
	updated.Spec.AuthParams.SignedCRT = renew.Status.AuthParams.SignedCRT
	updated.Spec.AuthParams.CA = nextCA(object, renew.Status.AuthParams)
	if err := r.client.Update(ctx, updated); err != nil {
		return fmt.Errorf("updating Identity %s/%s: %w", object.Namespace, object.Name, err)
	}
	r.events.Eventf(object, renew, corev1.EventTypeNormal, authv1beta1.ReasonCertificateRenewed, "Renew", "The certificate was renewed")
	return nil
}
