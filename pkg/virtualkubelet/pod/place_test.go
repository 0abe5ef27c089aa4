package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/peer"
	"liqo.io/liqo/pkg/reflection"
)

// TestPlace: where a pod runs is known from its ShadowPod's creation on, and those who want to know are told.
func TestPlace(t *testing.T) {
	w := up(t)
	w.calm()
	k := key{Namespace: "shop", Name: "p"}
	place, there := w.r.Place(k)
	if !there || place.Local.UID != "uid-1" || place.UID != w.shadow("p").UID || place.Namespace != twinNamespace || place.Provider == nil || place.Epoch != 1 {
		t.Errorf("the place is %+v, %v", place, there)
	}
	told := func() int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.placed["p"]
	}
	if told() == 0 {
		t.Error("nobody was told of the place")
	}
	before := told()
	w.peer.set(func(s *peer.State) { s.Connected, s.Reason = false, "Unreachable" })
	w.eventually("the loss is told", func() bool { return told() > before })
	w.eventually("the place shows the loss", func() bool {
		place, there = w.r.Place(k)
		return there && place.Lost && place.UID == "" && place.Provider == nil
	})
	before = told()
	w.force()
	w.eventually("the end is told", func() bool { _, there := w.r.Place(k); return !there && told() > before })
}

// tokenUser asks for a token as the API server makes pods do.
func tokenUser(p *corev1.Pod) {
	p.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-x", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}}}}}}}
}

// TestNoWayToTheAPIServerIsToldOnce: at creation, not at restarts, and only if the pod would use the API server.
func TestNoWayToTheAPIServerIsToldOnce(t *testing.T) {
	for name, tc := range map[string]struct {
		api  reflection.HomeAPI
		pod  func(*corev1.Pod)
		want int
	}{
		"no address":                {reflection.HomeAPI{Enabled: true}, tokenUser, 1},
		"an address":                {reflection.HomeAPI{Enabled: true, Host: "api"}, tokenUser, 0},
		"support is off":            {reflection.HomeAPI{}, tokenUser, 0},
		"a pod that needs no token": {reflection.HomeAPI{Enabled: true}, func(*corev1.Pod) {}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.api = tc.api
			w.provider()
			w.add(newPod("p", "uid-1", tc.pod))
			w.start()
			w.offload()
			w.eventually("the pod is ready", func() bool { return isReady(w.pod("p")) })
			w.calm()
			w.stop()
			w.start()
			w.offload()
			w.eventually("the caches are filled", func() bool { return w.r.look(key{Namespace: "shop", Name: "p"}, "uid-1").ready })
			w.calm()
			told := 0
			for _, event := range w.events.all() {
				if strings.HasPrefix(event, offloadingv1beta1.ReasonNoAPIServerAddress) {
					told++
				}
			}
			if told != tc.want {
				t.Errorf("told %d times, want %d: %v", told, tc.want, w.events.all())
			}
			if (reflection.TokenSecretOf(w.shadow("p")) != "") != (tc.api.Host != "") {
				t.Errorf("the ShadowPod has the volumes %v", w.shadow("p").Spec.Pod.Volumes)
			}
		})
	}
}
