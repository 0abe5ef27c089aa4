package outages

import (
	"context"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// partitionPatience is longer than the shortest time after which a pod is stopped, and than after which that is known at home.
const partitionPatience = 4 * time.Minute

// asking is a pod that says what its provider does without signs of life, and tolerates lost nodes for ever.
func asking(namespace, name, value string) *corev1.Pod {
	p := world.Pod(namespace, name)
	p.Annotations = map[string]string{offloadingv1beta1.OnPartitionAnnotation: value}
	p.Spec.TerminationGracePeriodSeconds = ptr.To[int64](1)
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		p.Spec.Tolerations = append(p.Spec.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute})
	}
	return p
}

// runsAtMilan tells whether a pod of that name runs at the provider.
func runsAtMilan(ctx context.Context, namespace, name string) (bool, error) {
	p := &corev1.Pod{}
	err := env.Milan.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, p)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && p.Status.Phase == corev1.PodRunning, err
}

// awaitSign waits until the provider took a sign of life that is younger than the given time.
func awaitSign(t *testing.T, after time.Time) {
	t.Helper()
	fixture.Await(t, 2*fixture.Patience, "a sign of life", func(ctx context.Context) (bool, string) {
		leases := &coordinationv1.LeaseList{}
		err := env.Milan.Client.List(ctx, leases, client.InNamespace(fixture.ProviderNamespace))
		for _, lease := range leases.Items {
			if lease.Spec.RenewTime != nil && lease.Spec.RenewTime.After(after) {
				return true, ""
			}
		}
		return false, fmt.Sprint(len(leases.Items), " Leases, ", err)
	})
}

// Each workload says what becomes of it without its consumer: kept pods run on, the others are stopped, and a pod that was deleted at home is
// gone there once it must have been stopped, not before. When the link is back what was stopped is over, and nothing was started twice.
func TestOnPartition(t *testing.T) {
	env.Peered(t)
	namespace := env.Offloaded(t)
	pods := map[string]*corev1.Pod{}
	for name, value := range map[string]string{"kept": "keep", "stopped": "stop=60s", "fenced": "fence=60s", "fenced-deleted": "fence=60s", "kept-deleted": "keep"} {
		pods[name] = asking(namespace, name, value)
		fixture.Must(t, "creating pod "+name, env.Rome.Client.Create(t.Context(), pods[name]))
	}
	world.AwaitPods(t, env.Rome, namespace, len(pods))
	before := world.AwaitPods(t, env.Milan, namespace, len(pods))
	awaitSign(t, time.Now())

	mend := env.Cut(t)
	for _, name := range []string{"fenced-deleted", "kept-deleted"} {
		fixture.Must(t, "deleting pod "+name, env.Rome.Client.Delete(t.Context(), world.Pod(namespace, name)))
	}
	fixture.Await(t, partitionPatience, "the fenced pod that was deleted to be gone at home, after it was stopped at the provider", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(pods["fenced-deleted"]), &corev1.Pod{})
		runs, milan := runsAtMilan(ctx, namespace, "fenced-deleted")
		if apierrors.IsNotFound(err) && (runs || milan != nil) {
			t.Fatalf("it is gone at home, and at the provider it runs: %t, %v", runs, milan)
		}
		return apierrors.IsNotFound(err), fmt.Sprint("it is there: ", err, "; runs at the provider: ", runs, milan)
	})
	for name, want := range map[string]bool{"kept": true, "kept-deleted": true, "stopped": false, "fenced": false} {
		if runs, err := runsAtMilan(t.Context(), namespace, name); runs != want || err != nil {
			t.Errorf("pod %s runs at the provider: %t, %v", name, runs, err)
		}
		if err := env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(pods[name]), &corev1.Pod{}); err != nil {
			t.Errorf("pod %s at home: %v", name, err)
		}
	}
	mend()

	for _, name := range []string{"stopped", "fenced"} {
		env.AwaitPod(t, pods[name], "pod "+name+" to have failed", func(p *corev1.Pod) bool {
			return p.Status.Phase == corev1.PodFailed && p.Status.Reason == offloadingv1beta1.ReasonStoppedOnPartition
		})
	}
	world.AwaitGone(t, env.Rome, pods["kept-deleted"])
	env.Settled(t)
	left := &corev1.PodList{}
	fixture.Must(t, "listing the pods at the provider", env.Milan.Client.List(t.Context(), left, client.InNamespace(namespace)))
	if len(left.Items) != 1 || left.Items[0].Name != "kept" || left.Items[0].UID != before["kept"] {
		t.Errorf("at the provider there are %d pods after all", len(left.Items))
	}
}

// A pod with tolerationSeconds on a lost provider is replaced at home; when the provider is back exactly one runs.
func TestAnEvictionIsSeenAtALostProvider(t *testing.T) {
	w := env.Peered(t)
	namespace := env.OffloadedAs(t, world.InStrategy(offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType, corev1.NodeSelector{}))
	labels := map[string]string{"app": "web"}
	template := corev1.PodSpec{TerminationGracePeriodSeconds: ptr.To[int64](1), Containers: []corev1.Container{{Name: "a", Image: "b"}},
		Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100,
			Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "liqo.io/type", Operator: corev1.NodeSelectorOpIn, Values: []string{"virtual-node"}}}}}}}}}
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		template.Tolerations = append(template.Tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: ptr.To[int64](5)})
	}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"}, Spec: appsv1.DeploymentSpec{Replicas: ptr.To[int32](1),
		Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: template}}}
	fixture.Must(t, "creating a Deployment", env.Rome.Client.Create(t.Context(), web))
	world.AwaitPods(t, env.Rome, namespace, 1)
	if runs := len(world.AwaitPods(t, env.Milan, namespace, 1)); runs != 1 {
		t.Fatalf("%d pods run at the provider, so this proves nothing", runs)
	}

	mend := env.Cut(t)
	fixture.Await(t, 3*fixture.Patience, "a replacement to run at home", func(ctx context.Context) (bool, string) {
		pods, home := &corev1.PodList{}, 0
		err := env.Rome.Client.List(ctx, pods, client.InNamespace(namespace))
		for _, p := range pods.Items {
			if p.Spec.NodeName != "" && p.Spec.NodeName != w.Node && p.Status.Phase == corev1.PodRunning {
				home++
			}
		}
		return home == 1, fmt.Sprint(home, " of ", len(pods.Items), " run at home, ", err)
	})
	mend()

	fixture.Await(t, 2*fixture.Patience, "the pod at the provider to be gone", func(ctx context.Context) (bool, string) {
		pods := &corev1.PodList{}
		err := env.Milan.Client.List(ctx, pods, client.InNamespace(namespace))
		return err == nil && len(pods.Items) == 0, fmt.Sprint(len(pods.Items), err)
	})
	world.AwaitPods(t, env.Rome, namespace, 1)
	env.Settled(t)
	world.AwaitPods(t, env.Rome, namespace, 1)
}
