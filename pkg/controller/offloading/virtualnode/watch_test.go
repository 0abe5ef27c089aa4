package virtualnode

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"

	authv1beta1 "liqo.io/liqo/pkg/apis/authentication/v1beta1"
	corev1beta1 "liqo.io/liqo/pkg/apis/core/v1beta1"
	networkingv1beta1 "liqo.io/liqo/pkg/apis/networking/v1beta1"
	offloadingv1beta1 "liqo.io/liqo/pkg/apis/offloading/v1beta1"
	"liqo.io/liqo/pkg/kube/watch"
)

// Who forgot the label of a Configuration adds it later.
func TestConfigurationsComeAndGoWithTheirLabel(t *testing.T) {
	of := func(peer string) *networkingv1beta1.Configuration {
		c := &networkingv1beta1.Configuration{}
		c.Labels = map[string]string{corev1beta1.RemoteClusterIDLabel: peer}
		return c
	}
	for name, tc := range map[string]struct {
		before, after *networkingv1beta1.Configuration
		want          bool
	}{
		"it gets the label":    {&networkingv1beta1.Configuration{}, of("milan"), true},
		"it loses the label":   {of("milan"), &networkingv1beta1.Configuration{}, true},
		"another peer's":       {of("milan"), of("turin"), true},
		"something else of it": {of("milan"), of("milan"), false},
	} {
		if got := cameOrWent().Update(event.UpdateEvent{ObjectOld: tc.before, ObjectNew: tc.after}); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// A cordon reaches every virtual node that was made of the slice, whatever its name.
func TestVirtualNodesOfASliceAreFoundByTheirLabel(t *testing.T) {
	node := func(namespace, name, slice string) client.Object {
		return &offloadingv1beta1.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{authv1beta1.ResourceSliceNameLabel: slice}}}
	}
	scheme := runtime.NewScheme()
	if err := offloadingv1beta1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &reconciler{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		node("liqo-tenant-milan", "pool", "pool"), node("liqo-tenant-milan", "second", "pool"), node("liqo-tenant-milan", "milan", "milan"), node("liqo-tenant-turin", "turin", "pool")).Build()}
	var found []string
	for _, request := range watch.Requests(t.Context(), r, &offloadingv1beta1.VirtualNodeList{},
		ofSlice(&authv1beta1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "liqo-tenant-milan", Name: "pool"}})...) {
		found = append(found, request.String())
	}
	slices.Sort(found)
	if diff := cmp.Diff([]string{"liqo-tenant-milan/pool", "liqo-tenant-milan/second"}, found); diff != "" {
		t.Error(diff)
	}
}
