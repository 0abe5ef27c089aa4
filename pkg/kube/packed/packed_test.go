package packed

import (
	"runtime"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func sample() *corev1.Pod {
	now := metav1.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local))
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", UID: "u", ResourceVersion: "7", Labels: map[string]string{"app": "shop"},
			CreationTimestamp: now, DeletionTimestamp: &now, DeletionGracePeriodSeconds: new(int64(30))},
		Spec:   corev1.PodSpec{NodeName: "milan", Containers: []corev1.Container{{Name: "app", Image: "app:1.2.3"}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, StartTime: &now},
	}
}

// What is read is what was packed, also when it has to be decoded, which it is only after a collection.
func TestPack(t *testing.T) {
	decoded, before := 0, Unpacked
	Unpacked = func() { decoded++ }
	t.Cleanup(func() { Unpacked = before })
	for name, pod := range map[string]*corev1.Pod{"a pod": sample(), "an empty pod": {}} {
		t.Run(name, func(t *testing.T) {
			want := pod.DeepCopy()
			held, err := Pack(pod.DeepCopy()) // nobody else holds it
			if err != nil {
				t.Fatal(err)
			}
			for at := range 2 {
				if diff := cmp.Diff(want, held.Unpack(), cmpopts.EquateEmpty()); diff != "" {
					t.Errorf("reading %d (-put +got):\n%s", at, diff)
				}
				for range 3 {
					runtime.GC()
				}
			}
			if held.GetName() != want.Name || held.GetNamespace() != want.Namespace || held.GetObjectMeta().GetResourceVersion() != want.ResourceVersion ||
				held.Leaving != (want.DeletionTimestamp != nil) {
				t.Errorf("it says that it is %s/%s, version %s", held.GetNamespace(), held.GetName(), held.Version)
			}
		})
	}
	if decoded == 0 {
		t.Error("nothing was ever decoded")
	}
	var none *Pod
	if none.Unpack() != nil || none.Number() != 0 {
		t.Error("there is something where nothing is held")
	}
}

func TestEachHasANumberOfItsOwn(t *testing.T) {
	first, err := Pack(sample())
	if err != nil {
		t.Fatal(err)
	}
	second, err := Pack(sample())
	if err != nil || first.Number() == second.Number() || first.Number() == 0 {
		t.Errorf("numbers %d and %d, %v", first.Number(), second.Number(), err)
	}
}

func BenchmarkUnpack(b *testing.B) {
	local := sample()
	held, err := Pack(local)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		held.Unpack()
	}
}
