package offloading

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/integration/fixture"
	"liqo.io/liqo/test/integration/world"
)

// With strategy Local pods stay at home, also one that asks for a virtual node, and their Services are used at the provider.
func TestStrategyLocalOffloadsServicesAlone(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	namespace := env.OffloadedAs(t, world.InStrategy(offloadingv1beta1.LocalPodOffloadingStrategyType, corev1.NodeSelector{}))
	labels := map[string]string{"app": "web"}
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: corev1.ServiceSpec{Selector: labels, Ports: []corev1.ServicePort{{Port: 80}}}}
	home, away := world.Pod(namespace, "home"), world.Pod(namespace, "away")
	home.Labels = labels
	away.Spec.NodeSelector = map[string]string{corev1beta1.TypeLabel: corev1beta1.VirtualNodeType}
	for _, object := range []client.Object{service, away, home} {
		fixture.Must(t, "creating "+object.GetName(), env.Rome.Client.Create(t.Context(), object))
	}
	env.AwaitPod(t, home, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" })
	if home.Spec.NodeName == virtual {
		t.Error("the pod runs on the virtual node")
	}
	fixture.Await(t, 2*fixture.Patience, "the pod at home to be an endpoint of the Service at the provider", func(ctx context.Context) (bool, string) {
		_, addresses, err := world.SlicesOf(ctx, env.Milan, namespace, "web")
		return err == nil && len(addresses) == 1 && addresses[0] == home.Status.PodIP, fmt.Sprint(addresses, err, "; ", env.Became(ctx, namespace))
	})
	env.AwaitPod(t, away, "to be refused a node", func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return p.Spec.NodeName == ""
			}
		}
		return false
	})
	pods := &corev1.PodList{}
	fixture.Must(t, "listing the provider's pods", env.Milan.Client.List(t.Context(), pods, client.InNamespace(namespace)))
	if len(pods.Items) != 0 {
		t.Errorf("%d pods are at the provider", len(pods.Items))
	}
}

// A twin has the name that its user selected, and what is reflected is there.
func TestATwinOfASelectedName(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	twin := fixture.Unique("chosen")
	namespace := env.OffloadedAs(t, offloadingv1beta1.NamespaceOffloadingSpec{
		NamespaceMappingStrategy: offloadingv1beta1.SelectedNameMappingStrategyType, RemoteNamespaceName: twin,
		PodOffloadingStrategy: offloadingv1beta1.RemotePodOffloadingStrategyType,
	})
	one := world.Pod(namespace, "one")
	fixture.Must(t, "creating a ConfigMap", env.Rome.Client.Create(t.Context(), world.WordMap(namespace, "words", "a")))
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), one))
	world.AwaitPods(t, env.Rome, namespace, 1)
	world.AwaitPods(t, env.Milan, twin, 1)
	world.AwaitThere(t, env.Milan, world.WordMap(twin, "words", "a"))
	err := env.Milan.Client.Get(t.Context(), client.ObjectKey{Name: namespace}, &corev1.Namespace{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("a namespace of the home name is at the provider, too: error %v", err)
	}
}

