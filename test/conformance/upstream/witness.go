package upstream

import (
	"context"
	"fmt"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
)

// Witness sees which pods of the tests' namespaces start a container, at one cluster.
type Witness struct {
	mu      sync.Mutex
	started map[types.UID]string // to the name of the node
	stop    context.CancelFunc
	ended   func()
}

// NewWitness begins to watch the pods of a cluster.
func NewWitness(ctx context.Context, config *rest.Config) (*Witness, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the pods: %w", err)
	}
	w := &Witness{started: map[types.UID]string{}}
	ctx, w.stop = context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactory(kube, 0)
	w.ended = factory.Shutdown
	pods := factory.Core().V1().Pods().Informer()
	_, err = pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { w.see(o) },
		UpdateFunc: func(_, o any) { w.see(o) },
	})
	if err != nil {
		w.stop()
		return nil, fmt.Errorf("watching pods: %w", err)
	}
	factory.StartWithContext(ctx)
	if !cache.WaitForCacheSync(ctx.Done(), pods.HasSynced) {
		w.stop()
		return nil, fmt.Errorf("listing pods: %w", context.Cause(ctx))
	}
	return w, nil
}

// see notes a pod that started a container.
func (w *Witness) see(object any) {
	pod, ok := object.(*corev1.Pod)
	if !ok || !ofTests(pod.Namespace) || !Started(pod) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.started[pod.UID] = pod.Spec.NodeName
}

// Nodes ends the watch, and returns on which nodes how many pods started.
func (w *Witness) Nodes() map[string]int {
	w.stop()
	w.ended()
	w.mu.Lock()
	defer w.mu.Unlock()
	nodes := map[string]int{}
	for _, node := range w.started {
		nodes[node]++
	}
	return nodes
}

// Started says whether a container of the pod runs or ran.
func Started(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses, pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].State.Running != nil || list[i].State.Terminated != nil || list[i].LastTerminationState.Terminated != nil {
				return true
			}
		}
	}
	return false
}

// ofTests tells the namespaces of tests from those that a cluster and Liqo have anyway.
func ofTests(namespace string) bool {
	return !strings.HasPrefix(namespace, "kube-") && !strings.HasPrefix(namespace, "liqo") && namespace != corev1.NamespaceDefault
}

// virtualNodes returns the names of the cluster's virtual nodes.
func virtualNodes(ctx context.Context, config *rest.Config) (map[string]bool, error) {
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for nodes: %w", err)
	}
	selector := corev1beta1.TypeLabel + "=" + corev1beta1.VirtualNodeType
	list, err := kube.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("listing virtual nodes: %w", err)
	}
	names := map[string]bool{}
	for i := range list.Items {
		names[list.Items[i].Name] = true
	}
	return names, nil
}
