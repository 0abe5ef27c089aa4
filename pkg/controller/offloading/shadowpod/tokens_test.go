package shadowpod

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/event"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/reflection"
)

// secrets are what a test says of the Secrets with tokens.
type secrets struct {
	there   bool
	waiting map[types.NamespacedName]bool
}

func (s *secrets) Await(shadow *offloadingv1beta1.ShadowPod) bool {
	if !s.there {
		s.waiting[types.NamespacedName{Namespace: shadow.Namespace, Name: shadow.Name}] = true
	}
	return s.there
}

func (s *secrets) Forget(shadow types.NamespacedName) { delete(s.waiting, shadow) }
func (s *secrets) Woken() <-chan event.GenericEvent   { return nil }

// withTokens is a ShadowPod whose pod finds its tokens in a Secret.
func withTokens() *offloadingv1beta1.ShadowPod {
	shadow := job()
	shadow.CreationTimestamp.Time = start
	shadow.Spec.Pod.Volumes = []corev1.Volume{{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
		Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: reflection.TokenSecretName(key.Name)}}}}}}}}
	return shadow
}

func TestThePodComesAfterItsTokens(t *testing.T) {
	for name, tc := range map[string]struct {
		shadow *offloadingv1beta1.ShadowPod
		there  bool
		age    time.Duration
		pod    bool
		ready  string
		after  time.Duration
	}{
		"the Secret is there":              {shadow: withTokens(), there: true, pod: true},
		"a pod without tokens":             {shadow: job(), pod: true},
		"at first nothing is said":         {shadow: withTokens(), after: tokensSoon},
		"nor much later written":           {shadow: withTokens(), age: tokensSoon - time.Second, after: time.Second},
		"then why nothing happens":         {shadow: withTokens(), age: tokensSoon, ready: "False SATokensPending", after: tokensLate - tokensSoon},
		"in the end the kubelet finds out": {shadow: withTokens(), age: tokensLate, pod: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, tc.shadow)
			s := &secrets{there: tc.there, waiting: map[types.NamespacedName]bool{}}
			w.reconciler.Tokens = s
			w.clock.SetTime(start.Add(tc.age))
			result, err := w.pass()
			if err != nil || result.RequeueAfter != tc.after {
				t.Errorf("looks again after %s, want %s (%v)", result.RequeueAfter, tc.after, err)
			}
			if got := w.pod() != nil; got != tc.pod || s.waiting[key] == tc.pod {
				t.Errorf("the pod is there: %v, is waited for: %v", got, s.waiting[key])
			}
			if got := w.ready(); got != tc.ready {
				t.Errorf("ready is %q, want %q", got, tc.ready)
			}
		})
	}
}

// The reason goes once the Secret is there.
func TestTheWaitForTokensEnds(t *testing.T) {
	w := newWorld(t, withTokens())
	s := &secrets{waiting: map[types.NamespacedName]bool{}}
	w.reconciler.Tokens = s
	w.clock.SetTime(start.Add(tokensSoon))
	if _, err := w.pass(); err != nil || w.ready() != "False SATokensPending" {
		t.Fatalf("%s %v", w.ready(), err)
	}
	s.there = true
	if _, err := w.pass(); err != nil || w.pod() == nil || w.ready() != "True CreatedPod" {
		t.Errorf("pod %v, ready %s (%v)", w.pod(), w.ready(), err)
	}
}
