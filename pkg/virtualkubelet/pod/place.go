package pod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/virtualkubelet/api"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

// Place is where a local pod runs, for those who bring it what else it needs there.
type Place struct {
	// Local is the local pod.
	Local *corev1.Pod
	// Lost says that the provider was asked and does not answer.
	Lost bool
	// UID of the pod's ShadowPod; empty while none is known for certain. The fields below are set with it.
	UID types.UID
	// Shadow is the ShadowPod; nil as long as the cache does not show it.
	Shadow *offloadingv1beta1.ShadowPod
	// Namespace is the twin namespace.
	Namespace string
	// Provider is the client of the provider. Epoch grows when what is watched there is to be begun anew.
	Provider kubernetes.Interface
	Epoch    int64
}

// Place tells where a pod runs, from memory; false if there is no such pod. Options.Placed is called when it may have changed.
func (r *Reconciler) Place(k types.NamespacedName) (Place, bool) {
	local := r.local(k)
	if local == nil {
		return Place{}, false
	}
	v := r.look(k, local.UID)
	p := Place{Local: local, Lost: v.lost}
	switch {
	case !v.ready:
		return p, true
	case v.shadow != nil && v.shadow.DeletionTimestamp == nil && standsFor(v.shadow, local):
		p.UID, p.Shadow = v.shadow.UID, v.shadow
	case v.shadow == nil && v.made != nil:
		p.UID = v.made.shadow
	}
	if p.UID != "" {
		p.Namespace, p.Provider, p.Epoch = v.namespace, v.clients.Kube, v.epoch
	}
	return p, true
}

// Twin tells the kubelet endpoint where a local pod runs. It answers from memory. Errors leave it to the caller to name the pod.
func (r *Reconciler) Twin(_ context.Context, namespace, name, uid string) (api.Target, error) {
	local := r.local(key{Namespace: namespace, Name: name})
	if local == nil || uid != "" && uid != string(local.UID) {
		return api.Target{}, api.ErrNotFound
	}
	v := r.look(key{Namespace: namespace, Name: name}, local.UID)
	config, err := r.options.Peer.Config()
	if why := whyNoTwin(local, v, r.options.Peer.State()); why != nil {
		err = why
	} else if errors.Is(err, peer.ErrNotConnected) {
		err = api.ErrNotConnected
	}
	if err != nil {
		return api.Target{}, err
	}
	target := api.Target{Config: config, Namespace: v.namespace, Pod: name}
	switch {
	case v.shadow != nil && standsFor(v.shadow, local):
		target.RequestLogs = func(ctx context.Context) error { return requestLogs(ctx, v.clients, v.shadow) }
	case v.shadow == nil && !v.ready: // who has just taken over a node does not know the twin yet
		target.RequestLogs = func(ctx context.Context) error { return r.requestLogsUnseen(ctx, v.namespace, local) }
	}
	for i := range local.Spec.InitContainers {
		target.Containers = append(target.Containers, local.Spec.InitContainers[i].Name)
	}
	for i := range local.Spec.Containers {
		target.Containers = append(target.Containers, local.Spec.Containers[i].Name)
	}
	for i := range local.Spec.EphemeralContainers {
		target.Containers = append(target.Containers, local.Spec.EphemeralContainers[i].Name)
	}
	return target, nil
}

// whyNoTwin tells why nobody can be asked about a pod at the provider; nil if somebody can.
func whyNoTwin(local *corev1.Pod, v view, state peer.State) error {
	switch {
	case v.offload == unknown:
		return api.ErrStandsBy
	case !state.Usable() && v.offload != notOffloaded:
		// Who took our rights back may have taken the twin, too, which says less.
		return fmt.Errorf("%s: %w", state.Message, api.ErrNotConnected)
	case v.namespace == "":
		return fmt.Errorf("its namespace is not offloaded: %w", api.ErrNotFound)
	case v.remote != nil && !standsFor(v.remote, local):
		return fmt.Errorf("an earlier pod of that name still runs: %w", api.ErrNotFound)
	default:
		return nil
	}
}

// requestLogsUnseen requests the logs of a ShadowPod that is not known yet, but may well be there.
func (r *Reconciler) requestLogsUnseen(ctx context.Context, twin string, local *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	clients, err := r.options.Peer.Clients()
	if err != nil {
		return fmt.Errorf("asking for the ShadowPod of pod %s/%s: %w", local.Namespace, local.Name, err)
	}
	shadow, err := shadowpods.Get(ctx, clients, twin, local.Name)
	if err != nil {
		return err
	}
	if !standsFor(shadow, local) {
		return fmt.Errorf("pod %s/%s: its ShadowPod is that of an earlier pod: %w", local.Namespace, local.Name, api.ErrNotFound)
	}
	return requestLogs(ctx, clients, shadow)
}

// requestLogs marks the ShadowPod as one whose pod's logs are wanted. It is written once in a ShadowPod's life.
func requestLogs(ctx context.Context, c peer.Clients, shadow *offloadingv1beta1.ShadowPod) error {
	if _, asked := shadow.Annotations[offloadingv1beta1.LogsRequestedAnnotation]; asked {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, localTimeout)
	defer cancel()
	err := shadowpods.Annotate(ctx, c, shadow, offloadingv1beta1.LogsRequestedAnnotation, "true")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return fmt.Errorf("pod %s/%s is being removed: %w", shadow.Namespace, shadow.Name, api.ErrNotFound)
	}
	if err != nil {
		return fmt.Errorf("requesting the logs of ShadowPod %s/%s: %w", shadow.Namespace, shadow.Name, err)
	}
	return nil
}

// Reflected returns the local pod that is known to stand behind the ShadowPod of the name, or, if shadow is false, behind the
// remote pod.
func (r *Reconciler) Reflected(namespace, name string, shadow bool) (*corev1.Pod, bool) {
	k := key{Namespace: namespace, Name: name}
	local := r.local(k)
	if local == nil {
		return nil, false
	}
	v := r.look(k, local.UID)
	if shadow {
		return local, v.shadow != nil && standsFor(v.shadow, local)
	}
	return local, v.remote != nil && standsFor(v.remote, local)
}
