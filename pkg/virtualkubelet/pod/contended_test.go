package pod

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/restraint"
	"liqo.io/liqo/pkg/virtualkubelet/shadowpods"
)

// meddle has somebody at the provider change the ShadowPod.
func (w *world) meddle(change func(*unstructured.Unstructured)) {
	w.t.Helper()
	w.atomic.Lock()
	defer w.atomic.Unlock()
	object, err := w.dyn.Tracker().Get(shadowpods.Resource, twinNamespace, "p")
	if err != nil {
		w.t.Fatal(err)
	}
	shadow := object.(*unstructured.Unstructured).DeepCopy()
	change(shadow)
	if err := w.dyn.Tracker().Update(shadowpods.Resource, shadow, twinNamespace); err != nil {
		w.t.Fatal(err)
	}
}

func label(key, value string) func(*unstructured.Unstructured) {
	return func(shadow *unstructured.Unstructured) {
		labels := shadow.GetLabels()
		labels[key] = value
		shadow.SetLabels(labels)
		shadow.SetManagedFields([]metav1.ManagedFieldsEntry{
			{Manager: "liqo-virtual-kubelet", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`)},
			{Manager: "fighter", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:labels":{"f:` + key + `":{}}}}`)},
		})
	}
}

// A controller at the provider that sets a label of ours again and again is told of, and does not make endless writes.
func TestAFightingControllerAtTheProvider(t *testing.T) {
	w := up(t)
	w.calm()
	before := w.count()
	for range restraint.Most {
		w.meddle(label("app", "theirs"))
		w.eventually("the label is put back", func() bool { return w.shadow("p").Labels["app"] == "shop" })
		w.calm()
	}
	for range 5 {
		w.meddle(label("app", "theirs"))
		w.meddle(label("app", "others"))
		w.calm()
	}
	w.eventually("it is told", func() bool { return len(w.events.all()) == 2 })
	if writes := w.count() - before; writes != restraint.Most {
		t.Errorf("%d writes, want %d", writes, restraint.Most)
	}
	told := w.events.all()
	if !strings.Contains(told[0], offloadingv1beta1.ReasonRemoteChangeReverted) || !strings.Contains(told[0], `field manager "fighter"`) ||
		!strings.Contains(told[0], "metadata.labels.app") || !strings.HasPrefix(told[1], offloadingv1beta1.ReasonContended) {
		t.Errorf("events are %q", told)
	}
	// What the user wants is another matter.
	w.update(func(p *corev1.Pod) { p.Labels["app"] = "mine" })
	w.eventually("the user's own change follows", func() bool { return w.shadow("p").Labels["app"] == "mine" })
	w.calm()
	if again := w.events.all(); len(again) != 2 {
		t.Errorf("events are %q", again)
	}
}

// What the provider's controllers add is theirs.
func TestALabelThatTheProviderAddsStays(t *testing.T) {
	w := up(t)
	w.calm()
	before := w.count()
	w.meddle(label("theirs", "x"))
	w.calm()
	if w.count() != before || w.shadow("p").Labels["theirs"] != "x" || len(w.events.all()) != 0 {
		t.Errorf("writes %q, labels %v, events %q", w.writes[before:], w.shadow("p").Labels, w.events.all())
	}
}

func TestManyDebuggersAtOnceAreNoContest(t *testing.T) {
	w := up(t)
	names := []string{"a", "b", "c", "d"}
	w.update(func(p *corev1.Pod) {
		for _, name := range names {
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: name, Image: "busybox"}})
		}
		p.Generation++
	})
	w.eventually("all are there", func() bool {
		list := w.shadow("p").Spec.Pod.EphemeralContainers
		return len(list) == len(names) && slices.ContainsFunc(list, func(c corev1.EphemeralContainer) bool { return c.Name == "d" })
	})
}

func TestTheSameIsWrittenTwiceAMinute(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	m := newMemory(nil, nil)
	c := m.contest("uid", 1)
	for range restraint.Most {
		if left := c.wait("fields", noon); left != 0 {
			t.Fatalf("the first writes wait %s", left)
		}
		c.wrote("fields", noon)
	}
	if left := c.wait("fields", noon.Add(20*time.Second)); left != 40*time.Second {
		t.Errorf("the next one waits %s, want 40s", left)
	}
	if left := c.wait("size", noon); left != 0 {
		t.Errorf("another part waits %s", left)
	}
	if left := c.wait("fields", noon.Add(restraint.Within)); left != 0 {
		t.Errorf("a minute later it waits %s", left)
	}
	if left := m.contest("uid", 2).wait("fields", noon); left != 0 {
		t.Errorf("what is wanted anew waits %s", left)
	}
	m.forget("uid")
	if len(m.pods) != 0 {
		t.Error("a pod that is gone is remembered")
	}
}
