package main

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/test/integration/fixture"
)

// mend clears away what a scenario left that did not come to its end, so that the next one measures what it says.
func (b *bench) mend() {
	if k := b.kubelets[mainNode]; !b.own[k.process()].Running() {
		b.w.Logf("The virtual kubelet had ended:\n%s", b.own[k.process()].Tail(30))
		b.launch(k)
	}
	if !b.own[floorName].Running() {
		b.runFloor()
	}
	if !b.lifted {
		b.limits(true)
	}
	for _, s := range b.systems {
		in := client.InNamespace(s.namespace)
		fixture.Must(b.w, "deleting the Deployments", s.home.Client.DeleteAllOf(b.w.ctx, &appsv1.Deployment{}, in, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		fixture.Await(b.w, fixture.Patience, "the ReplicaSets to be gone", func(ctx context.Context) (bool, string) {
			sets := &appsv1.ReplicaSetList{}
			err := s.home.Client.List(ctx, sets, in)
			return err == nil && len(sets.Items) == 0, fmt.Sprintf("%d are left, error %v", len(sets.Items), err)
		})
		fixture.Must(b.w, "deleting the pods", s.home.Client.DeleteAllOf(b.w.ctx, &corev1.Pod{}, in))
		for _, kind := range []client.Object{&corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}} {
			fixture.Must(b.w, "deleting objects", s.home.Client.DeleteAllOf(b.w.ctx, kind, in, client.HasLabels{revisionLabel}))
		}
	}
	for _, s := range b.systems {
		for _, c := range []*fixture.Cluster{s.home, s.away} {
			if c == nil {
				continue
			}
			fixture.Await(b.w, burstTimeout, "the pods to be gone from "+c.ID, func(ctx context.Context) (bool, string) {
				pods := &metav1.PartialObjectMetadataList{}
				pods.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PodList"))
				err := c.Client.List(ctx, pods, client.InNamespace(s.namespace))
				return err == nil && len(pods.Items) == 0, fmt.Sprintf("%d are left, error %v", len(pods.Items), err)
			})
		}
	}
	b.settle(20)
}
