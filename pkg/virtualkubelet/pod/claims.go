package pod

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// claims finds the claims at the provider that stand for those of the pod. It is not ready while one of them is not, or is not
// there at all: then the pod says so, and it is looked again later, because a volume may move.
func (r *Reconciler) claims(ctx context.Context, local *corev1.Pod, in *reflection.PodInput) (ready bool, err error) {
	used := reflection.ClaimsOf(local)
	if len(used) == 0 || r.options.Claims == nil {
		return true, nil
	}
	in.Claims = map[string]string{}
	for _, claim := range used {
		var owner types.UID
		if claim.Ephemeral {
			owner = local.UID
		}
		remote, refused, err := r.options.Claims(ctx, local.Namespace, claim.Name, owner)
		if err != nil {
			return false, err
		}
		if refused != nil {
			r.refuse(local, refusal{reason: refused.Reason, message: refused.Message})
			return false, reconcile.Refuse(refused.Reason, errors.New(refused.Message))
		}
		in.Claims[claim.Name] = remote
	}
	return true, nil
}
