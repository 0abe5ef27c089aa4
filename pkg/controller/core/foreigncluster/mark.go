package foreigncluster

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// confirming is how long the answer of a provider is waited for that decides whether its mark goes.
const confirming = time.Second

// unmark takes the word back that a peer will not come back, once it answers and lets us work. An answer from before the mark proves
// nothing: the provider may have died since. It returns when to look again, if it waits for an answer.
func (r *reconciler) unmark(ctx context.Context, fc *corev1beta1.ForeignCluster, facts *Facts) (time.Duration, error) {
	if !fc.IsMarkedDead() {
		delete(r.marks, fc.UID)
		return 0, nil
	}
	seen, before := r.marks[fc.UID]
	if !before {
		seen = r.Clock.Now()
		r.marks[fc.UID] = seen
	}
	if !facts.Probe.Known || !facts.Probe.Connected || facts.Probe.Reason == corev1beta1.ReasonRightsRevoked {
		return 0, nil // A change of that brings us back.
	}
	if !r.Prober.AnsweredSince(fc.Name, seen) {
		return confirming, nil
	}
	marked := fc.DeepCopy()
	delete(fc.Annotations, corev1beta1.PermanentlyUnreachableAnnotation)
	if err := r.Patch(ctx, fc, client.MergeFromWithOptions(marked, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("removing the mark of ForeignCluster %s, which answers: %w", fc.Name, err)
	}
	return 0, nil
}
