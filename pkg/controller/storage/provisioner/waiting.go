package provisioner

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// +kubebuilder:rbac:groups=offloading.liqo.io,resources=virtualnodes,verbs=get;list;watch;patch

const (
	// unattended is how long a volume may wait for its virtual kubelet before that is told of it: mostly it knows by itself.
	unattended = 30 * time.Second
	// maxAnnounced is how many volumes a VirtualNode names, to keep its annotation small.
	maxAnnounced = 1000
)

// announce names on the virtual nodes of each provider the volumes there that wait to be given up. A virtual kubelet learns of volumes
// by the claims at the provider, and lists none: of one whose claim was deleted there while it did not run, nobody else would tell it,
// and the volume would stay for ever.
func (r *volumes) announce(ctx context.Context) error {
	var all corev1.PersistentVolumeList
	if err := r.List(ctx, &all); err != nil {
		return fmt.Errorf("listing PersistentVolumes: %w", err)
	}
	waiting := map[string][]*corev1.PersistentVolume{}
	for i := range all.Items {
		volume := &all.Items[i]
		if handle, remote := reflection.HandleOf(volume); remote && r.waits(volume) {
			waiting[handle.Cluster] = append(waiting[handle.Cluster], volume)
		}
	}
	var nodes offloadingv1beta1.VirtualNodeList
	if err := r.List(ctx, &nodes); err != nil {
		return fmt.Errorf("listing VirtualNodes: %w", err)
	}
	for i := range nodes.Items {
		if err := r.announceAt(ctx, &nodes.Items[i], waiting[string(nodes.Items[i].Spec.ClusterID)]); err != nil {
			return err
		}
	}
	return nil
}

// waits tells whether a volume was given back, or deleted, some time ago, and is still held.
func (r *volumes) waits(volume *corev1.PersistentVolume) bool {
	if !given(volume) || !controllerutil.ContainsFinalizer(volume, offloadingv1beta1.VolumeFinalizer) ||
		volume.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete && volume.DeletionTimestamp.IsZero() {
		return false
	}
	since := volume.CreationTimestamp.Time
	if volume.Status.LastPhaseTransitionTime != nil {
		since = volume.Status.LastPhaseTransitionTime.Time
	}
	if !volume.DeletionTimestamp.IsZero() {
		since = volume.DeletionTimestamp.Time
	}
	return r.Clock.Since(since) >= unattended
}

func (r *volumes) announceAt(ctx context.Context, node *offloadingv1beta1.VirtualNode, waiting []*corev1.PersistentVolume) error {
	before := node.Annotations[offloadingv1beta1.WaitingVolumesAnnotation]
	known := strings.Split(before, ",")
	var names []string
	for _, volume := range waiting {
		names = append(names, volume.Name)
	}
	slices.Sort(names)
	names = names[:min(len(names), maxAnnounced)]
	now := strings.Join(names, ",")
	if now == before {
		return nil
	}
	changed := node.DeepCopy()
	delete(changed.Annotations, offloadingv1beta1.WaitingVolumesAnnotation)
	if now != "" {
		if changed.Annotations == nil {
			changed.Annotations = map[string]string{}
		}
		changed.Annotations[offloadingv1beta1.WaitingVolumesAnnotation] = now
	}
	if err := r.Patch(ctx, changed, client.MergeFrom(node)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("naming the volumes that wait on VirtualNode %s/%s: %w", node.Namespace, node.Name, err)
	}
	for _, volume := range waiting {
		if !slices.Contains(known, volume.Name) {
			r.wayOut(volume)
		}
	}
	return nil
}

// wayOut says how a volume goes that was deleted, and stays because its data is retained.
func (r *volumes) wayOut(volume *corev1.PersistentVolume) {
	handle, _ := reflection.HandleOf(volume)
	if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		return
	}
	r.warn(volume, offloadingv1beta1.ReasonVolumesHoldData, fmt.Sprintf(
		"the volume stays as long as its data, which is in PersistentVolumeClaim %s/%s of cluster %q: "+
			"it goes when that claim is deleted there, or once you give the data up: "+
			`kubectl patch pv %s -p '{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}'`, handle.Namespace, handle.Name, handle.Cluster, volume.Name))
}
