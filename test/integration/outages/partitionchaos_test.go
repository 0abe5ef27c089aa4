package outages

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

const (
	// partitionRounds says how often the link is cut; without it never.
	partitionRounds = "LIQO_CHAOS_PARTITIONS"
	// partitionSeed repeats a run.
	partitionSeed = "LIQO_CHAOS_PARTITIONS_SEED"
	// longest is how long the link stays cut at most, but for some seconds: longer than until a fenced pod is let go.
	longest = 150 * time.Second
)

// replicas of a StatefulSet whose pods are fenced, and those of them that run anywhere, by what they stand for at home.
type replicas struct {
	namespace, node string
	count           int32
}

// twice names a replica that runs at home and at the provider at the same time, as different pods; empty if none does.
func (r *replicas) twice(ctx context.Context) (string, error) {
	home, away := &corev1.PodList{}, &corev1.PodList{}
	// The provider is read first: what starts at home afterwards is not seen to run there before it does.
	if err := env.Milan.Client.List(ctx, away, client.InNamespace(r.namespace), client.MatchingLabels{"app": "fenced"}); err != nil {
		return "", err
	}
	if err := env.Rome.Client.List(ctx, home, client.InNamespace(r.namespace), client.MatchingLabels{"app": "fenced"}); err != nil {
		return "", err
	}
	runs := map[string]string{}
	for _, p := range away.Items {
		if p.Status.Phase == corev1.PodRunning {
			runs[p.Name] = p.Annotations[corev1beta1.OriginUIDAnnotation]
		}
	}
	for _, p := range home.Items {
		if origin := runs[p.Name]; origin != "" && p.Spec.NodeName != r.node && p.Status.Phase == corev1.PodRunning && string(p.UID) != origin {
			return fmt.Sprintf("%s runs at home as %s and at the provider for %s", p.Name, p.UID, origin), nil
		}
	}
	return "", nil
}

// The link is cut at random moments for a random time. No fenced pod runs twice at any moment, a pod that finished meanwhile shows that and is
// not run again, and after each cut all replicas run.
func TestPartitionsAtRandomMoments(t *testing.T) {
	rounds, err := strconv.Atoi(os.Getenv(partitionRounds))
	if err != nil {
		t.Skipf("%s is not set; make chaos sets it", partitionRounds)
	}
	seed, err := strconv.ParseUint(os.Getenv(partitionSeed), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%s=%d repeats this run", partitionSeed, seed)
	random := rand.New(rand.NewPCG(seed, 0))
	w := env.Peered(t)
	r := &replicas{namespace: env.OffloadedAs(t, world.InStrategy(offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType, corev1.NodeSelector{})), node: w.Node, count: 3}
	fixture.Must(t, "creating a StatefulSet", env.Rome.Client.Create(t.Context(), fencedSet(r)))
	world.AwaitPods(t, env.Rome, r.namespace, int(r.count))
	for round := range rounds {
		done := asking(r.namespace, fmt.Sprintf("done-%d", round), "fence=60s")
		done.Spec.RestartPolicy, done.Spec.NodeName = corev1.RestartPolicyNever, w.Node
		fixture.Must(t, "creating a pod that will finish", env.Rome.Client.Create(t.Context(), done))
		env.AwaitPod(t, done, "the pod that will finish to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		start := env.Milan.Recorder.Now(t)
		r.watch(t, time.Duration(random.Int64N(int64(longest/10))))
		env.Milan.Link.Cut()
		r.watch(t, time.Duration(random.Int64N(int64(30*time.Second))))
		finish(t, env.RemoteOf(t, done))
		r.watch(t, time.Duration(random.Int64N(int64(longest))))
		env.Milan.Link.Mend()
		env.AwaitNode(t, true)
		r.settled(t)
		env.AwaitPod(t, done, "the pod that finished to show it", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodSucceeded })
		for _, write := range env.Milan.Recorder.Since(t, start, fixture.OfLiqo) {
			if write.Namespace == r.namespace && write.Verb == "create" && write.Resource == "pods" && write.Name == done.Name {
				t.Errorf("it ran again: %s", write)
			}
		}
		fixture.Must(t, "deleting the pod that finished", env.Rome.Client.Delete(t.Context(), done))
		world.AwaitGone(t, env.Rome, done)
	}
}

// finish ends a pod at the provider, as its kubelet does.
func finish(t *testing.T, remote *corev1.Pod) {
	t.Helper()
	ended := metav1.Now().UTC().Format(time.RFC3339)
	env.Lie(t, remote, map[string]any{"phase": "Succeeded", "containerStatuses": []map[string]any{{"name": "a", "image": "b", "imageID": "", "ready": false,
		"restartCount": 0, "state": map[string]any{"terminated": map[string]any{"exitCode": 0, "reason": "Completed", "startedAt": ended, "finishedAt": ended}}}}})
}

// watch looks for a replica that runs twice, as long as it is told to.
func (r *replicas) watch(t *testing.T, period time.Duration) {
	t.Helper()
	end := time.Now().Add(period)
	fixture.Await(t, period+fixture.Patience, "the time to pass", func(ctx context.Context) (bool, string) {
		r.once(ctx, t)
		return time.Now().After(end), "it passes"
	})
}

func (r *replicas) once(ctx context.Context, t *testing.T) {
	t.Helper()
	twice, err := r.twice(ctx)
	if err != nil {
		t.Logf("looking for replicas: %v", err)
	}
	if twice != "" {
		t.Fatal(twice)
	}
}

// settled waits until all replicas run.
func (r *replicas) settled(t *testing.T) {
	t.Helper()
	set := &appsv1.StatefulSet{}
	fixture.Await(t, 2*longest, "all replicas to run", func(ctx context.Context) (bool, string) {
		r.once(ctx, t)
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: "fenced"}, set)
		return err == nil && set.Status.ReadyReplicas == r.count, fmt.Sprintf("%+v, %v", set.Status, err)
	})
}

// fencedTemplate is of pods that prefer the virtual node and tolerate its loss for as long as a fence of a minute needs.
func fencedTemplate() corev1.PodTemplateSpec {
	p := asking("", "", "fence=60s")
	for i := range p.Spec.Tolerations {
		p.Spec.Tolerations[i].TolerationSeconds = ptr.To[int64](125)
	}
	p.Labels = map[string]string{"app": "fenced"}
	p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 100,
		Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1beta1.TypeLabel, Operator: corev1.NodeSelectorOpIn, Values: []string{corev1beta1.VirtualNodeType}}}}}}}}
	return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: p.Labels, Annotations: p.Annotations}, Spec: p.Spec}
}

func fencedSet(r *replicas) *appsv1.StatefulSet {
	return &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "fenced"}, Spec: appsv1.StatefulSetSpec{Replicas: &r.count,
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "fenced"}}, PodManagementPolicy: appsv1.ParallelPodManagement, Template: fencedTemplate()}}
}
