package pod

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/test/fakeapi"
)

// Where the API server does not label pods as it binds them, the label comes with the status, in one write.
func TestThePodIsLabelledWithItsStatus(t *testing.T) {
	const label = offloadingv1beta1.LocalPodLabel
	for name, tc := range map[string]struct {
		bound    map[string]string
		offload  bool
		refused  bool
		labelled bool
		asked    bool
	}{
		"a pod that nobody labelled":              {map[string]string{"app": "web"}, true, false, true, true},
		"a pod without labels":                    {nil, true, false, true, true},
		"a pod with another value":                {map[string]string{label: "false"}, true, false, true, true},
		"a pod that was labelled as it was bound": {map[string]string{label: "true"}, true, false, true, false},
		"an account without the right":            {nil, true, true, false, true},
		"a namespace that is not offloaded":       {nil, false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, account := newWorld(t), fake.NewClientset()
			asked := make(chan struct{}, 100)
			fakeapi.React(&account.Fake, "patch", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
				asked <- struct{}{}
				if tc.refused {
					return true, nil, apierrors.NewForbidden(podResource.GroupResource(), "p", errors.New("no RBAC policy matched"))
				}
				p := action.(clienttesting.PatchAction)
				pod, err := w.local.CoreV1().Pods(p.GetNamespace()).Patch(context.Background(), p.GetName(), p.GetPatchType(), p.GetPatch(), metav1.PatchOptions{}, p.GetSubresource())
				return true, pod, err
			})
			w.change = func(o *Options) { o.Account = account }
			w.provider()
			w.add(newPod("p", "uid-1", func(p *corev1.Pod) { p.Labels = tc.bound }))
			w.start()
			if tc.offload {
				w.offload()
				w.eventually("the pod runs", func() bool { return w.pod("p").Status.Phase == corev1.PodRunning })
			} else {
				w.setMapping(Mapping{Known: true})
				w.eventually("the pod says why it does not run", func() bool { return w.pod("p").Status.Reason == offloadingv1beta1.ReasonOffloadingBackOff })
			}
			w.calm()
			if got := w.pod("p"); (got.Labels[label] == "true") != tc.labelled || got.Labels["app"] != tc.bound["app"] {
				t.Errorf("labels are %v", got.Labels)
			}
			if (len(asked) > 0) != tc.asked {
				t.Errorf("the account wrote %d times", len(asked))
			}
			if n := w.localWrites(); n != 1 {
				t.Errorf("%d writes at home, want one: %q", n, w.writes)
			}
		})
	}
}

// localWrites counts what was written to this cluster.
func (w *world) localWrites() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, write := range w.writes {
		if write == "local patch pods/status" {
			n++
		}
	}
	return n
}
