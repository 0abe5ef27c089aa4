package slicegrant

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/controller/authentication/supply"
	"liqo.io/liqo/test/fakeapi"
)

// The Quota of a slice goes with it, and not because a cache of the past does not show the slice yet.
func TestForget(t *testing.T) {
	const namespace = "liqo-tenant-rome"
	slice := &authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "milan"}}
	quota := &offloadingv1beta1.Quota{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "milan-rome",
		Labels: map[string]string{corev1beta1.ManagedLabel: "true", authv1beta1.ResourceSliceNameLabel: "milan"}}}
	for name, tc := range map[string]struct {
		there []client.Object
		kept  bool
	}{
		"the slice is gone":         {[]client.Object{quota}, false},
		"the slice is not seen yet": {[]client.Object{quota, slice}, true},
	} {
		t.Run(name, func(t *testing.T) {
			kinds := []func(*runtime.Scheme) error{authv1beta1.AddToScheme, offloadingv1beta1.AddToScheme}
			server := fakeapi.New(t, fakeapi.Options{Kinds: kinds, Objects: tc.there})
			r := &Reconciler{client: server.Lagging(t, quota.DeepCopy()), live: server, options: Options{Supply: supply.New(supply.Options{})}}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(slice)})
			if err != nil || result.RequeueAfter > 0 != tc.kept {
				t.Errorf("again in %s, error %v", result.RequeueAfter, err)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(quota), &offloadingv1beta1.Quota{}); err == nil != tc.kept {
				t.Errorf("reading the Quota: %v", err)
			}
		})
	}
}
