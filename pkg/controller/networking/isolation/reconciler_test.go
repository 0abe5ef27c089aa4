package isolation

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/config/v1alpha1"
)

func pod(namespace, name, address string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Status: corev1.PodStatus{Phase: corev1.PodRunning}}
	if address != "" {
		p.Status.PodIPs = []corev1.PodIP{{IP: address}, {IP: "fd00::1"}}
	}
	for _, c := range change {
		c(p)
	}
	return p
}

func namespace(name, twinOf string) *corev1.Namespace {
	n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if twinOf != "" {
		n.Annotations = map[string]string{offloadingv1beta1.ManagedByNamespaceMapAnnotation: twinOf}
	}
	return n
}

func namespaceMap(tenant, name, label string, namespaces ...string) *offloadingv1beta1.NamespaceMap {
	m := &offloadingv1beta1.NamespaceMap{ObjectMeta: metav1.ObjectMeta{Namespace: tenant, Name: name, Labels: map[string]string{label: "true"}}}
	m.Spec.DesiredMapping = map[string]string{}
	for _, n := range namespaces {
		m.Spec.DesiredMapping[n] = n + "-rome"
	}
	return m
}

// cluster has two peers: the first is consumer and provider, the second a consumer.
func cluster() []client.Object {
	return []client.Object{
		&networkingv1beta1.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "milan"}},
		&networkingv1beta1.Configuration{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-turin", Name: "turin"}},
		namespace("shop", ""), namespace("bank", ""), namespace("web-milan", "liqo-tenant-milan/rome"), namespace("web-turin", "liqo-tenant-turin/rome"),
		namespaceMap("liqo-tenant-milan", "milan", corev1beta1.ReplicationLabel, "shop"),
		// What the peer itself writes: it would have the bank's pods, and those of the other peer.
		namespaceMap("liqo-tenant-milan", "theirs", corev1beta1.ReplicatedLabel, "bank", "web-turin"),
		pod("shop", "one", "10.244.1.1"), pod("shop", "two", "10.244.1.2"), pod("shop", "waiting", ""),
		pod("shop", "over", "10.244.1.3", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }),
		pod("shop", "failed", "10.244.1.4", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }),
		pod("shop", "host", "172.31.1.1", func(p *corev1.Pod) { p.Spec.HostNetwork = true }),
		pod("shop", "strange", "10.244.1.300"),
		pod("bank", "safe", "10.244.2.1"), pod("web-milan", "web", "10.244.3.1"), pod("web-turin", "web", "10.244.4.1"),
	}
}

type world struct {
	*Reconciler
	writes int
}

func newWorld(t *testing.T, isolation v1alpha1.Isolation) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, networkingv1beta1.AddToScheme, offloadingv1beta1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	w := &world{}
	store := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster()...).WithStatusSubresource(&networkingv1beta1.Configuration{}).
		WithInterceptorFuncs(interceptor.Funcs{
			SubResourcePatch: func(ctx context.Context, c client.Client, part string, o client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
				w.writes++
				return c.SubResource(part).Patch(ctx, o, patch, options...)
			},
		}).Build()
	w.Reconciler = &Reconciler{Client: store, Options: Options{Isolation: isolation}, pods: store}
	return w
}

// shares reconciles a peer's Configuration, and returns what it tells.
func (w *world) shares(t *testing.T, peer string) []networkingv1beta1.PodIP {
	t.Helper()
	key := client.ObjectKey{Namespace: "liqo-tenant-" + peer, Name: peer}
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
		t.Fatal(err)
	}
	told := &networkingv1beta1.Configuration{}
	if err := w.Get(t.Context(), key, told); err != nil {
		t.Fatal(err)
	}
	if told.Status.Isolation != string(w.Isolation) {
		t.Errorf("the gateway is told that the network to %s is %q", peer, told.Status.Isolation)
	}
	return told.Status.SharedPods
}

func TestPodsOfSharedNamespacesAreTold(t *testing.T) {
	w := newWorld(t, v1alpha1.IsolationOffloaded)
	for peer, want := range map[string][]networkingv1beta1.PodIP{"milan": {"10.244.1.1", "10.244.1.2", "10.244.3.1"}, "turin": {"10.244.4.1"}} {
		if diff := cmp.Diff(want, w.shares(t, peer)); diff != "" {
			t.Errorf("shared with %s (-want +got)\n%s", peer, diff)
		}
	}
	w.writes = 0
	if w.shares(t, "milan"); w.writes > 0 {
		t.Errorf("what is told already is written %d times", w.writes)
	}
	if err := w.Delete(t.Context(), pod("shop", "one", "")); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), namespaceMap("liqo-tenant-milan", "milan", "")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]networkingv1beta1.PodIP{"10.244.3.1"}, w.shares(t, "milan")); diff != "" {
		t.Errorf("shared once nothing is offloaded (-want +got)\n%s", diff)
	}
}

// That there is no isolation is told, once; pods are not.
func TestNoPodsAreToldWithoutIsolation(t *testing.T) {
	w := newWorld(t, v1alpha1.IsolationOpen)
	for range 2 {
		if got := w.shares(t, "milan"); len(got) > 0 || w.writes != 1 {
			t.Errorf("%v are told, in %d writes", got, w.writes)
		}
	}
	w.Isolation = v1alpha1.IsolationOffloaded
	w.shares(t, "milan")
	w.Isolation = v1alpha1.IsolationOpen
	if got := w.shares(t, "milan"); len(got) > 0 {
		t.Errorf("%v are left of an earlier setting", got)
	}
}

func TestWhoIsToldOfAPod(t *testing.T) {
	w := newWorld(t, v1alpha1.IsolationOffloaded)
	for namespace, want := range map[string][]string{
		"shop": {"liqo-tenant-milan/milan"}, "bank": nil, "web-milan": {"liqo-tenant-milan/milan"}, "web-turin": {"liqo-tenant-turin/turin"}, "gone": nil,
	} {
		var got []string
		for _, request := range w.sharers(t.Context(), namespace) {
			got = append(got, request.String())
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of pods in %s (-want +got)\n%s", namespace, diff)
		}
	}
}

func TestAConfigurationIsBounded(t *testing.T) {
	pods := make([]corev1.Pod, maxPods+100)
	for i := range pods {
		pods[i] = *pod("shop", fmt.Sprint(i), fmt.Sprintf("10.%d.%d.%d", i>>16, i>>8&255, i&255))
	}
	if got := len(addresses(pods)); got != maxPods {
		t.Errorf("%d addresses are told, not %d", got, maxPods)
	}
}
