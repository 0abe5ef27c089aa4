package namespaceoffloading

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// A namespace that is kept at home is made known to the virtual kubelets of the clusters that it is offloaded to, and of no
// others; so is that it is not any more. Nothing is written in between.
func TestSkippedNamespacesAreAnnounced(t *testing.T) {
	w := newWorld(t, offloading(offloadingv1beta1.NamespaceOffloadingSpec{ClusterSelector: south()}))
	announced := func(cluster string) string {
		nm := nsmap(cluster)
		if err := w.Get(context.Background(), client.ObjectKeyFromObject(nm), nm); err != nil {
			t.Fatal(err)
		}
		return nm.Annotations[offloadingv1beta1.SkippedNamespacesAnnotation]
	}
	annotate := func(annotations map[string]string) {
		ns := &corev1.Namespace{}
		if err := w.Get(context.Background(), client.ObjectKey{Name: "shop"}, ns); err != nil {
			t.Fatal(err)
		}
		ns.Annotations = annotations
		if err := w.Update(context.Background(), ns); err != nil {
			t.Fatal(err)
		}
		w.pass()
	}
	annotate(map[string]string{"unrelated": ""})
	if got := announced("naples"); got != "" {
		t.Errorf("without a skipped namespace there is %q", got)
	}
	annotate(map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""})
	if announced("naples") == "" || announced("milan") != "" {
		t.Errorf("naples was told %q, milan %q", announced("naples"), announced("milan"))
	}
	before := w.Writes
	if w.pass(); w.Writes != before {
		t.Error("it is written again")
	}
	annotate(nil)
	if got := announced("naples"); got != "" {
		t.Errorf("after the annotation went there is %q", got)
	}
}

func TestSkippedDiffersWithItsNamespaces(t *testing.T) {
	named := func(names ...string) (all []corev1.Namespace) {
		for _, name := range names {
			all = append(all, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name,
				Annotations: map[string]string{offloadingv1beta1.SkipReflectionAnnotation: ""}}})
		}
		return all
	}
	mapping := map[string]string{"a": "x", "b": "y"}
	one, other, both := skipped(named("a"), mapping), skipped(named("b"), mapping), skipped(named("a", "b"), mapping)
	if one == other || one == both || other == both || one == "" {
		t.Errorf("%q, %q and %q", one, other, both)
	}
	if again := skipped(named("b", "unmapped", "a"), mapping); again != both {
		t.Errorf("%q in another order, and with a namespace that is not mapped; %q before", again, both)
	}
}

func TestOnlyTheSkippingAnnotationOfANamespaceCounts(t *testing.T) {
	with := func(key string) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{key: ""}}}
	}
	skipping, other := with(offloadingv1beta1.SkipReflectionAnnotation), with("other")
	for sentence, tc := range map[string]struct {
		before, after *corev1.Namespace
		want          bool
	}{
		"it came":                {other, skipping, true},
		"it went":                {skipping, other, true},
		"it stays":               {skipping, skipping.DeepCopy(), false},
		"another one is changed": {other, with("third"), false},
	} {
		if got := labelled().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %v", sentence, got)
		}
	}
}
