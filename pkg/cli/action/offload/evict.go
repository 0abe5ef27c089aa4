package offload

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"liqo.io/liqo/pkg/cli/await"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/offloaded"
	"liqo.io/liqo/pkg/cli/progress"
	"liqo.io/liqo/pkg/cli/target"
	"liqo.io/liqo/pkg/placement"
)

// evictionRights are what a user needs to see which pods of a namespace violate its strategy, and to evict them.
func evictionRights(namespace string) []target.Right {
	return append(seeingRights(namespace), target.Rights("", "pods/eviction", namespace, "create")...)
}

func seeingRights(namespace string) []target.Right {
	return append(target.Rights("", "nodes", "", "list"), target.Rights("", "pods", namespace, "list")...)
}

// violators are the pods of a namespace that run where its rules do not let them start any more.
func violators(ctx context.Context, cluster *target.Cluster, namespace string, rules placement.PodRules) ([]corev1.Pod, error) {
	nodes, pods := &corev1.NodeList{}, &corev1.PodList{}
	if err := cluster.List(ctx, nodes); err != nil {
		return nil, err
	}
	if err := cluster.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return nil, err
	}
	byName := map[string]*corev1.Node{}
	for i := range nodes.Items {
		byName[nodes.Items[i].Name] = &nodes.Items[i]
	}
	var found []corev1.Pod
	for i := range pods.Items {
		node := byName[pods.Items[i].Spec.NodeName]
		if node == nil || !pods.Items[i].DeletionTimestamp.IsZero() {
			continue
		}
		violates, err := placement.Violates(&pods.Items[i], node, rules)
		if err != nil {
			return nil, err
		}
		if violates {
			found = append(found, pods.Items[i])
		}
	}
	return found, nil
}

// settle deals with the pods that run where the namespace's new rules do not let them: it evicts them if asked to, else it says how many
// there are. Who may not see them is told that there may be some, if the strategy became stricter.
func settle(ctx context.Context, o Options, namespace string, rules placement.PodRules, stricter bool) error {
	if !o.Evict {
		missing, err := o.Cluster.Missing(ctx, seeingRights(namespace))
		if err != nil {
			return err
		}
		if len(missing) > 0 {
			if stricter {
				o.Observer.Note(progress.Warning, o.Cluster.Name, fmt.Sprintf(
					"the pod offloading strategy of namespace %s is now %s: pods that already run elsewhere stay where they are", namespace, rules.Strategy))
			}
			return nil
		}
	}
	pods, err := violators(ctx, o.Cluster, namespace, rules)
	if err != nil || len(pods) == 0 {
		return err
	}
	if !o.Evict {
		o.Observer.Note(progress.Warning, o.Cluster.Name, fmt.Sprintf(
			"%s of namespace %s still run where new ones may not: run the same command with --evict to evict them", counted(pods), namespace))
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return progress.Run(ctx, o.Observer, o.Cluster.Name, "Evicting pods of namespace "+namespace, func(ctx context.Context, task progress.Task) (string, error) {
		all := counted(pods)
		err := await.Until(ctx, task, "the pods to be evicted", func(ctx context.Context) (bool, string, error) {
			var err error
			pods, err = evict(ctx, o.Cluster, pods)
			return len(pods) == 0, "a PodDisruptionBudget holds " + counted(pods), err
		})
		return all + " evicted", err
	})
}

// evict asks each pod to leave, and returns those that a PodDisruptionBudget does not let go yet, and after an error all that were not asked.
func evict(ctx context.Context, cluster *target.Cluster, pods []corev1.Pod) ([]corev1.Pod, error) {
	var held []corev1.Pod
	for i := range pods {
		pod := &pods[i]
		err := cluster.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
			ObjectMeta:    metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
			DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pod.UID}},
		})
		switch {
		case apierrors.IsTooManyRequests(err):
			held = append(held, *pod)
		case apierrors.IsForbidden(err):
			return append(held, pods[i:]...), failure.New(failure.Failed, "see what forbids it, and run the same command again",
				"evicting %s: %w", cluster.Describe(pod), err)
		// A conflict means that another pod has taken the name.
		case err != nil && !target.Absent(err) && !apierrors.IsConflict(err):
			return append(held, pods[i:]...), fmt.Errorf("evicting %s: %w", cluster.Describe(pod), err)
		}
	}
	return held, nil
}

func counted(pods []corev1.Pod) string {
	names := make([]string, len(pods))
	for i := range pods {
		names[i] = pods[i].Namespace + "/" + pods[i].Name
	}
	slices.Sort(names)
	return offloaded.Counted("pod", names)
}
