package peer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/reflection"
)

// namedTwins is how many namespaces a message names.
const namedTwins = 3

// leftover is a namespace at the provider that holds data of one of the consumer's which is not there any more.
type leftover struct {
	twin   *corev1.Namespace
	local  string
	claims int
}

// leftovers finds what an earlier peering left at the provider and this one cannot take up.
func (r *run) leftovers(ctx context.Context) ([]leftover, error) {
	var twins corev1.NamespaceList
	if err := r.pair.Provider.List(ctx, &twins, client.MatchingLabels{
		corev1beta1.ManagedLabel: "true", corev1beta1.RemoteClusterIDLabel: r.pair.ConsumerID}); err != nil {
		return nil, err
	}
	var left []leftover
	for i := range twins.Items {
		twin := &twins.Items[i]
		local, uid := twin.Annotations[offloadingv1beta1.OriginalNameAnnotation], twin.Annotations[offloadingv1beta1.OriginNamespaceUIDAnnotation]
		if local == "" || uid == "" || !twin.DeletionTimestamp.IsZero() {
			continue // no twin, or one of an earlier version: the provider keeps it if in doubt
		}
		here := &corev1.Namespace{}
		here.Name = local
		if found, err := r.pair.Consumer.Get(ctx, here); err != nil {
			return nil, err
		} else if found && string(here.UID) == uid {
			continue
		}
		var claims corev1.PersistentVolumeClaimList
		if err := r.pair.Provider.List(ctx, &claims, client.InNamespace(twin.Name)); err != nil {
			return nil, err
		}
		if kept := reflection.Kept(claims.Items); len(kept) > 0 {
			left = append(left, leftover{twin: twin, local: local, claims: len(kept)})
		}
	}
	slices.SortFunc(left, func(a, b leftover) int { return strings.Compare(a.twin.Name, b.twin.Name) })
	return left, nil
}

// earlier refuses to peer while the provider has data of namespaces that are gone, or gives that data up.
func (r *run) earlier(ctx context.Context) error {
	left, err := r.leftovers(ctx)
	if err != nil || len(left) == 0 {
		return err
	}
	if !r.DeleteVolumes {
		return r.refuse(left)
	}
	for _, l := range left {
		title := fmt.Sprintf("Deleting Namespace %s with the data of %s of an earlier namespace %s", l.twin.Name, volumes(l.claims), l.local)
		err := progress.Run(ctx, r.Observer, r.pair.Provider.Name, title, func(ctx context.Context, _ progress.Task) (string, error) {
			return "", r.pair.Provider.Remove(ctx, l.twin)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *run) refuse(left []leftover) error {
	var names []string
	count := 0
	for i, l := range left {
		count += l.claims
		if i < namedTwins {
			names = append(names, fmt.Sprintf("%s (of %s)", l.twin.Name, l.local))
		}
	}
	if more := len(left) - namedTwins; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return failure.Unmet("copy what you need from there, or add --delete-volumes to lose it",
		"%s still has the data of %s of an earlier peering, for namespaces that are gone or were made anew here: %s",
		r.pair.ProviderID, volumes(count), strings.Join(names, ", "))
}

func volumes(n int) string {
	if n == 1 {
		return "1 volume"
	}
	return fmt.Sprintf("%d volumes", n)
}
