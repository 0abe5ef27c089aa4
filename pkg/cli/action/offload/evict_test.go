package offload_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/cli/action/offload"
	"liqo.io/liqo/pkg/cli/failure"
	"liqo.io/liqo/pkg/cli/fixture"
	"liqo.io/liqo/pkg/cli/progress"
)

// A namespace was offloaded with LocalAndRemote; two pods run at home, one on a virtual node, and one there has ended.
func TestPodsThatRunWhereNewOnesMayNot(t *testing.T) {
	pod := func(name, node string, phase corev1.PodPhase) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "u"}, Spec: corev1.PodSpec{NodeName: node}, Status: corev1.PodStatus{Phase: phase}}
	}
	objects := []client.Object{
		namespace("shop"),
		&offloadingv1beta1.NamespaceOffloading{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "offloading"}, Spec: spec},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "rome-1"}},
		&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "milan", Labels: map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}}},
		pod("home-1", "rome-1", corev1.PodRunning), pod("home-2", "rome-1", corev1.PodRunning), pod("away", "milan", corev1.PodRunning),
		pod("over", "milan", corev1.PodSucceeded), pod("waiting", "", corev1.PodPending),
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "bank", Name: "away"}, Spec: corev1.PodSpec{NodeName: "milan"}},
	}
	local, remote, both := offloadingv1beta1.LocalPodOffloadingStrategyType, offloadingv1beta1.RemotePodOffloadingStrategyType, offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType
	budget := func(names ...string) func(client.Object) error {
		return func(pod client.Object) error {
			for _, name := range names {
				if pod.GetName() == name {
					return apierrors.NewTooManyRequests("the disruption budget needs 1 healthy pods", 10)
				}
			}
			return nil
		}
	}
	once := func() func(client.Object) error {
		asked := map[string]bool{}
		return func(pod client.Object) error {
			if !asked[pod.GetName()] {
				asked[pod.GetName()] = true
				return apierrors.NewTooManyRequests("the disruption budget needs 1 healthy pods", 10)
			}
			return nil
		}
	}
	const offloadedAgain, wrote = "rome: done: Namespace shop offloaded to milan", "update NamespaceOffloading shop/offloading (cluster rome)"
	cases := map[string]struct {
		strategy offloadingv1beta1.PodOffloadingStrategyType
		evict    bool
		budget   func(client.Object) error
		missing  []string
		lines    []string
		writes   []string
		code     failure.Code
		refused  string
	}{
		"stay, and are counted": {strategy: remote, writes: []string{wrote}, lines: []string{offloadedAgain,
			"rome: warning: 2 pods (shop/home-1, shop/home-2) of namespace shop still run where new ones may not: run the same command with --evict to evict them"}},
		"stay, and cannot be seen": {strategy: remote, missing: []string{"list nodes"}, writes: []string{wrote}, lines: []string{offloadedAgain,
			"rome: warning: the pod offloading strategy of namespace shop is now Remote: pods that already run elsewhere stay where they are"}},
		"there are none":                {strategy: both, lines: []string{offloadedAgain}},
		"there are none, whoever looks": {strategy: both, missing: []string{"list nodes"}, lines: []string{offloadedAgain}},
		"there are none to evict":       {strategy: both, evict: true, lines: []string{offloadedAgain}},
		"come home": {strategy: local, evict: true, writes: []string{wrote, "eviction of Pod shop/away (cluster rome)"},
			lines: []string{offloadedAgain, "rome: done: 1 pod (shop/away) evicted"}},
		"go away": {strategy: remote, evict: true, writes: []string{wrote, "eviction of Pod shop/home-1 (cluster rome)", "eviction of Pod shop/home-2 (cluster rome)"},
			lines: []string{offloadedAgain, "rome: done: 2 pods (shop/home-1, shop/home-2) evicted"}},
		"are held by a budget for a while": {strategy: local, evict: true, budget: once(), writes: []string{wrote, "eviction of Pod shop/away (cluster rome)"},
			lines: []string{offloadedAgain, "rome: Evicting pods of namespace shop: waiting: a PodDisruptionBudget holds 1 pod (shop/away)", "rome: done: 1 pod (shop/away) evicted"}},
		"are held by a budget": {strategy: remote, evict: true, budget: budget("home-2"), writes: []string{wrote, "eviction of Pod shop/home-1 (cluster rome)"},
			code: failure.Timeout, refused: "timed out waiting for the pods to be evicted: a PodDisruptionBudget holds 1 pod (shop/home-2): " +
				"run the same command again to continue, with a longer --timeout if it needs one"},
		"must not be evicted": {strategy: local, evict: true, missing: []string{"create pods/eviction in namespace shop"}, code: failure.Precondition,
			refused: "you are not allowed to: create pods/eviction in namespace shop (cluster rome): " +
				"ask an administrator of the cluster for them; the ClusterRole cluster-admin has all that liqoctl needs"},
		"are kept by a policy": {strategy: local, evict: true, writes: []string{wrote}, code: failure.Failed,
			budget: func(client.Object) error {
				return apierrors.NewForbidden(corev1.Resource("pods"), "away", errors.New("nobody evicts it"))
			},
			refused: `evicting Pod shop/away (cluster rome): pods "away" is forbidden: nobody evicts it: see what forbids it, and run the same command again`},
	}
	for sentence, test := range cases {
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			copies := make([]client.Object, len(objects))
			for i := range objects {
				copies[i] = objects[i].DeepCopyObject().(client.Object)
			}
			cluster := fixture.New(t, fixture.Options{Name: "rome", ClusterID: "rome", Objects: copies, Missing: test.missing, Evict: test.budget,
				React: answering(t, offloadingv1beta1.ReadyOffloadingPhaseType, corev1.ConditionTrue)})
			if test.strategy == both {
				present := &offloadingv1beta1.NamespaceOffloading{}
				if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "shop", Name: "offloading"}, present); err != nil {
					t.Fatal(err)
				}
				answering(t, offloadingv1beta1.ReadyOffloadingPhaseType, corev1.ConditionTrue)(t.Context(), cluster.Client, present)
			}
			recorder, want, timeout := &progress.Recorder{}, spec, 20*time.Second
			want.PodOffloadingStrategy = test.strategy
			if test.code == failure.Timeout {
				timeout = 2 * time.Second
			}
			_, err := offload.Namespace(t.Context(), offload.Options{
				Cluster: cluster.Cluster, Namespaces: []string{"shop"}, Spec: want, Evict: test.evict, Timeout: timeout, Observer: recorder})
			if failure.CodeOf(err) != test.code || err != nil && err.Error() != test.refused {
				t.Fatalf("got %v", err)
			}
			if diff := cmp.Diff(test.lines, recorder.Lines()); err == nil && diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(test.writes, cluster.Writes()); diff != "" {
				t.Error(diff)
			}
		})
	}
}
