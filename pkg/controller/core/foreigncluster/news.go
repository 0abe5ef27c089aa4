package foreigncluster

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/kube/conditions"
)

// tell tells by an Event and in the log that a provider was lost, took our rights or a slice back, or is back. What was written before decides whether
// that is news, so a restart does not repeat it.
func (r *reconciler) tell(ctx context.Context, before, fc *corev1beta1.ForeignCluster) {
	for _, n := range news(&before.Status, &fc.Status) {
		kind := corev1.EventTypeNormal
		if n.status == corev1beta1.StatusError {
			kind = corev1.EventTypeWarning
		}
		ctrl.LoggerFrom(ctx).Info("What is known of a peer changed", "condition", n.kind, "status", n.status, "reason", n.reason, "message", n.message)
		if r.Events != nil {
			r.Events.Eventf(fc, nil, kind, n.reason, "Observe", "%s", conditions.Bound(n.message))
		}
	}
}

// news is what changed of whether the peer answers, grants us our rights and what we ask for, and is reached by the network: errors that came,
// and those that went.
func news(before, after *corev1beta1.ForeignClusterStatus) []observation {
	var all []observation
	for _, part := range []struct {
		was, is []corev1beta1.Condition
		kind    string
	}{
		{before.Conditions, after.Conditions, corev1beta1.APIServerStatus},
		{before.Modules.Authentication.Conditions, after.Modules.Authentication.Conditions, corev1beta1.AuthIdentityControlPlaneStatus},
		{before.Modules.Authentication.Conditions, after.Modules.Authentication.Conditions, corev1beta1.AuthResourceSliceStatus},
		{before.Modules.Networking.Conditions, after.Modules.Networking.Conditions, corev1beta1.NetworkConnectionStatus},
	} {
		was, is := conditions.Find(part.was, part.kind), conditions.Find(part.is, part.kind)
		if was == nil || is == nil || was.Status == is.Status && was.Reason == is.Reason {
			continue
		}
		// The tunnel is back, too, where some nodes do not come into it.
		back := is.Status == corev1beta1.StatusEstablished || is.Status == corev1beta1.StatusSomeNotReady && is.Type == corev1beta1.NetworkConnectionStatus
		if is.Status == corev1beta1.StatusError || was.Status == corev1beta1.StatusError && back {
			all = append(all, observation{is.Type, is.Status, is.Reason, is.Message})
		}
	}
	return all
}
