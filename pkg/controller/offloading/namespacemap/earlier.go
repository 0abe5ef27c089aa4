package namespacemap

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

// shown is how many claims a message names.
const shown = 3

// Twins outlive a peering that one side ended alone. The next one takes those up that were made for the very namespaces that are offloaded
// now; what others hold is somebody's data, which goes only if somebody says so.

// marks are the annotations that tell for which namespace a twin is, and in which peering it was wanted last.
func (s *scope) marks(local string) map[string]string {
	marks := map[string]string{}
	if uid := s.nm.Spec.OriginUIDs[local]; uid != "" {
		marks[offloadingv1beta1.OriginNamespaceUIDAnnotation] = uid
	}
	if peering := s.nm.Annotations[corev1beta1.OriginPeeringAnnotation]; peering != "" {
		marks[corev1beta1.OriginPeeringAnnotation] = peering
	}
	return marks
}

// isOther tells whether a twin was made for another namespace than the one of that name which is offloaded now. Earlier versions did not
// write down for which: then it is the present one's if it was wanted in this peering.
func (s *scope) isOther(twin *corev1.Namespace, local string) bool {
	wanted, has := s.nm.Spec.OriginUIDs[local], twin.Annotations[offloadingv1beta1.OriginNamespaceUIDAnnotation]
	if wanted == "" || has == wanted {
		return false
	}
	return has != "" || s.isEarlier(twin)
}

// isEarlier tells whether a twin was wanted last in an earlier peering.
func (s *scope) isEarlier(twin *corev1.Namespace) bool {
	now, last := s.nm.Annotations[corev1beta1.OriginPeeringAnnotation], twin.Annotations[corev1beta1.OriginPeeringAnnotation]
	return now != "" && last != "" && now != last
}

// keep sorts out which twins that are not wanted stay because they hold data of an earlier peering, or of an earlier namespace, and says so.
func (r *reconciler) keep(ctx context.Context, s *scope, unwanted []string) (leave []string, err error) {
	var kept error
	for _, local := range unwanted {
		twin := s.twins[local]
		if !twin.DeletionTimestamp.IsZero() || !s.isEarlier(twin) && !s.isOther(twin, local) {
			leave = append(leave, local)
			continue
		}
		data, err := held(ctx, r.Live, twin)
		if err != nil {
			return nil, err
		}
		if len(data) == 0 {
			leave = append(leave, local)
			continue
		}
		message := fmt.Sprintf("namespace %s of the provider holds data of an earlier namespace %s: %s", twin.Name, local, named(data))
		way := "offload that namespace again to take it up, or delete the one here to lose the data"
		if s.isOther(twin, local) {
			way = "to lose it, run: liqoctl peer --delete-volumes"
		}
		s.answers[local] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: twin.Name, Phase: offloadingv1beta1.MappingCreationLoopBackOff,
			Reason: offloadingv1beta1.ReasonTwinHoldsData, Message: message + "; " + way}
		kept = reconcile.Wait(offloadingv1beta1.ReasonTwinHoldsData, message, reconcile.RefusedRetry)
	}
	return leave, kept
}

// held are the claims in a twin that are somebody's data.
func held(ctx context.Context, live client.Reader, twin *corev1.Namespace) ([]corev1.PersistentVolumeClaim, error) {
	var claims corev1.PersistentVolumeClaimList
	if err := live.List(ctx, &claims, client.InNamespace(twin.Name)); err != nil {
		return nil, fmt.Errorf("listing the claims in Namespace %s: %w", twin.Name, err)
	}
	return reflection.Kept(claims.Items), nil
}

// named names the first few claims.
func named(claims []corev1.PersistentVolumeClaim) string {
	text := fmt.Sprintf("%d claims", len(claims))
	if len(claims) == 1 {
		text = "1 claim"
	}
	for i := range claims {
		switch i {
		case 0:
			text += " ("
		case shown:
			return text + ", …)"
		default:
			text += ", "
		}
		text += claims[i].Name
	}
	return text + ")"
}

// confirmDrained asks the API server itself whether a tenant is drained: to a cache of the past it may be one that is active again.
func (r *reconciler) confirmDrained(ctx context.Context, s *scope) error {
	if s.condition != authv1beta1.TenantDrained {
		return nil
	}
	now, err := gather(ctx, r.Live, s.nm)
	if err != nil {
		return err
	}
	if now.condition != authv1beta1.TenantDrained {
		return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, fmt.Sprintf("waiting for the cache to show the Tenant in %s", s.nm.Namespace), lag)
	}
	return nil
}

// stop ends all that runs for a tenant that is drained: it loses its rights and its pods, and no data.
func (r *reconciler) stop(ctx context.Context, s *scope) error {
	if s.condition != authv1beta1.TenantDrained {
		return nil
	}
	for local, twin := range s.twins {
		if !twin.DeletionTimestamp.IsZero() {
			continue
		}
		if err := halt(ctx, r.Client, local, twin); err != nil {
			return err
		}
	}
	return nil
}

// halt ends all that runs in a twin.
func halt(ctx context.Context, c client.Client, local string, twin *corev1.Namespace) error {
	if err := c.DeleteAllOf(ctx, &offloadingv1beta1.ShadowPod{}, client.InNamespace(twin.Name)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("stopping the pods of namespace %s in Namespace %s: %w", local, twin.Name, err)
	}
	return nil
}
