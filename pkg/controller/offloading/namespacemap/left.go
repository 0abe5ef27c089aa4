package namespacemap

import (
	"context"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/offloading/binding"
	"liqo.io/liqo/pkg/kube/conditions"
	"liqo.io/liqo/pkg/kube/reconcile"
)

// Twins that hold data outlive their map if the provider ended the peering: the consumer was not asked. The next map of that consumer takes
// them up.

// part sorts the twins of a deleted map: those that go with it, and those that are kept, which lose their rights and their pods. A consumer
// that may delete its map has decided about its data; one whose Tenant is gone, drained or revoked could not.
func (s *scope) part(ctx context.Context, c client.Client, live client.Reader) (leave []string, kept []*corev1.Namespace, err error) {
	now, err := gather(ctx, live, s.nm)
	if err != nil {
		return nil, nil, err
	}
	decided := now.access != nil && !now.access.Revoked
	for _, local := range slices.Sorted(maps.Keys(s.twins)) {
		twin := s.twins[local]
		if decided || !twin.DeletionTimestamp.IsZero() {
			leave = append(leave, local)
			continue
		}
		data, err := held(ctx, live, twin)
		if err != nil {
			return nil, nil, err
		}
		if len(data) == 0 {
			leave = append(leave, local)
			continue
		}
		if err := halt(ctx, c, local, twin); err != nil {
			return nil, nil, err
		}
		if err := binding.Keeper(c).Remove(ctx, binding.New(twin.Name, offloadingv1beta1.RemoteClusterRole, "")); err != nil {
			return nil, nil, err
		}
		s.answers[local] = offloadingv1beta1.RemoteNamespaceStatus{RemoteNamespace: twin.Name, Phase: offloadingv1beta1.MappingCreationLoopBackOff,
			Reason:  offloadingv1beta1.ReasonTwinHoldsData,
			Message: fmt.Sprintf("namespace %s of the provider stays, because it holds data: %s", twin.Name, named(data))}
		kept = append(kept, twin)
	}
	return leave, kept, nil
}

// tellLeft says that a twin stays, whose it is, and how its data is lost.
func (s *scope) tellLeft(recorder events.EventRecorder, twin *corev1.Namespace) {
	answer := s.answers[twin.Annotations[offloadingv1beta1.OriginalNameAnnotation]]
	way := fmt.Sprintf("the peering was ended here, and %s takes it up when it peers again; to lose it, run: liqoctl unpeer --force %s --delete-volumes",
		s.tenant, s.tenant)
	recorder.Eventf(twin, nil, corev1.EventTypeWarning, answer.Reason, "Keep", "%s", conditions.Bound(answer.Message+"; "+way))
}

// takeUp makes twins of an earlier map of the same name twins of this one, if they were made for the very namespaces that it wants.
func (s *scope) takeUp(ctx context.Context, c client.Client, live client.Reader) error {
	var namespaces corev1.NamespaceList
	if err := c.List(ctx, &namespaces, client.MatchingLabels{corev1beta1.ManagedLabel: "true"}); err != nil {
		return fmt.Errorf("listing twin Namespaces: %w", err)
	}
	for i := range namespaces.Items {
		twin := &namespaces.Items[i]
		if !s.isLeft(twin) {
			continue
		}
		// To a cache of the past it may be this map that is the earlier one.
		key, present := client.ObjectKeyFromObject(s.nm), &offloadingv1beta1.NamespaceMap{}
		if err := live.Get(ctx, key, present); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("reading NamespaceMap %s: %w", key, err)
		} else if err != nil || present.UID != s.nm.UID {
			return reconcile.Wait(offloadingv1beta1.ReasonTwinPending, fmt.Sprintf("waiting for the cache to show NamespaceMap %s", key), lag)
		}
		local, changed := twin.Annotations[offloadingv1beta1.OriginalNameAnnotation], twin.DeepCopy()
		changed.Annotations[corev1beta1.OriginUIDAnnotation] = string(s.nm.UID)
		if err := c.Patch(ctx, changed, client.MergeFromWithOptions(twin, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("taking up Namespace %s: %w", twin.Name, err)
		}
		s.twins[local] = changed
	}
	return nil
}

// isLeft tells whether a namespace is the twin of a wanted one that an earlier map of this name left.
func (s *scope) isLeft(twin *corev1.Namespace) bool {
	local := twin.Annotations[offloadingv1beta1.OriginalNameAnnotation]
	uid := s.nm.Spec.OriginUIDs[local]
	return twin.DeletionTimestamp.IsZero() && twin.Annotations[offloadingv1beta1.ManagedByNamespaceMapAnnotation] == keyOf(s.nm) && !isTwinOf(twin, s.nm) &&
		s.nm.Spec.DesiredMapping[local] == twin.Name && uid != "" && twin.Annotations[offloadingv1beta1.OriginNamespaceUIDAnnotation] == uid
}
