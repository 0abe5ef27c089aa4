package shadowpod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/marks"
	"liqo.io/liqo/pkg/reflection"
)

// usual is what a chart lists by default, as far as it matters here; test/chart looks at all of it.
var usual = reflection.Keys{Labels: []string{"app.kubernetes.io/"}, Annotations: []string{"prometheus.io/"}}

// privilegedAnnotations are some by which a pod gets rights, networks or devices of the provider's node.
var privilegedAnnotations = map[string]string{
	"iam.amazonaws.com/role":                           "arn:aws:iam::1:role/admin", // kube2iam, kiam
	"v1.multus-cni.io/default-network":                 "kube-system/hostnet",       // Multus: replaces the pod's own network
	"io.kubernetes.cri-o.Devices":                      "/dev/sda:/dev/sda:rwm",     // CRI-O allowed_annotations
	"io.kubernetes.cri-o.cgroup2-mount-hierarchy-rw":   "true",
	"io.katacontainers.config.hypervisor.path":         "/bin/sh",
	"k8s.ovn.org/pod-networks":                         "{}",
	"vault.hashicorp.com/agent-inject":                 "true",
	"gke-gcsfuse/volumes":                              "true", // a sidecar, against the convention without a domain
	"cluster-autoscaler.kubernetes.io/safe-to-evict":   "false",
	"ovn.kubernetes.io/logical_switch":                 "host",
	"cni.cilium.io/mac-address":                        "00:00:00:00:00:01",
	"kubernetes.io/config.seen":                        "control: is dropped",
	"k8s.v1.cni.cncf.io/networks":                      "control: is dropped",
	"cni.projectcalico.org/ipAddrs":                    "10.0.0.1",
	"sidecar.istio.io/userVolume":                      "[]",
	"linkerd.io/inject":                                "enabled",
	"kubernetes.io/egress-bandwidth":                   "1P",
	"prometheus.io.evil.example.org/scrape":            "a domain that begins like one that is listed",
	"evil-liqo.io/role":                                "a domain that ends like ours",
	"container.apparmor.security.beta.kubernetes.io/c": "unconfined",
}

var privilegedLabels = map[string]string{"aadpodidbinding": "admin", "gke-parallelstore/volumes": "true", "azure.workload.identity/use": "true", "sidecar.istio.io/inject": "true",
	"admission.datadoghq.com/enabled": "true"}

func lackingAll(t *testing.T, when string, pod *corev1.Pod) {
	t.Helper()
	for key := range privilegedAnnotations {
		if _, there := pod.Annotations[key]; there {
			t.Errorf("%s: annotation %s reaches the provider's Pod", when, key)
		}
	}
	for key := range privilegedLabels {
		if _, there := pod.Labels[key]; there {
			t.Errorf("%s: label %s reaches the provider's Pod", when, key)
		}
	}
}

// Annotations and labels by which a pod gets rights, networks or devices of the provider's node do not reach the Pod: neither
// when it is made, nor by a later change, nor do they stay on one that an earlier version made. It is told once, also over a restart.
func TestPrivilegedKeysDoNotReachThePod(t *testing.T) {
	ask := func(shadow *offloadingv1beta1.ShadowPod) {
		for key, value := range privilegedAnnotations {
			shadow.Annotations[key] = value
		}
		for key, value := range privilegedLabels {
			shadow.Labels[key] = value
		}
	}
	asking := job()
	ask(asking)
	for _, annotation := range []string{"note", "checksum/config", "prometheus.io/scrape"} {
		asking.Annotations[annotation] = "harmless"
	}
	asking.Labels["app.kubernetes.io/name"] = "web"
	earlier := build(asking)
	for key, value := range privilegedAnnotations {
		if !hasPrefix(key, substitutes) { // which no version let pass
			earlier.Annotations[key] = value
		}
	}
	marks.Write(earlier.Annotations, marksOf(asking))
	earlier.UID, earlier.ResourceVersion = "pod-uid", ""
	for name, begin := range map[string]func(t *testing.T) *world{
		"asked for at once": func(t *testing.T) *world { return newWorld(t, asking.DeepCopy()) },
		"asked for later": func(t *testing.T) *world {
			innocent := asking.DeepCopy()
			for key := range privilegedAnnotations {
				delete(innocent.Annotations, key)
			}
			for key := range privilegedLabels {
				delete(innocent.Labels, key)
			}
			w := newWorld(t, innocent)
			w.reconciler.Keys = usual
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			live := w.shadow()
			ask(live)
			if err := w.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			return w
		},
		"made by an earlier version": func(t *testing.T) *world { return newWorld(t, asking.DeepCopy(), earlier.DeepCopy()) },
	} {
		t.Run(name, func(t *testing.T) {
			w := begin(t)
			told := events.NewFakeRecorder(10)
			w.reconciler.Keys, w.reconciler.Events = usual, told
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			lackingAll(t, name, w.pod())
			if pod := w.pod(); pod.Labels["app"] != "web" || pod.Labels["app.kubernetes.io/name"] != "web" || pod.Annotations["note"] != "harmless" ||
				pod.Annotations["checksum/config"] != "harmless" || pod.Annotations["prometheus.io/scrape"] != "harmless" || pod.Annotations["liqo.io/origin-uid"] != "local-uid" {
				t.Errorf("what is harmless is missing: %v %v", pod.Labels, pod.Annotations)
			}
			said := meta.FindStatusCondition(w.shadow().Status.Conditions, offloadingv1beta1.KeysRefusedCondition)
			if said == nil || !strings.Contains(said.Message, "aadpodidbinding") {
				t.Errorf("the condition says %v", said)
			}
			if len(told.Events) != 1 || !strings.Contains(<-told.Events, "KeysRefused") {
				t.Error("it was not told once")
			}
			if w.shadow().Labels["aadpodidbinding"] != "admin" {
				t.Error("the ShadowPod itself was changed")
			}
			before := w.Writes
			w.reconciler = newWorldFrom(w).reconciler
			w.reconciler.Keys, w.reconciler.Events = usual, told
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if w.Writes != before || len(told.Events) > 0 {
				t.Errorf("a restart writes %d times and tells %d Events", w.Writes-before, len(told.Events))
			}
		})
	}
}

