// Package hold tells what volumes at a provider would be lost if something were taken away from it.
package hold

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/reconcile"
	"liqo.io/liqo/pkg/reflection"
)

const (
	// named is how many claims a message names.
	named = 3
	// poll is how often it is looked whether the volumes are gone.
	poll = 10 * time.Second
)

// Volumes lists, as <namespace>/<claim>, the volumes at a cluster that hold data of a namespace; of all namespaces if it is
// empty. A volume counts as long as it exists: even without its claim, its data may be wanted. Those do not count of which the
// user has decided that they may be lost with the object. If the cache shows none, the API server itself is asked.
func Volumes(ctx context.Context, cached, live client.Reader, object client.Object, cluster, namespace string) ([]string, error) {
	held, err := volumes(ctx, cached, object, cluster, namespace)
	if err != nil || len(held) > 0 {
		return held, err
	}
	return volumes(ctx, live, object, cluster, namespace)
}

func volumes(ctx context.Context, reader client.Reader, object client.Object, cluster, namespace string) ([]string, error) {
	var list corev1.PersistentVolumeList
	if err := reader.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	var held []string
	for i := range list.Items {
		volume := &list.Items[i]
		handle, remote := reflection.HandleOf(volume)
		ref := volume.Spec.ClaimRef
		if !remote || handle.Cluster != cluster || ref == nil || namespace != "" && ref.Namespace != namespace || reflection.GivenUp(object, ref) {
			continue
		}
		name := ref.Namespace + "/" + ref.Name
		if reflection.GivenBack(volume) {
			name += " is deleted, and its volume going"
		} else if volume.Status.Phase == corev1.VolumeReleased {
			name += " is deleted, and its volume " + volume.Name + " kept"
		}
		held = append(held, name)
	}
	slices.Sort(held)
	return slices.Compact(held), nil
}

// Reason says that volumes are in the way, and how to go on with the command that is given.
func Reason(cluster string, held []string, command string) string {
	list := strings.Join(held[:min(len(held), named)], ", ")
	if len(held) > named {
		list += fmt.Sprintf(" and %d more", len(held)-named)
	}
	return fmt.Sprintf("volumes in cluster %s hold data (%s): move them with liqoctl move volume, delete the claims, or give the data up with %s --delete-volumes",
		cluster, list, command)
}

// Wait is the error of a reconciler that volumes keep from going on.
func Wait(cluster string, held []string, command string) error {
	return reconcile.Wait(offloadingv1beta1.ReasonVolumesHoldData, Reason(cluster, held, command), poll)
}
