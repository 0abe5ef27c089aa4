package podaddress

import (
	"context"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/kube/freshness"
)

// +kubebuilder:rbac:groups="",resources=pods,verbs=get;list;watch

// Indexes of the cache, for client.MatchingFields.
const (
	// ByNode finds the pods of a node.
	ByNode = "node"
	// ByAddress finds the pods that have an address.
	ByAddress = "address"
)

// NewCache makes a cache of all pods, which starts with the manager.
func NewCache(ctx context.Context, mgr ctrl.Manager) (cache.Cache, error) {
	pods, err := cache.New(mgr.GetConfig(), cache.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), NewInformer: freshness.NewInformer,
		ByObject: map[client.Object]cache.ByObject{&corev1.Pod{}: {Transform: strip}},
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of pods' addresses: %w", err)
	}
	for field, values := range Indexes() {
		if err := pods.IndexField(ctx, &corev1.Pod{}, field, values); err != nil {
			return nil, fmt.Errorf("indexing pods by %s: %w", field, err)
		}
	}
	if err := mgr.Add(pods); err != nil {
		return nil, fmt.Errorf("adding the cache of pods' addresses: %w", err)
	}
	return pods, nil
}

// Indexes are those of the cache.
func Indexes() map[string]client.IndexerFunc {
	return map[string]client.IndexerFunc{
		ByNode: func(o client.Object) []string {
			if pod, ok := o.(*corev1.Pod); ok && pod.Spec.NodeName != "" {
				return []string{pod.Spec.NodeName}
			}
			return nil
		},
		ByAddress: func(o client.Object) (all []string) {
			if pod, ok := o.(*corev1.Pod); ok {
				for _, address := range Of(pod) {
					all = append(all, address.String())
				}
			}
			return all
		},
	}
}

// Of are the addresses of IPv4 under which a pod can be reached: one that has ended has them no more, and one of the host network none of its own.
func Of(pod *corev1.Pod) (all []netip.Addr) {
	if pod.Spec.HostNetwork || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	for _, ip := range pod.Status.PodIPs {
		if address, err := netip.ParseAddr(ip.IP); err == nil && address.Is4() {
			all = append(all, address)
		}
	}
	return all
}

// strip leaves of a pod what the network module looks at.
func strip(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion, DeletionTimestamp: pod.DeletionTimestamp,
		},
		Spec:   corev1.PodSpec{HostNetwork: pod.Spec.HostNetwork, NodeName: pod.Spec.NodeName},
		Status: corev1.PodStatus{Phase: pod.Status.Phase, PodIPs: pod.Status.PodIPs, StartTime: pod.Status.StartTime},
	}, nil
}