// Tolerations and a grace period that the provider does not allow do not keep the Pod from running, whenever they are asked for: it does
// without, which is told once, also over a restart. The ShadowPod stays as its consumer wrote it.
func TestAPodIsReducedAndRuns(t *testing.T) {
	ask := func(shadow *offloadingv1beta1.ShadowPod) {
		shadow.Spec.Pod.Tolerations = append(shadow.Spec.Pod.Tolerations, corev1.Toleration{Key: "dedicated", Operator: "Exists"}, corev1.Toleration{Operator: "Exists"})
	}
	for name, later := range map[string]bool{"at once": false, "later": true} {
		t.Run(name, func(t *testing.T) {
			shadow := job()
			shadow.Spec.Pod.TerminationGracePeriodSeconds = ptr.To[int64](7200)
			if !later {
				ask(shadow)
			}
			w, told := newWorld(t, shadow), events.NewFakeRecorder(10)
			set := func() { w.reconciler.Reduce, w.reconciler.Events = reflection.Rules{}.Reduced, told }
			pass := func() {
				t.Helper()
				if _, err := w.pass(); err != nil {
					t.Fatal(err)
				}
			}
			set()
			pass()
			if later {
				<-told.Events // of the grace period
				live := w.shadow()
				ask(live)
				if err := w.Update(t.Context(), live); err != nil {
					t.Fatal(err)
				}
				pass()
			}
			if spec := w.pod().Spec; len(spec.Tolerations) > 0 || *spec.TerminationGracePeriodSeconds != 3600 {
				t.Errorf("the Pod tolerates %v and has %d s to end", spec.Tolerations, *spec.TerminationGracePeriodSeconds)
			}
			if live := w.shadow(); len(live.Spec.Pod.Tolerations) != 2 || *live.Spec.Pod.TerminationGracePeriodSeconds != 7200 {
				t.Error("the ShadowPod itself was changed")
			}
			said := meta.FindStatusCondition(w.shadow().Status.Conditions, offloadingv1beta1.ReducedCondition)
			if said == nil || !strings.Contains(said.Message, "dedicated, everything") || !strings.Contains(said.Message, "3600") {
				t.Errorf("the condition says %v", said)
			}
			if len(told.Events) != 1 || !strings.Contains(<-told.Events, offloadingv1beta1.ReasonPartiallyReflected) {
				t.Error("it was not told once")
			}
			before := w.Writes
			w.reconciler = newWorldFrom(w).reconciler
			set()
			pass()
			if w.Writes != before || len(told.Events) > 0 {
				t.Errorf("a restart writes %d times and tells %d Events", w.Writes-before, len(told.Events))
			}
		})
	}
}

// From Kubernetes 1.33 on an API server puts the zone and the region of its node on a pod as it binds it, over what the pod has. What the
// consumer's own said is no reason to write: nothing is put back, and nobody is told of a contest.
func TestZonesThatAreWrittenAtBindingStay(t *testing.T) {
	for name, sent := range map[string]map[string]string{
		"nothing is sent":          {},
		"an earlier version sends": {corev1.LabelTopologyZone: "rome-1", corev1.LabelTopologyRegion: "rome"},
	} {
		t.Run(name, func(t *testing.T) {
			shadow := job()
			for key, value := range sent {
				shadow.Labels[key] = value
			}
			told := events.NewFakeRecorder(10)
			w := newWorld(t, shadow)
			w.reconciler.Events, w.reconciler.Keys = told, reflection.Keys{Labels: []string{"*"}}
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			w.set(func(p *corev1.Pod) {
				p.Spec.NodeName, p.Status.Phase = "n1", corev1.PodRunning
				p.Labels[corev1.LabelTopologyZone], p.Labels[corev1.LabelTopologyRegion] = "milan-2", "milan"
			})
			before := w.Writes
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if zone := w.pod().Labels[corev1.LabelTopologyZone]; zone != "milan-2" || w.Writes-before > 1 {
				t.Errorf("zone %q after %d writes", zone, w.Writes-before)
			}
			live := w.shadow()
			live.Labels["more"] = "true"
			if err := w.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			if _, err := w.pass(); err != nil {
				t.Fatal(err)
			}
			if labels := w.pod().Labels; labels[corev1.LabelTopologyZone] != "milan-2" || labels["more"] != "true" {
				t.Errorf("once something else changed: %v", labels)
			}
			if len(told.Events) > 0 {
				t.Errorf("told: %s", <-told.Events)
			}
			if said := meta.FindStatusCondition(w.shadow().Status.Conditions, offloadingv1beta1.ChangeRefusedCondition); said != nil {
				t.Errorf("said: %s", said.Message)
			}
		})
	}
}
