package storage

import (
	"context"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// label changes a claim at home, and waits until that shows at the provider.
func (w *world) label(t *testing.T, name, value string) {
	t.Helper()
	claims := w.home.CoreV1().PersistentVolumeClaims("shop")
	claim, err := claims.Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metav1.SetMetaDataLabel(&claim.ObjectMeta, "tier", value)
	if _, err := claims.Update(t.Context(), claim, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "label "+value+" at the provider", func(ctx context.Context) bool {
		remote, err := w.remote.CoreV1().PersistentVolumeClaims("shop-rome").Get(ctx, name, metav1.GetOptions{})
		return err == nil && remote.Labels["tier"] == value
	})
}

// Of two virtual nodes of a provider one looks after all volumes there: also after one that was made from the other node, or from
// one that is gone.
func TestOneOfTwoNodesLooksAfterVolumes(t *testing.T) {
	ofGone, lost := local("data", "u1", "pvc-u1"), local("lost", "u2", "pvc-u2")
	ofGone.Annotations[reflection.SelectedNodeAnnotation], lost.Annotations[reflection.SelectedNodeAnnotation] = "milan-before", "milan-before"
	remote, volume := provided(ofGone, "r1")
	_, lostVolume := provided(lost, "r2")
	w := start(t, []runtime.Object{ofGone, volume, lost, lostVolume}, []runtime.Object{remote})
	told := &world{home: w.home, remote: w.remote}
	other, err := New(Options{Home: "rome", Remote: "milan", Node: "milan-big", Local: w.home, Peer: peerOf{w}, Recorder: told,
		Wanted: &told.wanted, Leads: &told.leads})
	if err != nil {
		t.Fatal(err)
	}
	told.run(t, other)
	await(t, "the loss to be told", func(context.Context) bool { return w.told("lost: " + offloadingv1beta1.ReasonVolumeLost) })
	w.label(t, "data", "one")
	w.settled(t)
	patches := func() (n int) {
		for _, write := range w.writes() {
			if write == "remote patch persistentvolumeclaims" {
				n++
			}
		}
		return n
	}
	if n := patches(); n != 1 || told.told("lost") {
		t.Errorf("the label was written %d times, and the loss told by the node that does not lead: %v", n, told.told("lost"))
	}

	w.leads.Set(false)
	told.leads.Set(true)
	await(t, "the loss to be told by the node that leads now", func(context.Context) bool { return told.told("lost: " + offloadingv1beta1.ReasonVolumeLost) })
	told.label(t, "data", "two")
	if n := patches(); n != 2 {
		t.Errorf("the labels were written %d times", n)
	}

	// Who leads does not matter for a claim that has no volume yet.
	if _, err := w.home.CoreV1().PersistentVolumeClaims("shop").Create(t.Context(), local("new", "u3", ""), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	await(t, "the volume made from the node that was selected", func(context.Context) bool {
		return w.told("new: " + offloadingv1beta1.ReasonVolumeProvisioned)
	})
	if told.told("new: ") {
		t.Error("the other node had to do with it, too")
	}
}
