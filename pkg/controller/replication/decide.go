package replication

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// maxAnnotations bounds what travels in annotations, in bytes.
const maxAnnotations = 16 << 10

// action is what is done about one object.
type action string

const (
	nothing         action = "nothing"
	addFinalizer    action = "add the finalizer"
	create          action = "create the copy"
	update          action = "update the copy"
	replace         action = "remove the copy of an earlier object"
	removeOrphan    action = "remove an orphan"
	removeCopy      action = "remove the copy"
	removeFinalizer action = "remove the finalizer"
	conflict        action = "report the conflict"
	await           action = "await the peer"
	pull            action = "pull the status"
)

// view is all that an action is decided on.
type view struct {
	// local object, nil if there is none.
	local client.Object
	// remote copy as the watch shows it, nil if there is none; only looked at if synced.
	remote client.Object
	// home and peer are the cluster IDs.
	home, peer string
	// connected says that the peer answers; synced that its copies are known.
	connected, synced bool
	// gone says that the peer is known not to come back.
	gone bool
	// differs says that the copy is not as wanted.
	differs bool
	// twins says that twins would go with the copy: it is not removed because its original is missing, but taken over.
	twins bool
}

// decide returns what is done about one object.
func decide(v view) action {
	ours := v.synced && isOurs(v.remote, v.home)
	if v.local == nil {
		if ours && v.remote.GetDeletionTimestamp().IsZero() && !v.twins {
			return removeOrphan
		}
		return nothing
	}
	if !isWanted(v.local, v.peer) || !v.local.GetDeletionTimestamp().IsZero() {
		return decideGoing(v, ours)
	}
	return decideLive(v, ours)
}

// decideGoing is about an object that is being deleted, or is no longer to be replicated.
func decideGoing(v view, ours bool) action {
	switch {
	case !hasFinalizer(v.local):
		if ours && !isForeignCopy(v.local) && v.remote.GetDeletionTimestamp().IsZero() && uidOf(v.remote) == v.local.GetUID() {
			return removeCopy
		}
		return nothing
	case v.gone:
		return removeFinalizer
	case !v.connected:
		return await
	}
	return removeCopy
}

// decideLive is about an object that is to be replicated.
func decideLive(v view, ours bool) action {
	switch {
	case !hasFinalizer(v.local):
		return addFinalizer
	case !v.synced:
		return await
	case v.remote == nil:
		return create
	case !ours:
		return conflict
	case !v.remote.GetDeletionTimestamp().IsZero():
		return await
	case uidOf(v.remote) != v.local.GetUID() && !v.twins:
		return replace
	case v.differs:
		return update
	}
	return pull
}

// isWanted tells whether a local object asks to be replicated to a peer.
func isWanted(local client.Object, peer string) bool {
	labels := local.GetLabels()
	return labels[corev1beta1.ReplicationLabel] == "true" && labels[corev1beta1.RemoteIDLabel] == peer && !isForeignCopy(local)
}

// isForeignCopy tells whether an object of this cluster is the copy of a peer's: the other direction's business.
func isForeignCopy(local client.Object) bool {
	return local.GetLabels()[corev1beta1.ReplicatedLabel] == "true"
}

// isOurs tells whether a copy at a peer was made by this cluster.
func isOurs(remote client.Object, home string) bool {
	return remote != nil && remote.GetLabels()[corev1beta1.ReplicatedLabel] == "true" &&
		remote.GetLabels()[corev1beta1.OriginIDLabel] == home && uidOf(remote) != ""
}

func uidOf(remote client.Object) types.UID {
	return types.UID(remote.GetAnnotations()[corev1beta1.OriginUIDAnnotation])
}

func hasFinalizer(object client.Object) bool {
	for _, finalizer := range object.GetFinalizers() {
		if finalizer == authv1beta1.ReplicationFinalizer {
			return true
		}
	}
	return false
}

// notSent are labels that name the tool that made an object: it would take the copy for its own and remove it.
var notSent = []string{"app.kubernetes.io/instance", "app.kubernetes.io/managed-by"}

// wantedLabels are the labels of a copy.
func wantedLabels(local client.Object, home string) map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, local.GetLabels())
	for _, key := range notSent {
		delete(labels, key)
	}
	labels[corev1beta1.ReplicationLabel] = "false"
	labels[corev1beta1.ReplicatedLabel] = "true"
	labels[corev1beta1.OriginIDLabel] = home
	labels[corev1beta1.RemoteClusterIDLabel] = home
	return labels
}

// wantedAnnotations are our annotations of a copy.
func wantedAnnotations(local client.Object, peering string) map[string]string {
	annotations, size := map[string]string{}, 0
	for key, value := range local.GetAnnotations() {
		if strings.HasPrefix(key, authv1beta1.ReplicatedAnnotationPrefix) {
			annotations[key] = value
			size += len(key) + len(value)
		}
	}
	if size > maxAnnotations {
		clear(annotations)
	}
	annotations[corev1beta1.OriginUIDAnnotation] = string(local.GetUID())
	if peering != "" {
		annotations[corev1beta1.OriginPeeringAnnotation] = peering
	}
	return annotations
}

// origin is where copies come from.
type origin struct {
	// home is the ID of this cluster; peering is empty if the certificate of the peering names none.
	home, peering string
}

// shape makes a copy be as wanted, leaves alone what the provider added, and tells whether anything changed.
func (k kind) shape(remote, local client.Object, from origin) bool {
	changed := false
	labels, annotations := maps.Clone(remote.GetLabels()), maps.Clone(remote.GetAnnotations())
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	changed = overlay(labels, wantedLabels(local, from.home)) || changed
	wanted := wantedAnnotations(local, from.peering)
	for key := range annotations {
		if _, keep := wanted[key]; !keep && strings.HasPrefix(key, authv1beta1.ReplicatedAnnotationPrefix) {
			delete(annotations, key)
			changed = true
		}
	}
	earlier := annotations[corev1beta1.OriginPeeringAnnotation] != from.peering
	changed = overlay(annotations, wanted) || changed
	remote.SetLabels(labels)
	remote.SetAnnotations(annotations)
	return k.copySpec(local, remote, earlier) || changed
}

func overlay(onto, values map[string]string) bool {
	changed := false
	for key, value := range values {
		if have, ok := onto[key]; !ok || have != value {
			onto[key] = value
			changed = true
		}
	}
	return changed
}

// fresh is a new copy of a local object.
func (k kind) fresh(local client.Object, namespace string, from origin) client.Object {
	object := k.object()
	object.SetNamespace(namespace)
	object.SetName(local.GetName())
	k.shape(object, local, from)
	return object
}