// A selector that excludes clusters excludes them, and no others.
func TestASelectorThatExcludesClusters(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	but := func(cluster string) corev1.NodeSelector {
		return corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
			Key: corev1beta1.RemoteClusterIDLabel, Operator: corev1.NodeSelectorOpNotIn, Values: []string{cluster},
		}}}}}
	}
	taken := env.OffloadedTo(t, but("naples"))
	world.AwaitThere(t, env.Milan, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: taken}})
	one := world.Pod(taken, "one")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), one))
	env.AwaitPod(t, one, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	if one.Spec.NodeName != virtual {
		t.Errorf("the pod runs on %s, want %s", one.Spec.NodeName, virtual)
	}

	left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fixture.Unique("shop")}}
	fixture.Must(t, "creating a namespace", env.Rome.Client.Create(t.Context(), left))
	env.Rome.AwaitServiceAccount(t, left.Name)
	offloading := &offloadingv1beta1.NamespaceOffloading{
		ObjectMeta: metav1.ObjectMeta{Namespace: left.Name, Name: offloadingv1beta1.NamespaceOffloadingName},
		Spec: offloadingv1beta1.NamespaceOffloadingSpec{
			NamespaceMappingStrategy: offloadingv1beta1.EnforceSameNameMappingStrategyType,
			PodOffloadingStrategy:    offloadingv1beta1.LocalAndRemotePodOffloadingStrategyType, ClusterSelector: but("milan"),
		},
	}
	fixture.Must(t, "offloading it", env.Rome.Client.Create(t.Context(), offloading))
	fixture.Await(t, fixture.Patience, "no cluster to be selected", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKeyFromObject(offloading), offloading)
		return err == nil && offloading.Status.ObservedGeneration == offloading.Generation &&
			offloading.Status.OffloadingPhase == offloadingv1beta1.NoClusterSelectedOffloadingPhaseType, fmt.Sprintf("%+v %v", offloading.Status, err)
	})
	stays := world.Pod(left.Name, "one")
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), stays))
	env.AwaitPod(t, stays, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
	if err := env.Milan.Client.Get(t.Context(), client.ObjectKey{Name: left.Name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) || stays.Spec.NodeName == virtual {
		t.Errorf("the cluster that is excluded has the namespace (error %v), or its pod, which runs on %s", err, stays.Spec.NodeName)
	}
}

// Pods that are to be kept apart are at the provider, too, as their annotation says when they are made. What it says later changes nothing.
func TestAntiAffinityAtTheProvider(t *testing.T) {
	t.Parallel()
	env.Peered(t)
	namespace := env.Offloaded(t)
	// Each of an app of its own: there are few nodes.
	term := func(app string) corev1.PodAffinityTerm {
		return corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}
	}
	preferred := func(weight int32, app string) *corev1.PodAntiAffinity {
		return &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: weight, PodAffinityTerm: term(app)}}}
	}
	for name, tc := range map[string]struct {
		preset string
		own    *corev1.PodAntiAffinity
		want   *corev1.PodAntiAffinity
	}{
		"none":      {own: preferred(7, "none")},
		"soft":      {preset: "soft", want: preferred(1, "soft")},
		"hard":      {preset: "hard", want: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term("hard")}}},
		"propagate": {preset: "propagate", own: preferred(7, "propagate"), want: preferred(7, "propagate")},
	} {
		pod := world.Pod(namespace, name)
		pod.Labels = map[string]string{"app": name}
		if tc.preset != "" {
			pod.Annotations = map[string]string{offloadingv1beta1.AntiAffinityPresetAnnotation: tc.preset}
		}
		if tc.own != nil {
			pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: tc.own}
		}
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), pod))
		env.AwaitPod(t, pod, "to run", func(p *corev1.Pod) bool { return p.Status.Phase == corev1.PodRunning })
		before := env.RemoteOf(t, pod)
		var got *corev1.PodAntiAffinity
		if before.Spec.Affinity != nil {
			got = before.Spec.Affinity.PodAntiAffinity
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: the anti-affinity at the provider (-want +got):\n%s", name, diff)
		}
		// A label that crosses tells when the change was seen.
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:"hard"},"labels":{"seen":%q}}}`, offloadingv1beta1.AntiAffinityPresetAnnotation, time.Now().Format("150405"))
		fixture.Must(t, "changing the annotation", env.Rome.Client.Patch(t.Context(), pod, client.RawPatch(types.MergePatchType, change)))
		fixture.Await(t, fixture.Patience, "the change to cross", func(context.Context) (bool, string) {
			after := env.RemoteOf(t, pod)
			if after.UID != before.UID || cmp.Diff(before.Spec.Affinity, after.Spec.Affinity) != "" {
				t.Errorf("%s: the pod at the provider changed:\n%s", name, cmp.Diff(before.Spec.Affinity, after.Spec.Affinity))
			}
			return after.Labels["seen"] == pod.Labels["seen"], fmt.Sprint(after.Labels)
		})
	}
}

// A pod that all nodes of the provider together have room for, but none of them, is not bound to the virtual node, and says why.
func TestAPodLargerThanAnyNodeStaysAtHome(t *testing.T) {
	t.Parallel()
	virtual := env.Peered(t)
	node := &corev1.Node{}
	fixture.Await(t, fixture.Patience, "the virtual node to say what its largest pod may be", func(ctx context.Context) (bool, string) {
		err := env.Rome.Client.Get(ctx, client.ObjectKey{Name: virtual}, node)
		return err == nil && node.Annotations[offloadingv1beta1.LargestPodAnnotation] != "", fmt.Sprint(node.Annotations, err)
	})
	large := world.Pod(env.Offloaded(t), "large")
	large.Spec.Containers[0].Resources.Requests = world.Quantities("cpu", "65") // simulated nodes have 64
	if room := node.Status.Allocatable.Cpu(); room.Cmp(*large.Spec.Containers[0].Resources.Requests.Cpu()) < 0 {
		t.Fatalf("the virtual node has %s CPUs: this proves nothing", room)
	}
	fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), large))
	env.AwaitPod(t, large, "to say that it is larger than any node", func(p *corev1.Pod) bool {
		for _, c := range p.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && strings.Contains(c.Message, offloadingv1beta1.ReasonLargerThanAnyNode) {
				return p.Spec.NodeName == ""
			}
		}
		return false
	})
	fixture.Must(t, "deleting the pod", env.Rome.Client.Delete(t.Context(), large))
	// From then on it is asked about every pod there, and of no other.
	for namespace, want := range map[string]string{large.Namespace: "true", env.Offloaded(t): ""} {
		small := world.Pod(namespace, "small")
		fixture.Must(t, "creating a pod", env.Rome.Client.Create(t.Context(), small))
		env.AwaitPod(t, small, "to be bound", func(p *corev1.Pod) bool { return p.Spec.NodeName == virtual })
		fixture.Must(t, "reading the pod", env.Rome.Client.Get(t.Context(), client.ObjectKeyFromObject(small), small))
		if got := small.Labels[offloadingv1beta1.SizeCheckedLabel]; got != want {
			t.Errorf("%s: the controller manager was asked about a small pod: %q, want %q", namespace, got, want)
		}
	}
}
