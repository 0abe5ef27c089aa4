package replication

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
)

// An Identity that went before what is replicated through it would leave that with a finalizer which nobody takes off any more. So the cache
// alone is not believed, and no reflector may put one on afterwards.
func TestAnIdentityOutlivesWhatIsReplicatedThroughIt(t *testing.T) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	const namespace = "liqo-tenant-milan"
	replicated := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "milan", Finalizers: []string{authv1beta1.ReplicationFinalizer},
		Labels: map[string]string{corev1beta1.ReplicationLabel: "true", corev1beta1.RemoteIDLabel: "milan"},
	}}
	others := replicated.DeepCopy()
	others.Labels[corev1beta1.RemoteIDLabel] = "naples"
	for name, tc := range map[string]struct {
		cached, live []client.Object
		wait         bool
	}{
		"nothing is left":                      {nil, nil, false},
		"what is another peer's":               {[]client.Object{others}, []client.Object{others}, false},
		"one that the cache knows":             {[]client.Object{replicated}, []client.Object{replicated}, true},
		"one that the cache does not know yet": {nil, []client.Object{replicated}, true},
	} {
		t.Run(name, func(t *testing.T) {
			now := metav1.Now()
			identity := &authv1beta1.Identity{ObjectMeta: metav1.ObjectMeta{
				Namespace: namespace, Name: "controlplane-milan", DeletionTimestamp: &now, Finalizers: []string{authv1beta1.ReplicatorFinalizer},
			}}
			identity.Spec.ClusterID = "milan"
			key := client.ObjectKeyFromObject(identity)
			cached := fake.NewClientBuilder().WithScheme(scheme).WithObjects(append(tc.cached, identity)...).Build()
			ended, stopped := make(chan struct{}), false
			close(ended)
			r := &Reconciler{
				client: cached, live: fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.live...).Build(), events: events.NewFakeRecorder(1),
				reflectors: map[types.NamespacedName]*reflector{key: {cancel: func() { stopped = true }, ended: ended}},
			}
			if err := cached.Get(t.Context(), key, identity); err != nil {
				t.Fatal(err)
			}
			err := r.finish(t.Context(), identity, false, false)
			if waits := err != nil && strings.Contains(err.Error(), "NamespaceMap milan"); waits != tc.wait {
				t.Errorf("it waits: %t, want %t (%v)", waits, tc.wait, err)
			}
			// The fake API server removes an object with its last finalizer.
			if gone := apierrors.IsNotFound(cached.Get(t.Context(), key, identity)); gone == tc.wait {
				t.Errorf("the Identity is gone: %t", gone)
			}
			if !tc.wait && !stopped {
				t.Error("the reflector still runs")
			}
		})
	}
}
