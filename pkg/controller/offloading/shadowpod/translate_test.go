package shadowpod

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
)

// seen says that rome's external range is seen as 10.72.0.0/16.
func seen(given bool) *networkingv1beta1.Configuration {
	ranges := func(pod, external networkingv1beta1.CIDR) networkingv1beta1.ClusterConfig {
		return networkingv1beta1.ClusterConfig{CIDR: networkingv1beta1.ClusterConfigCIDR{Pod: []networkingv1beta1.CIDR{pod}, External: []networkingv1beta1.CIDR{external}}}
	}
	c := &networkingv1beta1.Configuration{
		ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "rome", Labels: map[string]string{corev1beta1.RemoteClusterIDLabel: "rome"}},
		Spec:       networkingv1beta1.ConfigurationSpec{Remote: ranges("10.244.0.0/16", "10.70.0.0/16")},
	}
	if status := ranges("10.62.0.0/16", "10.72.0.0/16"); given {
		c.Status.Remote = &status
	}
	return c
}

// A pod finds its own cluster's API server where the provider sees it; other names are what the consumer says.
func TestTheAPIServersAddressIsTranslated(t *testing.T) {
	names := []string{"kubernetes.default", "kubernetes.default.svc"}
	for name, tc := range map[string]struct {
		off           bool
		configuration []client.Object
		sent          string
		want          string
		ready         string
	}{
		"by the consumer's Configuration": {configuration: []client.Object{seen(true)}, sent: "10.70.0.3", want: "10.72.0.3"},
		"not without a Configuration":     {sent: "10.70.0.3", want: "10.70.0.3"},
		"not without the network":         {off: true, configuration: []client.Object{seen(true)}, sent: "10.70.0.3", want: "10.70.0.3"},
		"not if it is no range of theirs": {configuration: []client.Object{seen(true)}, sent: "203.0.113.7", want: "203.0.113.7"},
		"the pod waits for the ranges":    {configuration: []client.Object{seen(false)}, sent: "10.70.0.3", ready: "False RangesPending"},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := job()
			other := corev1.HostAlias{IP: "10.70.0.3", Hostnames: []string{"db"}}
			shadow.Spec.Pod.HostAliases = []corev1.HostAlias{other, {IP: tc.sent, Hostnames: names}}
			w := newWorld(t, append(tc.configuration, shadow)...)
			w.reconciler.Networking = !tc.off
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if got := w.ready(); got != tc.ready {
				t.Errorf("ready is %q, want %q", got, tc.ready)
			}
			if tc.want == "" {
				if w.pod() != nil {
					t.Error("the pod is there")
				}
				return
			}
			if diff := cmp.Diff([]corev1.HostAlias{other, {IP: tc.want, Hostnames: names}}, w.pod().Spec.HostAliases); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Spreading over a label that no node here has is a preference here, and over one that some node has what the consumer asked for.
func TestSpreadingOverUnknownLabelsIsAPreference(t *testing.T) {
	node := func(name, key string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kubernetes.io/hostname": name, key: "x"}}}
	}
	for name, tc := range map[string]struct {
		key   string
		nodes []client.Object
		given corev1.UnsatisfiableConstraintAction
		want  corev1.UnsatisfiableConstraintAction
	}{
		"a label of the consumer's":    {"garden.example/site", []client.Object{node("a", "rack"), node("b", "rack")}, corev1.DoNotSchedule, corev1.ScheduleAnyway},
		"zones where there are none":   {corev1.LabelTopologyZone, []client.Object{node("a", "rack")}, corev1.DoNotSchedule, corev1.ScheduleAnyway},
		"zones where one node has one": {corev1.LabelTopologyZone, []client.Object{node("a", "rack"), node("b", corev1.LabelTopologyZone)}, corev1.DoNotSchedule, corev1.DoNotSchedule},
		"nodes, whichever there are":   {corev1.LabelHostname, nil, corev1.DoNotSchedule, corev1.DoNotSchedule},
		"a preference":                 {"rack", []client.Object{node("a", "rack")}, corev1.ScheduleAnyway, corev1.ScheduleAnyway},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := job()
			constraint := corev1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: tc.key, WhenUnsatisfiable: tc.given}
			if tc.given == corev1.DoNotSchedule {
				constraint.MinDomains = ptr.To[int32](2) // as an earlier consumer has it
			}
			shadow.Spec.Pod.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{constraint}
			w := newWorld(t, append(tc.nodes, shadow)...)
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if constraint.WhenUnsatisfiable = tc.want; tc.want == corev1.ScheduleAnyway {
				constraint.MinDomains = nil
			}
			if diff := cmp.Diff([]corev1.TopologySpreadConstraint{constraint}, w.pod().Spec.TopologySpreadConstraints); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Whether the consumer's packets come to a pod's node is told on the Pod once they do not, and taken back; nothing is written while nothing is wrong.
func TestAPodThatIsNotReachedSaysSo(t *testing.T) {
	shadow := job()
	shadow.Labels[offloadingv1beta1.OriginLabel] = "rome"
	node := &networkingv1beta1.InternalNode{ObjectMeta: metav1.ObjectMeta{Name: "n1"}}
	w := newWorld(t, shadow, node)
	said := func() string {
		t.Helper()
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
		for _, c := range w.pod().Status.Conditions {
			if c.Type == offloadingv1beta1.ReachableCondition {
				return string(c.Status) + " " + c.Reason
			}
		}
		return ""
	}
	silent := func(to ...string) {
		t.Helper()
		node.Status.Silent = to
		if err := w.Update(t.Context(), node); err != nil {
			t.Fatal(err)
		}
	}
	w.reconciler.Networking = true
	said()
	w.set(func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning })
	for _, step := range []struct {
		silent []string
		want   string
	}{{nil, ""}, {[]string{"naples"}, ""}, {[]string{"naples", "rome"}, "False OverlaySilent"}, {nil, "True "}, {[]string{"rome"}, "False OverlaySilent"}} {
		silent(step.silent...)
		before := w.Writes
		if got := said(); got != step.want {
			t.Errorf("with gateways to %v silent it says %q, want %q", step.silent, got, step.want)
		}
		if step.want == "" && w.Writes != before {
			t.Errorf("%d writes while nothing is wrong", w.Writes-before)
		}
		again := w.Writes
		if said(); w.Writes != again {
			t.Errorf("%d more writes", w.Writes-again)
		}
	}
	silent()
	w.reconciler.Networking = false
	if got := said(); got != "False OverlaySilent" {
		t.Errorf("without the network it says %q", got)
	}

	requests := watch.Requests(t.Context(), w.Client, &corev1.PodList{}, onNode(node)...)
	if len(requests) != 1 || requests[0].Name != w.pod().Name {
		t.Errorf("the node wakes %v", requests)
	}
	changed := node.DeepCopy()
	changed.Status.Silent = []string{"rome"}
	same := node.DeepCopy()
	same.Status.PodRanges = []networkingv1beta1.CIDR{"10.0.0.0/24"}
	for now, want := range map[*networkingv1beta1.InternalNode]bool{changed: true, same: false} {
		if got := falling().Update(event.UpdateEvent{ObjectOld: node, ObjectNew: now}); got != want {
			t.Errorf("a change to %+v wakes somebody: %t", now.Status, got)
		}
	}
}

// A pod is ready here when its readiness gates are met in its own cluster: one gate of the Pod stands for all, and its condition follows what the
// ShadowPod says. A pod without gates, and one that was made before there was this one, is left alone.
func TestReadinessGatesReachThePod(t *testing.T) {
	gates := func(w *world) (string, bool) {
		w.Helper()
		for _, c := range w.pod().Status.Conditions {
			if c.Type == offloadingv1beta1.ReadinessGatesCondition {
				return string(c.Status) + " " + c.Reason, strings.Contains(c.Message, "garden.example/opened")
			}
		}
		return "", false
	}
	say := func(w *world, open *string) {
		w.Helper()
		live := w.shadow()
		if delete(live.Annotations, offloadingv1beta1.OpenGatesAnnotation); open != nil {
			live.Annotations[offloadingv1beta1.OpenGatesAnnotation] = *open
		}
		if err := w.Update(t.Context(), live); err != nil {
			t.Fatal(err)
		}
		if _, err := w.pass(); err != nil {
			t.Fatal(err)
		}
	}
	opened := "garden.example/opened"
	shadow := job()
	shadow.Annotations[offloadingv1beta1.OpenGatesAnnotation] = opened
	w := newWorld(t, shadow)
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	pod := w.pod()
	if diff := cmp.Diff([]corev1.PodReadinessGate{{ConditionType: offloadingv1beta1.ReadinessGatesCondition}}, pod.Spec.ReadinessGates); diff != "" {
		t.Error(diff)
	}
	if _, crossed := pod.Annotations[offloadingv1beta1.OpenGatesAnnotation]; crossed {
		t.Error("the annotation of the ShadowPod is on the Pod")
	}
	if got, named := gates(w); got != "False ReadinessGatesNotReady" || !named {
		t.Errorf("the gate says %q, which one: %v", got, named)
	}
	w.set(func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "Theirs", Status: "True"})
	})
	say(w, ptr.To(""))
	if got, _ := gates(w); got != "True " || len(w.pod().Status.Conditions) != 2 {
		t.Errorf("met, it says %q among %v", got, w.pod().Status.Conditions)
	}
	before := w.Writes
	if _, err := w.pass(); err != nil || w.Writes != before {
		t.Errorf("once more: %d writes, %v", w.Writes-before, err)
	}
	say(w, &opened)
	if got, _ := gates(w); got != "False ReadinessGatesNotReady" {
		t.Errorf("open again, it says %q", got)
	}
	// A consumer of an earlier version does not say anything, and is not kept from being ready by that.
	say(w, nil)
	if got, _ := gates(w); got != "True " {
		t.Errorf("without a word it says %q", got)
	}

	w = newWorld(t, job())
	if _, err := w.pass(); err != nil {
		t.Fatal(err)
	}
	say(w, &opened)
	if pod := w.pod(); len(pod.Spec.ReadinessGates) > 0 || len(pod.Status.Conditions) > 0 {
		t.Errorf("a Pod that was made without has gates %v, conditions %v", pod.Spec.ReadinessGates, pod.Status.Conditions)
	}
}
