package world

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	"liqo.io/liqo/pkg/reflection"
	"liqo.io/liqo/test/integration/fixture"
)

// RemoteOf reads the pod at milan of the same name.
func (s *Shared) RemoteOf(t *testing.T, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	remote := &corev1.Pod{}
	fixture.Must(t, "reading pod "+p.Name+" at milan", s.Milan.Client.Get(t.Context(), client.ObjectKeyFromObject(p), remote))
	return remote
}

// ImagePod is a Pod with an image.
func ImagePod(namespace, name, image string) *corev1.Pod {
	p := Pod(namespace, name)
	p.Spec.Containers[0].Image = image
	return p
}

// OnePodEach checks that each local pod has exactly one remote pod, which runs what the local one says.
func (s *Shared) OnePodEach(t *testing.T, namespace string) {
	t.Helper()
	local, remote := &corev1.PodList{}, &corev1.PodList{}
	fixture.Must(t, "listing pods at home", s.Rome.Client.List(t.Context(), local, client.InNamespace(namespace)))
	fixture.Must(t, "listing pods at the provider", s.Milan.Client.List(t.Context(), remote, client.InNamespace(namespace)))
	images := map[string]string{}
	for i := range remote.Items {
		origin := remote.Items[i].Annotations[corev1beta1.OriginUIDAnnotation]
		if images[origin] != "" {
			t.Errorf("two remote pods stand for the pod with UID %s", origin)
		}
		images[origin] = remote.Items[i].Spec.Containers[0].Image
	}
	for i := range local.Items {
		p := &local.Items[i]
		if image := images[string(p.UID)]; image != p.Spec.Containers[0].Image {
			t.Errorf("pod %s runs image %q at the provider, want %q", p.Name, image, p.Spec.Containers[0].Image)
		}
	}
	if len(local.Items) != len(images) {
		t.Errorf("%d local pods and %d that remote ones stand for", len(local.Items), len(images))
	}
}

// AwaitPod waits until a pod of rome is as wanted.
func (s *Shared) AwaitPod(t *testing.T, p *corev1.Pod, what string, ask func(*corev1.Pod) bool) {
	t.Helper()
	fixture.Await(t, fixture.Patience, what, func(ctx context.Context) (bool, string) {
		if err := s.Rome.Client.Get(ctx, client.ObjectKeyFromObject(p), p); err != nil {
			return false, err.Error()
		}
		seen, _ := json.Marshal(p.Status)
		return ask(p), string(seen)
	})
}

// Pod is one with a container that does nothing.
func Pod(namespace, name string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "b"}}}}
}

// AwaitPods waits until all pods of a namespace run and are ready, and returns their UIDs by name.
func AwaitPods(t *testing.T, c *fixture.Cluster, namespace string, count int) map[string]types.UID {
	t.Helper()
	uids := map[string]types.UID{}
	fixture.Await(t, 5*time.Minute, fmt.Sprintf("%d pods to run in namespace %s of %s", count, namespace, c.ID), func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		if err := c.Client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
			return false, err.Error()
		}
		clear(uids)
		var other *corev1.Pod
		for i, p := range pods.Items {
			if p.Status.Phase == corev1.PodRunning && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				uids[p.Name] = p.UID
			} else {
				other = &pods.Items[i]
			}
		}
		seen := fmt.Sprintf("%d of %d run", len(uids), len(pods.Items))
		if other != nil {
			now := other.Status
			seen += fmt.Sprintf("; %s is %s on node %q: %s %s %v", other.Name, now.Phase, other.Spec.NodeName, now.Reason, now.Message, now.Conditions)
		}
		return len(uids) == count && len(pods.Items) == count, seen
	})
	return uids
}

// TokensOf waits for the Secret with a pod's tokens at milan.
func (s *Shared) TokensOf(t *testing.T, namespace, pod string) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{}
	fixture.Await(t, fixture.Patience, "the tokens of pod "+pod, func(ctx context.Context) (bool, string) {
		err := s.Milan.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: reflection.TokenSecretName(pod)}, secret)
		return err == nil, fmt.Sprint(err)
	})
	return secret
}
