// Package volume finds the volumes that hold data at other clusters, for commands by which that data would be lost.
package volume

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/reflection"
)

// named is how many claims a message names.
const named = 5

// Volume is one volume at another cluster.
type Volume struct {
	// Cluster that has the data.
	Cluster string
	// Claim that the volume belongs to.
	Claim corev1.ObjectReference
	// Left is the name of a volume whose claim is gone and whose data is kept.
	Left string
}

// At lists the volumes of a cluster that are at the given other cluster (at any if it is empty) and belong to claims of the
// given namespace (of any if it is empty). Those do not count that go by themselves, because their claims were deleted.
func At(ctx context.Context, cluster *target.Cluster, at, namespace string) ([]Volume, error) {
	list := &corev1.PersistentVolumeList{}
	if err := cluster.List(ctx, list); err != nil {
		return nil, err
	}
	var volumes []Volume
	for i := range list.Items {
		handle, remote := reflection.HandleOf(&list.Items[i])
		claim := list.Items[i].Spec.ClaimRef
		holds := remote && claim != nil && !reflection.GivenBack(&list.Items[i])
		if holds && (at == "" || handle.Cluster == at) && (namespace == "" || claim.Namespace == namespace) {
			volume := Volume{Cluster: handle.Cluster, Claim: *claim}
			if list.Items[i].Status.Phase == corev1.VolumeReleased {
				volume.Left = list.Items[i].Name
			}
			volumes = append(volumes, volume)
		}
	}
	slices.SortFunc(volumes, func(a, b Volume) int { return strings.Compare(a.String(), b.String()) })
	return volumes, nil
}

// String names the claim and the cluster.
func (v Volume) String() string {
	if v.Left != "" {
		return fmt.Sprintf("%s/%s in %s (volume %s, whose claim is gone)", v.Claim.Namespace, v.Claim.Name, v.Cluster, v.Left)
	}
	return fmt.Sprintf("%s/%s in %s", v.Claim.Namespace, v.Claim.Name, v.Cluster)
}

// Refuse says that volumes hold data; doing is what would lose it.
func Refuse(volumes []Volume, doing string) error {
	names := make([]string, 0, named)
	for _, v := range volumes[:min(len(volumes), named)] {
		names = append(names, v.String())
	}
	list := strings.Join(names, ", ")
	if len(volumes) > named {
		list += fmt.Sprintf(" and %d more", len(volumes)-named)
	}
	return failure.Unmet("move them with 'liqoctl move volume', delete the claims, or volumes without one, or add --delete-volumes to lose their data",
		"%s would delete volumes that hold data: %s", doing, list)
}

// Decide notes on an object that these volumes, and no others, may be lost with it. It comes after Delete: a command that ends
// before leaves no decision about a claim that is still there.
func Decide(ctx context.Context, cluster *target.Cluster, object client.Object, volumes []Volume) error {
	claims := make([]corev1.ObjectReference, 0, len(volumes))
	decided := true
	for i := range volumes {
		claims = append(claims, volumes[i].Claim)
		decided = decided && reflection.GivenUp(object, &volumes[i].Claim)
	}
	if decided {
		return nil
	}
	changed, _ := object.DeepCopyObject().(client.Object)
	annotations := map[string]string{offloadingv1beta1.DeleteVolumesAnnotation: reflection.GiveUp(claims)}
	for key, value := range object.GetAnnotations() {
		if key != offloadingv1beta1.DeleteVolumesAnnotation {
			annotations[key] = value
		}
	}
	changed.SetAnnotations(annotations)
	if err := cluster.Client.Patch(ctx, changed, client.MergeFrom(object)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("changing %s: %w", cluster.Describe(object), err)
	}
	return nil
}

// Delete deletes the claims of volumes; what is behind them goes with them.
func Delete(ctx context.Context, observer progress.Observer, cluster *target.Cluster, volumes []Volume) error {
	for _, v := range volumes {
		if v.Left != "" {
			continue // It has no claim; it goes with what it is given up for.
		}
		title := fmt.Sprintf("Deleting PersistentVolumeClaim %s/%s with its data in %s", v.Claim.Namespace, v.Claim.Name, v.Cluster)
		err := progress.Run(ctx, observer, cluster.Name, title, func(ctx context.Context, _ progress.Task) (string, error) {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: v.Claim.Namespace, Name: v.Claim.Name}}
			found, err := cluster.Get(ctx, claim)
			if err != nil || !found || claim.UID != v.Claim.UID {
				return "", err
			}
			return "", cluster.Remove(ctx, claim)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
