package pod

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/capacity"
	"liqo.io/liqo/pkg/peer"
)

const sliceUser = "liqo.io:slice:rome:milan"

func asks(value string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Annotations = map[string]string{offloadingv1beta1.OnPartitionAnnotation: value}
	}
}

// known makes the Lease at the provider, as its controller manager does, and names us to it.
func (w *world) known(heeds bool) {
	w.t.Helper()
	w.peer.clients.User = sliceUser
	if !heeds {
		return
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-rome", Name: "liqo-sign-of-life-" + capacity.UserLabel(sliceUser)}}
	if err := w.kube.Tracker().Add(lease); err != nil {
		w.t.Fatal(err)
	}
}

// signs counts the writes of Leases at the provider.
func (w *world) signs() (n int) {
	for _, action := range w.kube.Actions() {
		if action.Matches("patch", "leases") {
			n++
		}
		if patch, ok := action.(clienttesting.PatchAction); ok && patch.GetNamespace() != "liqo-tenant-rome" {
			w.t.Errorf("a Lease in namespace %s was written", patch.GetNamespace())
		}
	}
	return n
}

func TestSignsOfLife(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		heeds bool
		state func(*peer.State)
		want  int
	}{
		"a pod asks for them":            {value: "stop", heeds: true, want: 1},
		"a fenced pod asks for them":     {value: "fence=10m", heeds: true, want: 1},
		"no pod asks for them":           {value: "keep", heeds: true},
		"nobody understands what it is":  {value: "stop=1s", heeds: true},
		"the provider is lost":           {value: "stop", heeds: true, state: func(s *peer.State) { s.Connected, s.Reason = false, peer.ReasonUnreachable }},
		"the provider takes none so far": {value: "stop", want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.known(test.heeds)
			w.provider()
			w.add(newPod("p", "uid-1", asks(test.value)))
			w.start()
			w.offload()
			w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
			if w.shadow("p").Annotations[offloadingv1beta1.OnPartitionAnnotation] != test.value {
				t.Error("the provider is not told what the pod asks for")
			}
			if test.state != nil {
				w.peer.set(test.state)
			}
			if err := w.r.Signs.Give(t.Context()); err != nil || w.signs() != test.want {
				t.Errorf("%d signs, want %d, %v", w.signs(), test.want, err)
			}
		})
	}
}

// A pod of a provider that is lost is let go once the provider must have stopped it, and not before. Of one that was not told to, or that heard
// no sign of ours, nobody knows.
func TestADeletedPodOfALostProvider(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		heeds bool
		ago   time.Duration
		goes  bool
	}{
		"must have stopped it":         {value: "fence=1m", heeds: true, ago: 3 * time.Minute, goes: true},
		"must have stopped it, a stop": {value: "stop=1m", heeds: true, ago: 3 * time.Minute, goes: true},
		"may not have stopped it yet":  {value: "fence=1m", heeds: true, ago: 2 * time.Minute},
		"keeps it":                     {value: "keep", heeds: true, ago: 24 * time.Hour},
		"heard no sign of ours":        {value: "fence=1m", ago: 24 * time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.known(test.heeds)
			w.provider()
			w.add(newPod("p", "uid-1", asks(test.value)))
			w.start()
			w.offload()
			w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
			if err := w.r.Signs.Give(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.peer.set(func(s *peer.State) {
				s.Connected, s.Reason, s.Since = false, peer.ReasonUnreachable, time.Now().Add(-test.ago)
			})
			w.terminate()
			if test.goes {
				w.eventually("the pod is gone", func() bool { return w.pod("p") == nil })
			} else {
				w.calm()
				if w.pod("p") == nil {
					t.Fatal("the pod is gone, and may run at the provider")
				}
			}
			if w.shadow("p") == nil {
				t.Error("the ShadowPod went while the provider was lost")
			}
			w.peer.set(func(s *peer.State) { s.Connected, s.Reason = true, peer.ReasonConnected })
			w.eventually("both are gone", func() bool { return w.pod("p") == nil && w.shadow("p") == nil })
			if w.ran != 1 {
				t.Errorf("there were %d remote pods", w.ran)
			}
		})
	}
}

// Idle peerings make no writes: without the pod that asked for them no sign is given.
func TestNoSignsAfterTheLastPodThatAsked(t *testing.T) {
	w := newWorld(t)
	w.known(true)
	w.provider()
	w.add(newPod("p", "uid-1", asks("stop")))
	w.start()
	w.offload()
	w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
	if err := w.r.Signs.Give(t.Context()); err != nil || w.signs() != 1 {
		t.Fatalf("%d signs, %v", w.signs(), err)
	}
	w.terminate()
	w.eventually("the pod is gone, and no sign is given any more", func() bool {
		before := w.signs()
		return w.r.Signs.Give(t.Context()) == nil && w.signs() == before && w.pod("p") == nil
	})
}
