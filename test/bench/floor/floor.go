// Package floor is the least that a virtual kubelet can do: one pod created at the provider for each pod bound to its node,
// and one write of the status back when that pod is ready. It checks nothing, repairs nothing and knows one namespace of each
// name in both clusters. It is gear for measuring: what Liqo costs beyond it is the price of Liqo's features.
package floor

import (
	"context"
	"fmt"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
)

const (
	// Node is the name of the stub's Node; its pods carry a toleration and a selector for it.
	Node = "floor"
	// Label marks the pods at the provider.
	Label = "bench.liqo.io/floor"

	workers  = 32
	interval = 10 * time.Second
)

type stub struct {
	home, away kubernetes.Interface
	homePods   cache.SharedIndexInformer
	awayPods   cache.SharedIndexInformer
	queue      workqueue.TypedRateLimitingInterface[string]
}

// Run plays the node until the context ends.
func Run(ctx context.Context, home, away kubernetes.Interface) error {
	filtered := func(c kubernetes.Interface, tweak func(*metav1.ListOptions)) cache.SharedIndexInformer {
		return informers.NewSharedInformerFactoryWithOptions(c, 0, informers.WithTweakListOptions(tweak)).Core().V1().Pods().Informer()
	}
	s := &stub{
		home: home, away: away,
		homePods: filtered(home, func(o *metav1.ListOptions) { o.FieldSelector = "spec.nodeName=" + Node }),
		awayPods: filtered(away, func(o *metav1.ListOptions) { o.LabelSelector = Label }),
		queue:    workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](10*time.Millisecond, time.Second)),
	}
	if err := s.register(ctx); err != nil {
		return err
	}
	add := func(o any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(o); err == nil {
			s.queue.Add(key)
		}
	}
	for _, informer := range []cache.SharedIndexInformer{s.homePods, s.awayPods} {
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: add, UpdateFunc: func(_, o any) { add(o) }, DeleteFunc: add}); err != nil {
			return fmt.Errorf("watching pods: %w", err)
		}
		go informer.RunWithContext(ctx)
	}
	if !cache.WaitForCacheSync(ctx.Done(), s.homePods.HasSynced, s.awayPods.HasSynced) {
		return ctx.Err()
	}
	var group sync.WaitGroup
	for range workers {
		group.Go(func() { s.work(ctx) })
	}
	s.heartbeat(ctx)
	s.queue.ShutDown()
	group.Wait()
	return nil
}

func (s *stub) work(ctx context.Context) {
	for {
		key, end := s.queue.Get()
		if end {
			return
		}
		if err := s.step(ctx, key); err != nil {
			s.queue.AddRateLimited(key)
		} else {
			s.queue.Forget(key)
		}
		s.queue.Done(key)
	}
}

func (s *stub) step(ctx context.Context, key string) error {
	home, away := pod(s.homePods, key), pod(s.awayPods, key)
	at := metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}
	switch {
	case home == nil:
		return nil
	case home.DeletionTimestamp != nil && away == nil:
		return gone(s.home.CoreV1().Pods(home.Namespace).Delete(ctx, home.Name, at))
	case home.DeletionTimestamp != nil && away.DeletionTimestamp == nil:
		return gone(s.away.CoreV1().Pods(away.Namespace).Delete(ctx, away.Name, at))
	case home.DeletionTimestamp != nil:
		return nil
	case away == nil:
		made := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: home.Name, Namespace: home.Namespace, Labels: map[string]string{Label: "true"}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: home.Spec.Containers[0].Name, Image: home.Spec.Containers[0].Image,
				Resources: home.Spec.Containers[0].Resources}}, AutomountServiceAccountToken: ptr.To(false)}}
		_, err := s.away.CoreV1().Pods(home.Namespace).Create(ctx, made, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	case away.Status.Phase == corev1.PodRunning && home.Status.Phase != corev1.PodRunning:
		changed := home.DeepCopy()
		changed.Status = away.Status
		_, err := s.home.CoreV1().Pods(home.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
		return gone(err)
	}
	return nil
}

func gone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func pod(informer cache.SharedIndexInformer, key string) *corev1.Pod {
	object, found, err := informer.GetStore().GetByKey(key)
	if err != nil || !found {
		return nil
	}
	return object.(*corev1.Pod)
}

// register makes the Node and its Lease.
func (s *stub) register(ctx context.Context) error {
	capacity := corev1.ResourceList{"cpu": resource.MustParse("10000"), "memory": resource.MustParse("10000Gi"), "pods": resource.MustParse("100000")}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: Node, Labels: map[string]string{Label: "true"}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: Label, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity, Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), LastTransitionTime: metav1.Now()}}},
	}
	if _, err := s.home.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering the floor's Node: %w", err)
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: Node}, Spec: coordinationv1.LeaseSpec{
		HolderIdentity: ptr.To(Node), LeaseDurationSeconds: ptr.To[int32](40), RenewTime: ptr.To(metav1.NowMicro())}}
	if _, err := s.home.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(ctx, lease, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("registering the floor's Lease: %w", err)
	}
	return nil
}

// heartbeat renews the Lease until the context ends.
func (s *stub) heartbeat(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		leases := s.home.CoordinationV1().Leases(corev1.NamespaceNodeLease)
		if lease, err := leases.Get(ctx, Node, metav1.GetOptions{}); err == nil {
			lease.Spec.RenewTime = ptr.To(metav1.NowMicro())
			_, _ = leases.Update(ctx, lease, metav1.UpdateOptions{}) // the next one is soon
		}
	}
}
