package shadowpod

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

const (
	// tokensSoon is how long a Secret with tokens may take without anything being said: usually it is there in milliseconds.
	tokensSoon = 5 * time.Second
	// tokensLate is how long it may take until the Pod is made without it: then the kubelet says what is missing.
	tokensLate = time.Minute
)

// Tokens knows the Secrets with pods' tokens. A Pod that is there before its Secret fails to mount it, and its kubelet tries again ever
// more rarely, up to two minutes later.
type Tokens interface {
	// Await tells whether the Secret of a ShadowPod is there. If not, the ShadowPod is woken once it is.
	Await(shadow *offloadingv1beta1.ShadowPod) bool
	// Forget ends the wait.
	Forget(shadow types.NamespacedName)
	// Woken are the ShadowPods whose wait is over.
	Woken() <-chan event.GenericEvent
}

// awaitTokens tells whether the Pod has to wait for its Secret with tokens, for how long at most, and why if that is worth saying.
func (r *reconciler) awaitTokens(shadow *offloadingv1beta1.ShadowPod) (wait time.Duration, why error) {
	if r.Tokens == nil || reflection.TokenSecretOf(shadow) == "" || r.Tokens.Await(shadow) {
		return 0, nil
	}
	switch age := r.Clock.Since(shadow.CreationTimestamp.Time); {
	case age < tokensSoon:
		return max(tokensSoon-max(age, 0), time.Second), nil
	case age < tokensLate:
		return tokensLate - age, reconcile.Wait(offloadingv1beta1.ReasonTokensPending,
			"waiting for the Secret "+reflection.TokenSecretOf(shadow)+" with the pod's tokens", tokensLate-age)
	default:
		r.Tokens.Forget(client.ObjectKeyFromObject(shadow))
		return 0, nil
	}
}

// referencesOften is how soon what a pod names is looked for again at first, then ever more rarely: usually it comes with the pod.
const referencesOften = 200 * time.Millisecond

// awaitReferences makes sure that what the Pod names is its consumer's. Until all is there it tells how long to wait, and why if that
// is worth saying.
func (r *reconciler) awaitReferences(ctx context.Context, shadow *offloadingv1beta1.ShadowPod) (wait time.Duration, why error) {
	found, err := r.provenance.Check(ctx, shadow, &shadow.Spec.Pod)
	age := max(r.Clock.Since(shadow.CreationTimestamp.Time), 0)
	switch {
	case err != nil:
		return 0, err
	case len(found.Foreign) > 0:
		return 0, reconcile.Refuse(offloadingv1beta1.ReasonForeignReference, found.Refusal())
	case found.Class != "":
		return 0, reconcile.Refuse(offloadingv1beta1.ReasonPodRefused, errors.New(found.Class))
	case len(found.Missing) == 0:
		return 0, nil
	case age < tokensSoon:
		return max(age/2, referencesOften), nil
	}
	wait = min(age/2, reconcile.RefusedRetry)
	return wait, reconcile.Wait(offloadingv1beta1.ReasonReferencesPending, "the provider makes the pod once it has "+strings.Join(found.Missing, ", "), wait)
}

// whyNotNamed returns why an ephemeral container may not be added because of what it names; nil if it may.
func (r *reconciler) whyNotNamed(ctx context.Context, s *scope, added *corev1.EphemeralContainer) (refusal, err error) {
	found, err := r.provenance.Check(ctx, s.shadow, &corev1.PodSpec{EphemeralContainers: []corev1.EphemeralContainer{*added}})
	switch {
	case err != nil:
		return nil, err
	case len(found.Foreign) > 0:
		return found.Refusal(), nil
	case len(found.Missing) > 0:
		s.again(reconcile.RefusedRetry)
		return fmt.Errorf("the provider does not have %s yet", strings.Join(found.Missing, ", ")), nil
	}
	return nil, nil
}
